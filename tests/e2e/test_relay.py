"""test_relay - several workers before a server that allows too few connections to share: one worker
has them, the others hand it their requests; under load, at the end, and when the upstream goes."""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import random
import signal
import threading

import pytest

from mcbin import Closed, Op, poll, show
from redis_tools import client_of, upstream
from redisservers import Redis
from servers import Headgate, Memcached

NAMES = ["t%d" % n for n in range(6)]
EMBEDDED = {"name": "other", "kind": "embedded"}
ROW = {"name": "default", "upstream": "other"}


def config(server, kind):
    return {"upstreams": [upstream(server, kind, pool_max_connections=2), EMBEDDED],
            "tenants": [{"name": n, "upstream": "store", "key_prefix": n + ":"} for n in NAMES] + [ROW],
            "threads": 4}


@pytest.fixture(params=["memcached", "redis"])
def scene(request):
    """(daemon) with clients of all tenants that write and read back, and what they found."""
    server = Memcached() if request.param == "memcached" else Redis()
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        daemon = stack.enter_context(Headgate(config(server, request.param)))
        crowd = Crowd(daemon)
        stack.callback(crowd.join)
        yield daemon, crowd


class Crowd:
    """A client for each tenant. `good` counts its values that came back, `refused` its refusals."""

    def __init__(self, daemon):
        self.daemon, self.stop = daemon, threading.Event()
        self.good, self.refused, self.wrong = dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, 0), []
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in NAMES]
        for thread in self.threads:
            thread.start()

    def run(self, name):
        with contextlib.suppress(OSError, Closed):  # the daemon may end
            with client_of(self.daemon, name) as client:
                while not self.stop.is_set():
                    self.once(client, name)

    def once(self, client, name):
        number = self.good[name]
        key, value = b"k%d" % (number % 10), b"%s-%d" % (name.encode(), number)
        value *= random.choice((1, 1, 50, 3000))  # in an item, or in a blob of its own
        if client.set(key, value).status != 0:
            self.refused[name] += 1
            return
        frame = client.call(Op.GET, key)
        if frame.status == 0 and frame.value != value:
            self.wrong.append(show(frame)[:200])
        self.good[name] += 1

    def until_each_has(self, counts, more):
        start = dict(counts)
        poll(lambda: all(counts[n] >= start[n] + more for n in NAMES), 20, what="all clients go on")

    def join(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.wrong, self.wrong[:3]


def relayed(client):
    return sum(int(v) for k, v in client.stat("upstreams").items() if k.endswith(":relayed"))


def connections(client):
    return sum(int(v) for k, v in client.stat("upstreams").items() if k.endswith(":connections"))


def test_values_come_back(scene):
    daemon, crowd = scene
    with daemon.client() as boss:
        crowd.until_each_has(crowd.good, 100)
        assert relayed(boss) > 0
        assert 1 <= connections(boss) <= 2
    crowd.join()
    assert not any(crowd.refused.values()), crowd.refused


def test_the_end_under_load(scene):
    daemon, crowd = scene
    crowd.until_each_has(crowd.good, 20)
    daemon.terminate()


def test_the_upstream_goes_under_load(scene):
    daemon, crowd = scene
    crowd.until_each_has(crowd.good, 20)
    daemon.write_config(upstreams=[EMBEDDED], tenants=[ROW])
    daemon.process.signal(signal.SIGHUP)
    with daemon.client() as boss:
        poll(lambda: not any(k.startswith("store:") for k in boss.stat("upstreams")), 20, what="no upstream")
        assert boss.set(b"k", b"v").status == 0
    crowd.until_each_has(crowd.refused, 1)
