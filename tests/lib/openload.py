"""openload - load whose rate does not depend on the answers, for tests that look at every request

Many streams in one thread. An open stream sends at random times of a given rate, whatever comes
back: latency counts from when a request was to be sent. A closed one sends its next request a while
after the answer to the one before. Values are checked: a reply that belongs to another request is
an error of the load, not an event.
"""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import heapq
import math
import random
import selectors
import struct
import threading
import time

from mcbin import HEADER, REQ, Op, scaled, set_extras

# stream and key name the request; due, sent and done are monotonic seconds. status is None when the
# request was never sent, since all connections were busy for the stream's patience.
Event = collections.namedtuple("Event", "stream key due sent done status")
UNSENT = None


def value_of(key):
    return b"value of " + key


def get(key, opaque):
    return HEADER.pack(REQ, Op.GET, len(key), 0, 0, 0, len(key), opaque, 0) + key


def put(key, opaque):
    value = value_of(key)
    return HEADER.pack(REQ, Op.SET, len(key), 8, 0, 0, 8 + len(key) + len(value), opaque, 0) \
        + set_extras() + key + value


class Stream:
    """clients: connected mcbin clients, taken over; depth 1 on each. keys: drawn from evenly.
    rate: requests a second, open loop, at random times or `steady` ones; or 0: closed loop, each
    connection pauses for about pause_s after each answer. make: get or put. patience_s: how long a
    request of an open stream waits for a connection. active: from the beginning."""

    def __init__(self, name, clients, keys, rate=0.0, pause_s=0.0, make=get, patience_s=1.0,
                 seed=1, steady=False, active=True):
        self.name, self.clients, self.keys = name, clients, [bytes(key) for key in keys]
        self.rate, self.pause_s, self.make, self.patience_s = rate, pause_s, make, patience_s
        self.random = random.Random(seed)
        self.idle = collections.deque()
        self.waiting = collections.deque()  # (due, key) without a connection
        self.next_due = math.inf
        self.active, self.steady = active, steady
        self.open = rate > 0


class _Connection:
    def __init__(self, client, stream):
        self.client, self.stream, self.sock = client, stream, client.sock
        self.buffer = client.buffer
        self.asked = None  # (key, due, sent, opaque)


