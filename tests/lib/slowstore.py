"""slowstore - starts a real memcached with the slow store before it, and gives it orders."""
# SPDX-License-Identifier: BSD-3-Clause

import os
import re
import shutil
import socket
import time

from mcbin import PATIENCE, scaled
from servers import BUILD, Memcached, Process, temporary_directory

SLOWSTORE = os.path.join(BUILD, "tests", "lib", "slowstore")


class SlowStore:
    """options: service_ms, slots, times, knee_fall, noise, seed; slow: {prefix: ms}.

    Capacity is slots / service time. `where` is its address as configurations write it."""

    def __init__(self, slow=None, **options):
        assert os.path.exists(SLOWSTORE), "%s is missing: make tests/lib/slowstore" % SLOWSTORE
        self.memcached = Memcached("-c", "4096")
        self.directory = temporary_directory("hg-slow-")
        argv = [SLOWSTORE, "--backend", self.memcached.where]
        for name, value in options.items():
            argv += ["--" + name.replace("_", "-"), str(value)]
        for prefix, ms in (slow or {}).items():
            argv += ["--slow-prefix", prefix, "--slow-ms", str(ms)]
        self.process = Process(argv, self.directory, "slowstore")
        self.port, control = self._ports()
        self.control = socket.create_connection(("127.0.0.1", control), timeout=scaled(PATIENCE))
        self.control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.control.makefile("r", encoding="latin-1")

    def _ports(self):
        deadline = time.monotonic() + scaled(PATIENCE)
        while time.monotonic() < deadline:
            said = re.search(rb"listening (\d+) control (\d+)\n", self.process.stderr())
            if said:
                return int(said[1]), int(said[2])
            assert self.process.alive(), self.process.stderr()
            time.sleep(0.005)
        raise AssertionError("the slow store does not start: %r" % self.process.stderr())

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def where(self):
        return "127.0.0.1:%d" % self.port

    def order(self, *words):
        self.control.sendall((" ".join(str(word) for word in words) + "\n").encode("latin-1"))
        answer = self.replies.readline()
        assert answer == "ok\n", "%s: %r" % (words, answer)

    def set(self, **options):
        """service_ms, slots, times, knee_fall, noise: from now on."""
        for name, value in options.items():
            self.order("set", name.replace("_", "-"), value)

    def slow(self, prefix, ms):
        """Keys that begin so take so long from now on."""
        self.order("slow", prefix, ms)

    def usual(self, prefix):
        """Keys that begin so take the usual time, and are counted apart."""
        self.order("usual", prefix)

    def pause(self):
        self.order("pause")

    def resume(self):
        self.order("resume")

    def reset(self):
        """The maxima begin anew."""
        self.order("reset")

    def stats(self):
        """{name: number}: arrived, served, inside, max_inside, in_service, queued, connections,
        accepted, unkeyed, dropped, garbage, paused, and PREFIX.arrived and so on."""
        self.control.sendall(b"stats\n")
        found = {}
        while True:
            line = self.replies.readline()
            assert line, "the slow store has gone: %r" % self.process.stderr()
            if line == "end\n":
                return found
            name, value = line.rsplit(" ", 1)
            found[name] = int(value)

    def stop(self):
        self.replies.close()
        self.control.close()
        self.process.kill()
        self.memcached.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
