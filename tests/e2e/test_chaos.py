"""test_chaos - everything at once for some seconds: clients that come, flood, and go; buckets made,
changed and deleted; reloads; statistics; a memcached or Redis killed and started again. Nothing may crash,
hang, answer out of order, or give one client another's value; afterwards all is calm."""
# SPDX-License-Identifier: BSD-3-Clause

import json
import random
import signal
import threading
import time

import pytest

from credit_tools import admin, details, start
from mcbin import PATIENCE, Closed, Feature, Op, poll, request, scaled, set_extras, show
from redisservers import Redis
from servers import Memcached, user_row

SECONDS = 4         # at least
GOOD, REFUSED = 100, 10     # at least
BUCKETS = ("shop", "cache", "brief")


class Chaos:
    def __init__(self, daemon, seed):
        self.daemon, self.seed = daemon, seed
        self.begun = time.monotonic()
        self.wrong, self.good, self.refused = [], 0, 0
        self.threads = []

    def over(self):
        """Some seconds are over, and enough was answered, however slow this machine is."""
        lasted = time.monotonic() - self.begun
        return lasted > SECONDS and (self.good > GOOD and self.refused > REFUSED
                                     or lasted > scaled(PATIENCE))

    def run(self, *parts):
        for number, part in enumerate(parts):
            thread = threading.Thread(target=self._guard, args=(part, number))
            thread.start()
            self.threads.append(thread)
        for thread in self.threads:
            thread.join(scaled(PATIENCE + SECONDS + 40))
            assert not thread.is_alive(), "a part hangs"
        assert not self.wrong, self.wrong[:5]

    def _guard(self, part, number):
        rand = random.Random(self.seed * 1000 + number)
        while not self.over() and not self.wrong:
            try:
                part(rand, number)
            except (Closed, ConnectionError):
                continue
            except Exception as wrong:      # told at the end, in the test's own thread
                self.wrong.append("%s: %r" % (part.__name__, wrong))

    def client(self, rand, number):
        """A connection that logs in, floods and checks what it reads, and goes in some way."""
        bucket = rand.choice(BUCKETS)
        with self.daemon.client(timeout=20) as client:
            client.login("anyone", "pw")
            if client.select(bucket).status:
                return
            features = rand.choice([(), (Feature.XERROR,), (Feature.NON_BLOCKING, Feature.JSON),
                                    (Feature.REPORT_UNITS, Feature.TRACING)])
            client.hello(*features)
            for _ in range(rand.randrange(1, 20)):
                if self.over():
                    return
                # Where nothing is allowed, each request of the batch is held for its whole time.
                names = [b"%d:%d" % (number, rand.randrange(50)) for _ in range(rand.randrange(1, 30))]
                stream = []
                for opaque, name in enumerate(names):
                    size = rand.choice([1, 10, 100, 5000])
                    stream.append(request(Op.SET, name, name + b"=" + b"x" * size, set_extras(),
                                          opaque=opaque))
                    stream.append(request(Op.GETK, name, opaque=opaque))
                client.send(b"".join(stream))
                if rand.random() < 0.1:
                    return
                for opaque, name in enumerate(names):
                    put, got = client.recv(), client.recv()
                    assert (put.opcode, put.opaque) == (Op.SET, opaque), show(put)
                    assert (got.opcode, got.opaque) == (Op.GETK, opaque), show(got)
                    if got.status == 0:
                        self.good += 1
                        assert got.key == name and got.value.startswith(name + b"="), show(got)
                    else:
                        self.refused += 1

    def administrator(self, rand, number):
        with admin(self.daemon) as boss:
            while not self.over():
                kind = rand.randrange(8)
                if kind == 0:
                    boss.call(Op.CREATE_BUCKET, b"brief", json.dumps(
                        {"upstream": rand.choice(["store", "servers"]),
                         "hard_limit": rand.choice([50, 5000])}))
                elif kind == 1:
                    boss.call(Op.DELETE_BUCKET, b"brief")
                elif kind == 2:
                    boss.call(Op.SET_BUCKET_THROTTLE, rand.choice(BUCKETS), json.dumps(
                        {"hard_limit": rand.choice([0, 20, 500, "unlimited"])}))
                elif kind == 3:
                    boss.call(Op.SET_NODE_THROTTLE, b"", json.dumps(
                        {"capacity": rand.choice([100, 5000, "unlimited"])}))
                elif kind == 4:
                    self.daemon.process.signal(signal.SIGHUP)
                elif kind == 5:
                    boss.stat(rand.choice(["", "connections", "throttle", "slow", "upstreams",
                                           "ops", "threads", "buckets", "reset"]))
                elif kind == 6:
                    boss.call(Op.SET_BUCKET_DATA_LIMIT, rand.choice(BUCKETS),
                              extras=rand.choice([b"\0\0", b"\0\x36"]))
                else:
                    time.sleep(rand.random() * 0.05)

    def operator(self, rand, number):
        """Kills and starts the server behind."""
        time.sleep(rand.random() * 0.5)
        self.server.kill()
        time.sleep(rand.random() * 0.3)
        self.server.restart()


@pytest.mark.parametrize("threads,free_pool,kind", [
    (1, "fair", "memcached"), (2, "first-come", "memcached"), (2, "fair", "memcached"),
    (1, "first-come", "redis"), (2, "fair", "redis")])
def test_everything_at_once(threads, free_pool, kind):
    server = Redis() if kind == "redis" else Memcached(memory_mb=64)
    store = {"upstreams": [{"name": "store", "kind": "embedded"},
                           {"name": "servers", "kind": kind, "backend_timeout_ms": 200,
                            "reconnect_max_ms": 100, "servers": [{"address": server.where}]}]}
    tenants = [{"name": "default", "upstream": "store"},
               {"name": "shop", "upstream": "store", "hard_limit": 500},
               {"name": "cache", "upstream": "servers", "reserved": 100}]
    users = [user_row("anyone", buckets={"*": ["Read", "Write"]})]
    with start(tenants, users=users, store=store, threads=threads, free_pool=free_pool,
               throttle_slot_ms=50, throttle_max_wait_ms=100, request_deadline_ms=2000) as daemon:
        chaos = Chaos(daemon, threads * 2 + len(free_pool))
        chaos.server = server
        chaos.run(*[chaos.client] * 6, chaos.administrator, chaos.operator)
        assert chaos.good > GOOD and chaos.refused > REFUSED, (chaos.good, chaos.refused)
        with admin(daemon) as boss:
            poll(lambda: int(boss.stat()["curr_connections"]) == 1, 10, what="connections gone")
            for name in ("shop", "cache"):
                boss.ok(Op.SET_BUCKET_DATA_LIMIT, name, extras=b"\0\0")
                boss.ok(Op.SET_BUCKET_THROTTLE, name, b'{"hard_limit":"unlimited"}')
                assert details(boss, name)["held"] == 0
            boss.ok(Op.SET_NODE_THROTTLE, b"", b'{"capacity":"unlimited"}')
            for name in ("shop", "cache"):
                assert boss.select(name).status == 0
                poll(lambda: boss.set(b"calm", b"v").status == 0, 5, what="calm in " + name)
                assert boss.get(b"calm").value == b"v"
    server.stop()
