"""flood - many connections that keep a number of requests unanswered each, in one thread, and
remember when each reply came and what it said; and the counting of replies by slots of time."""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import selectors
import struct
import threading
import time

from mcbin import scaled

Event = collections.namedtuple("Event", "when connection status latency")


class Flood:
    """clients: connected (and logged in) mcbin clients, taken over for as long as it runs.
    make(number) -> bytes of a request whose opaque is that number.

    events: one Event a reply, in the order in which they came. Replies of a connection must come
    in the order of its requests, or the flood stops with an AssertionError in `error`."""

    def __init__(self, clients, make, pipeline=1, limit=None):
        self.clients, self.make, self.pipeline = clients, make, pipeline
        self.limit = limit
        self.events, self.error, self.stalled_s = [], None, 0.0
        self.sent = 0
        self.stopping = False
        self.closed = 0
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.stop()

    def stop(self):
        """Sends no more, and returns without waiting for what is unanswered."""
        self.stopping = True
        self.thread.join(scaled(20))
        assert not self.thread.is_alive(), "the flood does not end"
        if self.error:
            raise self.error
        return self.events

    def wait(self, timeout=30.0):
        """Waits until all of `limit` requests are answered."""
        self.thread.join(scaled(timeout))
        assert not self.thread.is_alive(), "%d of %s requests answered in time" % (
            len(self.events), self.limit)
        if self.error:
            raise self.error
        return self.events

    def _run(self):
        try:
            self._loop()
        except (AssertionError, OSError) as wrong:
            self.error = wrong if isinstance(wrong, AssertionError) else AssertionError(repr(wrong))

    def _loop(self):
        selector = selectors.DefaultSelector()
        waiting = []
        for index, client in enumerate(self.clients):
            client.sock.setblocking(False)
            selector.register(client.sock, selectors.EVENT_READ, index)
            waiting.append(collections.deque())
        for index in range(len(self.clients)):
            self._send(index, waiting[index], self.pipeline)
        last = time.monotonic()
        while not self.stopping:
            ready = selector.select(0.02)
            now = time.monotonic()
            self.stalled_s = max(self.stalled_s, now - last - 0.02)
            for key, _ in ready:
                answered = self._read(key.data, waiting[key.data], now)
                if answered is None:
                    selector.unregister(key.fileobj)
                    self.closed += 1
                elif answered:
                    self._send(key.data, waiting[key.data], answered)
            if self.closed == len(self.clients):
                return
            if self.limit is not None and len(self.events) >= self.limit:
                return
            last = time.monotonic()

    def _send(self, index, waiting, count):
        if self.limit is not None:
            count = min(count, self.limit - self.sent)
        if count <= 0 or self.stopping:
            return
        now = time.monotonic()
        data = b""
        for _ in range(count):
            data += self.make(self.sent & 0xFFFFFFFF)
            waiting.append((self.sent & 0xFFFFFFFF, now))
            self.sent += 1
        sock = self.clients[index].sock
        while data:
            try:
                data = data[sock.send(data):]
            except BlockingIOError:
                time.sleep(0.001)

    def _read(self, index, waiting, now):
        client = self.clients[index]
        try:
            data = client.sock.recv(1 << 18)
        except BlockingIOError:
            return 0
        except ConnectionResetError:
            return None
        if not data:
            return None
        buffer = client.buffer
        buffer += data
        at = answered = 0
        while len(buffer) - at >= 24:
            status, body_len, opaque = struct.unpack_from(">HII", buffer, at + 6)
            if len(buffer) - at < 24 + body_len:
                break
            want, sent_at = waiting.popleft()
            assert opaque == want, "connection %d: opaque 0x%x where 0x%x is due" % (
                index, opaque, want)
            self.events.append(Event(now, index, status, now - sent_at))
            at += 24 + body_len
            answered += 1
        del buffer[:at]
        return answered

    # -- what came --

    def statuses(self):
        return collections.Counter(event.status for event in self.events)

    def count(self, status=0):
        return sum(1 for event in self.events if event.status == status)


def bursts(events, slot_s, status=0):
    """[(start, replies)] of the good replies, cut where nothing came for half a slot: a limit that
    is asked for much more answers in one burst a slot."""
    found = []
    last = None
    for event in events:
        if event.status != status:
            continue
        if last is None or event.when - last > slot_s / 2:
            found.append([event.when, 0])
        found[-1][1] += 1
        last = event.when
    return [tuple(burst) for burst in found]


def whole_slots(events, slot_s, status=0):
    """(replies, slots) between the second burst and the start of the last one: whole slots only.
    Slots are counted by time, so two bursts that run into each other count as two."""
    found = bursts(events, slot_s, status)
    assert len(found) >= 4, "only %d bursts of replies: %s" % (len(found), found)
    span = found[-1][0] - found[1][0]
    return sum(count for _, count in found[1:-1]), round(span / slot_s)


def jain(shares):
    """Jain's index of fairness: 1 when all are equal, 1/n when one has all."""
    total = sum(shares)
    return total * total / (len(shares) * sum(share * share for share in shares)) if total else 0.0
