"""test_reload - reloads under load: upstreams that come, change and go, tenants that move, users that
are revoked; wrong files; storms of reloads. Every answer is counted, and none may be an error but on
what was removed."""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import json
import os
import signal
import threading
import time

import pytest

from credit_tools import admin, enter, start
from mcbin import Client, Closed, Op, St, poll, request, scaled, set_extras, show
from redisservers import Redis
from servers import Memcached, user_row

DEPTH = 8
KEYS = 200


class Load:
    """Connections that each write and read keys in a tenant without a pause, DEPTH requests at a
    time, and count the answers by status. Reads must bring what was written last on the same
    connection, unless `moves`: then they may miss."""

    def __init__(self, daemon, bucket, connections=3, moves=False):
        self.counts, self.wrong, self.rounds = {}, [], 0
        self.moves = moves
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.threads = []
        for number in range(connections):
            client = enter(daemon, bucket, timeout=20.0)
            thread = threading.Thread(target=self._run, args=(client, number), daemon=True)
            self.threads.append(thread)
            thread.start()

    def _run(self, client, number):
        step = 0
        try:
            while not self.stopping.is_set():
                self._round(client, number, step)
                step += 1
        except (Closed, OSError, AssertionError) as error:
            with self.lock:
                self.wrong.append(repr(error))
        client.close()

    def _round(self, client, number, step):
        key = b"c%d-k%d" % (number, step % KEYS)
        frames = []
        for n in range(DEPTH):
            value = b"%d-%d" % (step, n)
            frames += [request(Op.SET, key, value, set_extras(), opaque=2 * n),
                       request(Op.GET, key, opaque=2 * n + 1)]
        client.send(b"".join(frames))
        for n in range(2 * DEPTH):
            frame = client.recv()
            want = b"%d-%d" % (step, n // 2)
            missed = self.moves and frame.status == St.ENOENT
            with self.lock:
                self.counts[frame.status] = self.counts.get(frame.status, 0) + 1
                self.rounds += n == 0
                if frame.opaque != n or (frame.status != 0 and not missed) or (
                        n % 2 == 1 and frame.status == 0 and frame.value != want and not self.moves):
                    if len(self.wrong) < 20:
                        self.wrong.append("%s, wanted %r" % (show(frame), want))

    def go_on(self, rounds=20):
        """Lets some more answers come."""
        begin = self.rounds
        poll(lambda: self.rounds >= begin + rounds or self.wrong, 20, what="the load going on")
        assert not self.wrong, self.wrong

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(scaled(20))
            assert not thread.is_alive()
        assert not self.wrong, self.wrong
        bad = {status: n for status, n in self.counts.items()
               if status != 0 and not (self.moves and status == St.ENOENT)}
        assert not bad and sum(self.counts.values()) > 0, self.counts


@contextlib.contextmanager
def loaded(daemon, bucket, **options):
    load = Load(daemon, bucket, **options)
    try:
        load.go_on()
        yield load
    except BaseException:
        load.stopping.set()
        raise
    load.stop()


def servers_of(*servers, weights=()):
    return [dict({"address": server.where}, **({"weight": weights[i]} if weights else {}))
            for i, server in enumerate(servers)]


def front(upstreams, tenants, threads=2, **options):
    return start(tenants, store={"upstreams": upstreams}, threads=threads, **options)


def reload(daemon, boss, **changes):
    daemon.write_config(**changes)
    frame = boss.call(Op.CONFIG_RELOAD, timeout=20)
    assert frame.status == 0, "%s\n%s" % (show(frame), daemon.stderr()[-2000:])
    return json.loads(frame.value)


@pytest.fixture(scope="module")
def memcacheds():
    servers = [Memcached() for _ in range(3)]
    yield servers
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def redis():
    with Redis(databases=8, users={"hg": "on >one ~* &* +@all", "hg2": "on >two ~* &* +@all"}) as server:
        yield server


def cache(*servers, **options):
    weights = options.pop("weights", ())
    return dict({"name": "cache", "kind": "memcached", "servers": servers_of(*servers,
                                                                             weights=weights)},
                **options)


def test_memcached_changes_under_load(memcacheds):
    """Servers, weights, ring, hash and every pool option, each by a reload under load."""
    one, two, three = memcacheds
    with front([cache(one, two)], [{"name": "shop", "upstream": "cache"}]) as daemon, \
            admin(daemon) as boss, loaded(daemon, "shop") as load:
        pid = daemon.pid
        load.moves = True  # a key that goes to another server is not there
        for changed in (cache(one, two, three), cache(one, two, three, weights=(1, 2, 5)),
                        cache(three), cache(one, two, three, ring="ketama_weighted"),
                        cache(one, two, three, ring="modula"),
                        cache(one, two, three, hash="md5"),
                        cache(one, two, three, hash="md5", pool_depth=1),
                        cache(one, two, three, hash="md5", pool_depth=64, pool_max_bytes="4 KiB"),
                        cache(one, two, three, hash="md5", pool_max_connections=1),
                        cache(one, two, three, hash="md5", pool_max_connections=9),
                        cache(one, two, three, hash="md5", pool_min_hold_ms=50,
                              pool_idle_timeout_s=1, eject_servers=True)):
            told = reload(daemon, boss, upstreams=[changed])
            assert told["changes"] and all(row["at_run_time"] for row in told["changes"]), told
            load.go_on()
        load.moves = False
        load.go_on()
        assert daemon.pid == pid
        stats = boss.stat("upstreams")
        assert stats["cache:2:address"] == three.where
        assert "restart" not in daemon.stderr()
