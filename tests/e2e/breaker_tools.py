"""breaker_tools - closed loops of clients that note every answer, servers that are nearly full, and
what a daemon tells of its servers."""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import os
import resource
import threading
import time

from mcbin import Client, Closed, Feature, Op


class Loops:
    """Clients that ask one thing after the other, until the block ends. Each answer is noted:
    `statuses` counts them, `answers` has (when, took, status)."""

    def __init__(self, daemon, count, buckets=(None,), key=b"k%d", timeout=10):
        self.stopped = threading.Event()
        self.answers, self.faults = [], []
        self.clients = []
        for number in range(count):
            client = daemon.client(timeout, buckets[number % len(buckets)])
            client.hello(Feature.XERROR)
            self.clients.append(client)
        self.threads = [threading.Thread(target=self._run, args=(client, key % number))
                        for number, client in enumerate(self.clients)]

    def _run(self, client, key):
        try:
            while not self.stopped.is_set():
                begun = time.monotonic()
                frame = client.get(key)
                now = time.monotonic()
                self.answers.append((now, now - begun, frame.status))
        except (OSError, Closed, AssertionError) as wrong:
            self.faults.append(repr(wrong))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        for client in self.clients:
            client.close()
        assert not self.faults, self.faults

    @property
    def statuses(self):
        return collections.Counter(status for _, _, status in list(self.answers))


def until_answered(loops, count):
    """How many answers there are to be for `count` more."""
    return len(loops.answers) + count


def server_stats(daemon, name="store", number=0):
    """{name: text} of a server of an upstream."""
    with daemon.client() as client:
        rows = client.stat("upstreams")
    head = "%s:%d:" % (name, number)
    return {key[len(head):]: value for key, value in rows.items() if key.startswith(head)}


def numbers(daemon, *names):
    stats = server_stats(daemon)
    return [int(stats[name]) for name in names]


class Full:
    """Holds all connections that a memcached allows but `left`."""

    def __init__(self, server, left):
        self.server, self.held = server, []
        while self._one_more():
            pass
        self.release(left)

    def _one_more(self):
        client = None
        try:
            client = Client(self.server.address, timeout=0.5)
            client.ok(Op.VERSION)
            self.held.append(client)
            return True
        except (OSError, Closed, AssertionError):
            if client is not None:
                client.close()
            return False

    def release(self, count=None):
        for _ in range(len(self.held) if count is None else count):
            self.held.pop().close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.release()


def forbid_files(daemon):
    """From now on the daemon gets no further descriptor. What puts things back as they were."""
    before = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
    top = max(int(fd) for fd in os.listdir("/proc/%d/fd" % daemon.pid)) + 1
    taken = {int(fd) for fd in os.listdir("/proc/%d/fd" % daemon.pid)}
    low = next(n for n in range(top + 1) if n not in taken)
    resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (low, before[1]))
    return lambda: resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, before)

