"""test_breaker - further connects that a server or this host does not allow, and connections that
one key costs: what is up serves everybody, and the breaker stays closed."""
# SPDX-License-Identifier: BSD-3-Clause

import threading
import time

import pytest

from breaker_tools import Full, Loops, forbid_files, numbers, server_stats, until_answered
from mcbin import Feature, St, poll, scaled
from redisservers import Redis
from servers import FakeBackend, Headgate, Memcached

INNOCENT = {St.OK, St.ENOENT}


def config(where, kind="memcached", tenants=None, threads=1, **upstream):
    row = dict({"name": "store", "kind": kind, "servers": [{"address": where}],
                "execution_control": "fixed"}, **upstream)
    return {"threads": threads, "upstreams": [row],
            "tenants": tenants or [{"name": "default", "upstream": "store"}]}


def assert_innocent(daemon, loops):
    """Every request was answered as by a server that is well, and nothing was given up."""
    assert set(loops.statuses) <= INNOCENT, loops.statuses
    stats = server_stats(daemon)
    assert stats["state"] == "closed" and stats["breaker_opens"] == "0", stats
    assert stats["refused_down"] == stats["queue_timeouts"] == stats["lost"] == "0", stats


def serve(daemon, loops, count=2000):
    """Until so many more requests are answered."""
    goal = until_answered(loops, count)
    poll(lambda: len(loops.answers) >= goal or set(loops.statuses) - INNOCENT,
         what="%d answers" % count)


# ---- a server that takes no more ----

def allow_all(root):
    root.command("CONFIG", "SET", "maxclients", "1000")


def allow(root, more):
    """The server takes so many connections beyond the test's own, `root`."""
    poll(lambda: root.info("clients")["connected_clients"] == "1", what="nobody else")
    root.command("CONFIG", "SET", "maxclients", str(1 + more))


@pytest.mark.parametrize("threads", [1, 4])
def test_redis_takes_three_of_six(threads):
    """Six tenants, each of which needs connections of its own, on three connections: with four
    workers one of them gets none."""
    tenants = [{"name": "t%d" % n, "upstream": "store", "backend_database": n}
               for n in range(6)]
    with Redis() as redis, redis.client() as root:
        allow(root, 3)
        with Headgate(config(redis.where, "redis", tenants, threads)) as daemon, \
                Loops(daemon, 12, [t["name"] for t in tenants]) as loops:
            serve(daemon, loops)
            poll(lambda: numbers(daemon, "connect_target") == [3], what="the target")
            assert numbers(daemon, "connections")[0] <= 3
            serve(daemon, loops)
            assert_innocent(daemon, loops)
            assert "throttle-begin what=pool-target" in daemon.stderr()
            allow_all(root)
            poll(lambda: numbers(daemon, "connect_target") == [0], 70, what="the target's end")
            serve(daemon, loops)
            assert_innocent(daemon, loops)
            assert daemon.stderr().count("what=pool-target") == 2


@pytest.mark.threaded
@pytest.mark.parametrize("most", [1, 2])
def test_fewer_connections_than_workers(most):
    """Workers that get no connection of their own go by way of one that has."""
    with Redis() as redis, redis.client() as root:
        allow(root, most)
        with Headgate(config(redis.where, "redis", threads=4)) as daemon, \
                Loops(daemon, 12) as loops:
            serve(daemon, loops)
            serve(daemon, loops)
            assert_innocent(daemon, loops)
            target, up, relayed = numbers(daemon, "connect_target", "connections", "relayed")
            assert 1 <= target <= most and up <= most and relayed > 0


@pytest.mark.parametrize("fast", ["maxconns_fast", "no_maxconns_fast"])
@pytest.mark.parametrize("threads", [1, 3])
def test_memcached_takes_no_more(fast, threads):
    """memcached's -c: what is beyond is closed at once, or waits in the backlog for good."""
    memcached = Memcached("-c", "40", "-o", fast)
    with Full(memcached, 2) as full:
        setup = config(memcached.where, threads=threads, pool_depth=1, connect_timeout_ms=200)
        with Headgate(setup) as daemon, Loops(daemon, 9) as loops:
            serve(daemon, loops)
            poll(lambda: numbers(daemon, "connect_target")[0] > 0, what="the target")
            serve(daemon, loops)
            assert_innocent(daemon, loops)
            assert 1 <= numbers(daemon, "connections")[0] <= 2
            full.release()
            poll(lambda: numbers(daemon, "connect_target") == [0], 70, what="the target's end")
            serve(daemon, loops)
            assert_innocent(daemon, loops)
    memcached.stop()