class Load:
    """Runs streams until it is stopped. events: one Event a request, in the order of the answers.
    `error` holds what ended it early. stalled_s: the longest time in which its thread did not get
    to look, so that a test knows a machine that stood still."""

    def __init__(self, *streams):
        self.streams = {stream.name: stream for stream in streams}
        self.events, self.error, self.stalled_s = [], None, 0.0
        self._by_when = []  # heap of (when, number, connection): closed loops
        self._number = 0
        self._opaque = 0
        self._stopping = False
        self._orders = collections.deque()
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._run, daemon=True)
        for stream in streams:
            self._add(stream)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *unused):
        self.stop()

    def stop(self):
        self._stopping = True
        self._thread.join(scaled(20))
        assert not self._thread.is_alive(), "the load does not end"
        for stream in self.streams.values():
            for client in stream.clients:
                client.close()
        if self.error:
            raise self.error

    def run(self, seconds):
        """Lets it run for so long."""
        self._thread.join(seconds)
        if self.error:
            raise self.error

    # -- changes while it runs; they happen in its thread --

    def set_rate(self, name, rate):
        self._order(lambda: self._set_rate(self.streams[name], rate))

    def set_pause(self, name, pause_s):
        self._order(lambda: setattr(self.streams[name], "pause_s", pause_s))

    def halt(self, name):
        """The stream sends no more."""
        self._order(lambda: self._set_active(self.streams[name], False))

    def go_on(self, name):
        self._order(lambda: self._set_active(self.streams[name], True))

    def _order(self, what):
        done = threading.Event()
        self._orders.append((what, done))
        assert done.wait(scaled(10)) or self.error, "the load does not listen"
        if self.error:
            raise self.error

    # -- what came --

    def select(self, name=None, since=0.0, until=math.inf, key=None):
        """Events of a stream (or of all whose name begins so, with a * at its end) whose requests
        were due in that time."""
        match = (lambda n: True) if name is None else \
            (lambda n: n.startswith(name[:-1])) if name.endswith("*") else (lambda n: n == name)
        return [event for event in list(self.events) if since <= event.due < until
                and match(event.stream) and (key is None or event.key == key)]

    # -- its thread --

    def _add(self, stream):
        for client in stream.clients:
            client.sock.setblocking(False)
            connection = _Connection(client, stream)
            self._selector.register(client.sock, selectors.EVENT_READ, connection)
            stream.idle.append(connection)

    def _set_rate(self, stream, rate):
        stream.rate = rate
        stream.next_due = self._draw(stream, time.monotonic())

    def _set_active(self, stream, active):
        now = time.monotonic()
        stream.active = active
        stream.next_due = self._draw(stream, now)
        if not stream.open and active:
            while stream.idle:
                self._later(stream.idle.popleft(), now)

    def _draw(self, stream, after):
        if not stream.open or not stream.active or stream.rate <= 0:
            return math.inf
        return after + (1 / stream.rate if stream.steady
                        else stream.random.expovariate(stream.rate))

    def _later(self, connection, when):
        self._number += 1
        heapq.heappush(self._by_when, (when, self._number, connection))

    def _run(self):
        try:
            self._loop()
        except (AssertionError, OSError) as wrong:
            self.error = wrong if isinstance(wrong, AssertionError) else AssertionError(repr(wrong))
        for _, done in self._orders:
            done.set()

    def _loop(self):
        now = time.monotonic()
        for stream in self.streams.values():
            self._set_active(stream, stream.active)
            if stream.steady:  # not all in step
                stream.next_due -= stream.random.random() / stream.rate
        while not self._stopping:
            now = time.monotonic()
            due = min([stream.next_due for stream in self.streams.values()] +
                      [entry[0] for entry in self._by_when[:1]])
            wait = min(max(due - now, 0.0), 0.02)
            ready = self._selector.select(wait)
            after = time.monotonic()
            self.stalled_s = max(self.stalled_s, after - now - wait)
            for key, _ in ready:
                self._read(key.data, after)
            while self._orders:
                what, done = self._orders.popleft()
                what()
                done.set()
            self._send_due(time.monotonic())

    def _send_due(self, now):
        for stream in self.streams.values():
            while stream.next_due <= now:
                stream.waiting.append((stream.next_due, stream.random.choice(stream.keys)))
                stream.next_due = self._draw(stream, stream.next_due)
            while stream.waiting and now - stream.waiting[0][0] > stream.patience_s:
                due, key = stream.waiting.popleft()
                self.events.append(Event(stream.name, key, due, now, now, UNSENT))
            while stream.waiting and stream.idle:
                due, key = stream.waiting.popleft()
                self._send(stream.idle.popleft(), key, due)
        while self._by_when and self._by_when[0][0] <= now:
            connection = heapq.heappop(self._by_when)[2]
            stream = connection.stream
            if stream.active:
                self._send(connection, stream.random.choice(stream.keys), now)
            else:
                stream.idle.append(connection)

    def _send(self, connection, key, due):
        self._opaque = (self._opaque + 1) & 0xFFFFFFFF
        data = connection.stream.make(key, self._opaque)
        connection.asked = (key, due, time.monotonic(), self._opaque)
        # Depth 1 and small: a socket that does not take it at once is broken.
        sent = connection.sock.send(data)
        assert sent == len(data), "a request was not taken whole"

    def _read(self, connection, now):
        try:
            data = connection.sock.recv(1 << 16)
        except BlockingIOError:
            return
        assert data, "%s: connection closed" % connection.stream.name
        buffer = connection.buffer
        buffer += data
        if len(buffer) < 24:
            return
        status, body_len, opaque = struct.unpack_from(">HII", buffer, 6)
        if len(buffer) < 24 + body_len:
            return
        assert connection.asked, "a reply that nobody asked for: %s" % bytes(buffer).hex()
        key, due, sent, want = connection.asked
        body = bytes(buffer[24 + buffer[4]:24 + body_len])
        del buffer[:24 + body_len]
        assert opaque == want and not buffer, "%s: opaque 0x%x where 0x%x is due" % (
            connection.stream.name, opaque, want)
        assert status or connection.stream.make is put or body == value_of(key), \
            "%r: value %r" % (key, body[:80])
        connection.asked = None
        stream = connection.stream
        self.events.append(Event(stream.name, key, due, sent, now, status))
        if stream.open:
            stream.idle.append(connection)
        elif stream.active:
            # Not all in step, as they would be after one answer to all.
            self._later(connection, now + stream.pause_s * (0.5 + stream.random.random()))
        else:
            stream.idle.append(connection)


def percentile(events, share):
    """The latency, from when a request was due, that so large a share does not exceed; seconds."""
    times = sorted(event.done - event.due for event in events)
    assert times, "no events"
    return times[min(len(times) - 1, int(share * len(times)))]


def statuses(events):
    return collections.Counter(event.status for event in events)


def per_second(events, since, until, status=0):
    """Answers of that status a second that came in that time."""
    return sum(1 for event in events if event.status == status and since <= event.done < until) \
        / (until - since)
