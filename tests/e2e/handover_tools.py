"""handover_tools - a process that takes over from another, and clients that come and go meanwhile"""
# SPDX-License-Identifier: BSD-3-Clause

import itertools
import threading

from mcbin import Client, Closed, Op, St, poll, request, scaled, set_extras
from servers import HEADGATE, Process

_numbers = itertools.count()


def start_successor(daemon, config_path=None, argv=None):
    """A new process that is to take over; not waited for."""
    argv = argv or [HEADGATE, "-c", config_path or daemon.config_path, "--take-over"]
    return Process(argv, daemon.directory, "successor%d" % next(_numbers))


def log_of(process):
    return process.stderr().decode("utf-8", "replace")


def take_over(daemon):
    """Let a new process take over, and make it the daemon. The log of the old one."""
    old, new = daemon.process, start_successor(daemon)
    poll(lambda: 'msg="ready"' in log_of(new) or not new.alive(), 15, what="the new process ready")
    assert new.alive(), log_of(new)
    assert old.wait(15) == 0, log_of(old)
    daemon.process = new
    return log_of(old)


def values_of(client, keys):
    """{key: value} of those that are there. Of a key that was refused, since this machine is busy,
    nothing is known, so it is asked for again."""
    found = {}

    def all_known():
        nonlocal keys
        stream = b"".join(request(Op.GETK, key, opaque=n) for n, key in enumerate(keys))
        client.send(stream + request(Op.NOOP, opaque=len(keys)))
        frames = client.replies_until(len(keys))
        found.update((keys[f.opaque], f.value) for f in frames if f.status == 0)
        keys = [keys[f.opaque] for f in frames if f.status not in (0, St.ENOENT)]
        return not keys
    poll(all_known, what="an answer for every key")
    return found


class Load:
    """Clients that come and go, each with a few requests, and write down what became of them."""

    def __init__(self, address, count=4, requests=3, tls=None):
        self.address, self.requests, self.tls = address, requests, tls
        self.refused, self.fresh_failures, self.wrong = [], [], []
        self.written, self.cut, self.connections = {}, 0, 0
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(n,)) for n in range(count)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        poll(lambda: self.connections > 20, 5, what="load")
        return self

    def __exit__(self, *unused):
        self.stopping.set()
        for thread in self.threads:
            thread.join(scaled(20))

    def more(self, connections=50):
        """Wait until so many more connections were served."""
        target = self.connections + connections
        poll(lambda: self.connections >= target, 10, what="more load")

    def _run(self, number):
        n = 0
        while not self.stopping.is_set():
            try:
                client = Client(self.address, 10, self.tls)
            except OSError as error:
                self.refused.append(repr(error))
                continue
            with client:
                for i in range(self.requests):
                    n += 1
                    key, value = b"load:%d:%d" % (number, n % 500), b"%d" % n
                    if not self._write(client, key, value, fresh=i == 0):
                        break
            self.connections += 1

    def _write(self, client, key, value, fresh):
        try:
            client.send(request(Op.SET, key, value, set_extras()))
            frame = client.recv(10)
        except (Closed, OSError) as error:
            # Not answered: whether it was carried out is not known.
            with self.lock:
                self.written.pop(key, None)
            if fresh:
                self.fresh_failures.append(repr(error))
            self.cut += 1
            return False
        if frame.status != 0:
            self.wrong.append(frame)
        with self.lock:
            self.written[key] = value
        return True

    def check(self, daemon):
        assert not self.refused, self.refused[:3]
        assert not self.fresh_failures, self.fresh_failures[:3]
        assert not self.wrong, self.wrong[:3]
        with daemon.client() as client:
            found = values_of(client, list(self.written))
        lost = [key for key in self.written if found.get(key) != self.written[key]]
        assert not lost, (len(lost), lost[:3], found.get(lost[0]), self.written[lost[0]])