# ---- a host that can make none ----

def test_no_descriptor_left():
    """EMFILE: the connection that is up serves all; more are made when there are descriptors."""
    memcached = Memcached()
    with Headgate(config(memcached.where, pool_depth=1)) as daemon, daemon.client() as first, \
            daemon.client() as admin:
        assert first.set(b"k", b"v").status == St.OK
        with Loops(daemon, 1) as one:       # its thread asks on the connection that is up
            serve(daemon, one, 100)
        loops = Loops(daemon, 8)
        stats = lambda name: int(admin.stat("upstreams")["store:0:" + name])
        restore = forbid_files(daemon)
        with loops:
            serve(daemon, loops)
            assert stats("connections") == 1 and stats("local_errors") >= 1
            assert stats("connect_failures") == 0 and stats("connect_target") == 0
            errors = stats("local_errors")
            serve(daemon, loops)
            assert stats("local_errors") <= errors + 30
            said = [line for line in daemon.stderr().splitlines() if "throttle-begin what=local" in line]
            assert len(said) == 1 and "LimitNOFILE" in said[0] and "Too many open files" in said[0], said
            restore()
            poll(lambda: stats("connections") > 1, what="further connections")
            serve(daemon, loops)
        assert_innocent(daemon, loops)
        assert "throttle-end what=local" in daemon.stderr()
    memcached.stop()


# ---- connections that are lost ----

POISON = b"poison"


def poisoned():
    """A server that hangs up on one key."""
    def handler(connection, frame):
        if frame.key == POISON:
            connection.close()
        else:
            FakeBackend.store(connection, frame)
    return FakeBackend(handler)


class Poisoner:
    """Asks for that key, `times` times, `apart` seconds apart."""

    def __init__(self, daemon, times, apart):
        self.client = daemon.client(10)
        self.client.hello(Feature.XERROR)
        self.times, self.apart, self.done = times, apart, []
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        for _ in range(self.times):
            status = self.client.get(POISON).status
            self.done.append((time.monotonic(), status))
            time.sleep(self.apart)      # it is the rate that is wanted, no state

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *unused):
        self.thread.join()
        self.client.close()


def test_a_key_that_costs_a_connection():
    """Others on connections of their own notice nothing."""
    fake = poisoned()
    with Headgate(config(fake.where, pool_depth=1)) as daemon, Loops(daemon, 4) as loops:
        serve(daemon, loops, 200)
        with Poisoner(daemon, 5, 0.3) as poisoner:
            poll(lambda: len(poisoner.done) == 5, what="five lost connections")
        assert all(status in (St.ETMPFAIL, St.BACKEND_TIMEOUT, St.BACKEND_DOWN)
                   for _, status in poisoner.done)
        serve(daemon, loops, 200)
        assert set(loops.statuses) <= INNOCENT, loops.statuses
        stats = server_stats(daemon)
        assert stats["lost"] == "5" and stats["breaker_opens"] == "0", stats
        assert stats["connect_failures"] == stats["refused_down"] == "0", stats
    fake.stop()


@pytest.mark.alone
def test_nobody_waits_after_a_lost_connection():
    """All on one connection, which the server cuts once a second: what was under way on it is lost,
    and everything after it is as fast as ever."""
    fake = poisoned()
    with Headgate(config(fake.where)) as daemon, Loops(daemon, 4) as loops:
        serve(daemon, loops, 500)
        with Poisoner(daemon, 5, 1.0) as poisoner:
            poll(lambda: len(poisoner.done) == 5, 10, what="five lost connections")
        serve(daemon, loops, 500)
        stats = server_stats(daemon)
        assert stats["breaker_opens"] == stats["refused_down"] == stats["connect_failures"] == "0"
        lost = [answer for answer in loops.answers if answer[2] not in INNOCENT]
        assert len(lost) <= 5 * 4, lost
        took = sorted(answer[1] for answer in loops.answers if answer[2] in INNOCENT)
        usual, longest = took[len(took) // 2], []
        for when, _ in poisoner.done:
            after = [answer for answer in loops.answers if answer[0] - answer[1] >= when]
            longest.append(max(answer[1] for answer in after[:4]))      # of each client the next
        assert sorted(longest)[2] <= scaled(2 * usual + 0.005), (usual, longest)
        assert max(longest) <= scaled(0.1), longest
    fake.stop()
