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
from redisservers import Redis, RedisCluster
from row_tools import insist
from servers import Headgate, Memcached, free_port, headgatectl, memory_factor, user_row
from slowstore import SlowStore
from tablebin import Rows

pytestmark = pytest.mark.threaded

DEPTH = 8
KEYS = 200


class Load:
    """Connections that each write and read keys in a tenant without a pause, DEPTH requests at a
    time, and count the answers by status. Reads must bring what was written last on the same
    connection, unless `moves`: then they may miss."""

    def __init__(self, daemon, bucket, connections=3, moves=False):
        self.counts, self.wrong, self.missed = {}, [], 0
        self.rounds = [0] * connections  # of each
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
        moves = self.moves  # when it began
        frames = []
        for n in range(DEPTH):
            value = b"%d-%d" % (step, n)
            frames += [request(Op.SET, key, value, set_extras(), opaque=2 * n),
                       request(Op.GET, key, opaque=2 * n + 1)]
        client.send(b"".join(frames))
        for n in range(2 * DEPTH):
            frame = client.recv()
            want = b"%d-%d" % (step, n // 2)
            missed = moves and frame.status == St.ENOENT
            with self.lock:
                if missed:
                    self.missed += 1
                else:
                    self.counts[frame.status] = self.counts.get(frame.status, 0) + 1
                self.rounds[number] += n == 0
                if frame.opaque != n or (frame.status != 0 and not missed) or (
                        n % 2 == 1 and frame.status == 0 and frame.value != want and not moves):
                    if len(self.wrong) < 20:
                        self.wrong.append("%s, wanted %r" % (show(frame), want))

    def go_on(self, rounds=7):
        """Lets some more answers come, on each connection."""
        begin = list(self.rounds)
        poll(lambda: self.wrong or all(now >= was + rounds for now, was in zip(self.rounds, begin)),
             20, what="the load going on")
        assert not self.wrong, self.wrong

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(scaled(20))
            assert not thread.is_alive()
        assert not self.wrong, self.wrong
        bad = {status: n for status, n in self.counts.items() if status != 0}
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


@contextlib.contextmanager
def front(upstreams, tenants, threads=2, **options):
    with start(tenants, store={"upstreams": upstreams}, threads=threads, **options) as daemon:
        try:
            yield daemon
        except BaseException:
            print(daemon.stderr()[-12000:])
            raise


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
    options.setdefault("queue_timeout_ms", 20000)  # a busy machine refuses nothing
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


def test_redis_changes_under_load(redis):
    """Database, layout, user and password together, pool options of a Redis upstream."""
    def store(**options):
        return [dict({"name": "store", "kind": "redis", "servers": servers_of(redis)}, **options)]

    with front(store(), [{"name": "shop", "upstream": "store", "key_prefix": "shop:"}]) as daemon, \
            admin(daemon) as boss, loaded(daemon, "shop") as load:
        load.moves = True
        for options, warned in (
                ({"database": 1}, "database 1"), ({"user": "hg", "password": "one"}, "database 0"),
                ({"user": "hg2", "password": "two"}, None),
                ({"user": "hg2", "password": "two", "redis_layout": "plain"}, "redis_layout"),
                ({"user": "hg2", "password": "two", "ranges": "off"}, "redis_layout"),
                ({"user": "hg2", "password": "two", "pool_max_connections": 2}, None),
                ({"database": 3, "pool_max_connections": 2, "pool_depth": 2}, "database 3")):
            told = reload(daemon, boss, upstreams=store(**options))
            assert told["changes"] and all(row["at_run_time"] for row in told["changes"]), told
            assert "one" not in json.dumps(told["changes"]) and "two" not in json.dumps(told), told
            assert warned is None or any(warned in line for line in told["warnings"]), told
            load.go_on()
            names = {row.split(" user=")[1].split(" ")[0] for row in clients_of(redis)}
            assert options.get("user", "default") in names, names
        poll(lambda: int(redis.command("INFO", "keyspace").decode().count("db3:")) == 1, 5,
             what="keys in database 3")


def clients_of(redis):
    return [row for row in redis.command("CLIENT", "LIST").decode().splitlines()
            if "cmd=client" not in row]


def test_upstreams_come_and_go_under_load(memcacheds, redis):
    """Upstreams that are added, removed and become of another kind; tenants that move with them."""
    one, two, _ = memcacheds
    other = {"name": "other", "kind": "redis", "servers": servers_of(redis), "database": 4}
    shop = {"name": "shop", "upstream": "cache"}
    stays = {"name": "stays", "upstream": "cache"}
    guest = {"name": "guest", "upstream": "other"}
    default = {"name": "default", "upstream": "cache"}
    with front([cache(one)], [shop, stays, default]) as daemon, admin(daemon) as boss, \
            loaded(daemon, "stays") as calm, loaded(daemon, "shop", moves=True) as load:
        users = dict(daemon.users)
        users["users"] = users["users"] + [user_row("guest")]
        daemon.write_users(users)
        reload(daemon, boss, upstreams=[cache(one), other], tenants=[shop, stays, default, guest])
        with loaded(daemon, "guest") as brief:
            calm.go_on()
            shop["upstream"] = "other"  # moves, with its connections
            told = reload(daemon, boss, tenants=[shop, stays, default, guest])
            assert any("'shop' moves" in line for line in told["warnings"]), told
            load.go_on()
            brief.go_on()
        shop["upstream"] = "cache"
        reload(daemon, boss, upstreams=[cache(one)], tenants=[shop, stays, default])
        load.go_on()
        with daemon.client() as gone:
            gone.login("guest", "pw")
            assert gone.get(b"k").status == St.NO_BUCKET
        shop["key_prefix"] = "elsewhere:"
        reload(daemon, boss, tenants=[shop, stays, default])
        load.go_on()
        calm.go_on()
        poll(lambda: len(clients_of(redis)) == 0, 5, what="the removed upstream's connections closed")


def test_kind_changes_under_load(memcacheds, redis):
    def as_redis(name):
        return {"name": name, "kind": "redis", "servers": servers_of(redis), "database": 5}

    with front([cache(memcacheds[0])], [{"name": "shop", "upstream": "cache"}]) as daemon, \
            admin(daemon) as boss, loaded(daemon, "shop", moves=True) as load:
        for upstreams in ([as_redis("cache")], [{"name": "cache", "kind": "embedded"}],
                          [cache(memcacheds[1])], [{"name": "cache", "kind": "embedded"}]):
            daemon.write_config(upstreams=upstreams)
            # An embedded store that has just gone, and comes back, must have been closed.
            answers = []
            poll(lambda: answers.append(boss.call(Op.CONFIG_RELOAD)) or answers[-1].status == 0, 10,
                 what="the reload")
            assert all(b"try again" in frame.value for frame in answers[:-1]), answers
            told = json.loads(answers[-1].value)
            assert any("becomes another one" in line for line in told["warnings"]), told
            load.go_on()


def test_what_waits_goes_along(memcacheds):
    """A request held for credits, and those behind it, when its tenant moves."""
    one, two, _ = memcacheds
    more = {"name": "more", "kind": "memcached", "servers": servers_of(two)}
    shop = {"name": "shop", "upstream": "cache", "hard_limit": 1}
    with front([cache(one), more], [shop, {"name": "default", "upstream": "cache"}], threads=1,
               throttle_max_wait_ms=9000) as daemon, admin(daemon) as boss, \
            enter(daemon, "shop") as client:
        client.send(b"".join(request(Op.SET, b"k%d" % n, b"v", set_extras(), opaque=n)
                             for n in range(4)))
        poll(lambda: int(boss.stat()["held_now"]) == 1, 5, what="a request held")
        shop.update(upstream="more", hard_limit="unlimited")
        reload(daemon, boss, tenants=[shop, {"name": "default", "upstream": "cache"}])
        for n in range(4):
            frame = client.recv(5)
            assert (frame.opaque, frame.status) == (n, 0), show(frame)
        with Client(two.address) as direct:
            assert b"v" in [direct.get(b"k3").value, direct.get(b"shop:k3").value]


def test_wrong_files_change_nothing(memcacheds):
    one, two, _ = memcacheds
    with front([cache(one)], [{"name": "shop", "upstream": "cache"}]) as daemon, \
            admin(daemon) as boss, loaded(daemon, "shop") as load:
        with open(daemon.config_path) as file:
            good = file.read()
        before = {name: value for name, value in boss.stat("settings").items()}
        wrong = {
            "servers": good.replace(one.where, "no address at all"),
            "ring": good.replace("kind: memcached", "kind: memcached, ring: circle"),
            "upstream": good + "\nno_such_option: 1\nthreads: lots\n",
            "yaml": good + "\n]",
            "empty": "# nothing yet\n",
        }
        for what, text in wrong.items():
            with open(daemon.config_path, "w") as file:
                file.write(text)
            frame = boss.call(Op.CONFIG_RELOAD)
            assert frame.status == St.EINVAL and frame.value, (what, show(frame))
            if what == "upstream":
                assert b"no_such_option" in frame.value and b"threads" in frame.value, show(frame)
            checked = boss.call(Op.CONFIG_VALIDATE, value=text.encode())
            assert checked.status == St.EINVAL or what == "empty", (what, show(checked))
            load.go_on(2)
        with open(daemon.config_path, "w") as file:
            file.write(good)
        users = dict(daemon.users)
        with open(daemon.users_path, "w") as file:
            file.write("users: [{nom: x}]\n")
        assert boss.call(Op.CONFIG_RELOAD).status == St.EINVAL
        daemon.write_users(users)
        told = reload(daemon, boss)
        assert told["changes"] == [] and told["rings"] == [] and "left_out" not in told, told
        assert boss.stat("settings") == before


def test_what_is_told(memcacheds):
    one, two, three = memcacheds
    with front([cache(one, two)], [{"name": "shop", "upstream": "cache", "reserved": 10}],
               node_capacity=100000) as daemon, admin(daemon) as boss:
        good = open(daemon.config_path).read()
        asked = json.loads(boss.ok(Op.CONFIG_VALIDATE, value=good.encode()).value)
        assert asked["changes"] == [] and asked["rings"] == [] and "left_out" not in asked, asked
        boss.ok(Op.SET_PARAM, b"tenant.shop.reserved", b"77")
        new = dict(daemon.config, upstreams=[cache(one, two, three)], threads=1,
                   tenants=[{"name": "shop", "upstream": "cache", "reserved": 20, "max_connections": 9},
                            {"name": "default"}])
        daemon.config = new
        daemon.write_config()
        text = open(daemon.config_path, "rb").read()
        asked = json.loads(boss.ok(Op.CONFIG_VALIDATE, value=text).value)
        rows = {row["option"]: row for row in asked["changes"]}
        assert rows["tenant.shop.max_connections"] == {
            "option": "tenant.shop.max_connections", "before": "0", "after": "9",
            "at_run_time": True}, rows
        assert not rows["threads"]["at_run_time"] and rows["upstream.cache.servers"]["at_run_time"]
        assert "tenant.shop.reserved" not in rows, "what an opcode set stays"
        assert any("'reserved' of tenant 'shop'" in line and ":" in line
                   for line in asked["warnings"]), asked["warnings"]
        ring, = asked["rings"]
        assert ring["upstream"] == "cache" and ring["keys"] == 100000
        assert 20 < ring["percent"] < 50, ring
        assert abs(ring["moved"] - ring["percent"] * 1000) < 5.01, "rounded, not cut"
        shares = {row["server"]: row for row in ring["servers"]}
        assert set(shares) == {one.where, two.where, three.where}
        assert shares[three.where]["before_percent"] == 0
        assert sum(row["after_percent"] for row in ring["servers"]) == pytest.approx(100, abs=0.1)
        assert boss.stat("upstreams").get("cache:2:address") is None, "nothing has changed yet"
        done = json.loads(boss.ok(Op.CONFIG_RELOAD).value)
        assert (done["changes"], done["rings"]) == (asked["changes"], asked["rings"])
        told, = [line for line in daemon.stderr().splitlines() if "configuration reloaded" in line]
        peer = "from=127.0.0.1:%d " % boss.sock.getsockname()[1]
        assert peer in told, told
        lines = [line for line in daemon.stderr().splitlines() if "option=threads" in line]
        assert len(lines) == 1 and peer in lines[0], lines
        daemon.process.signal(signal.SIGHUP)
        poll(lambda: 'admin=SIGHUP from=- msg="configuration reloaded"' in daemon.stderr(), 10,
             what="a reload by signal")
        assert boss.stat("upstreams")["cache:2:address"] == three.where
        with enter(daemon, "shop") as client:
            assert client.call(Op.CONFIG_VALIDATE, value=text).status == St.EACCESS


def test_users_are_read_again(memcacheds):
    """Deleted, another password, other privileges: what it means for connections that are open."""
    tenants = [{"name": name, "upstream": "cache"} for name in ("gone", "changed", "less", "same")]
    with front([cache(memcacheds[0])], tenants) as daemon, admin(daemon) as boss:
        clients = {row["name"]: enter(daemon, row["name"]) for row in tenants}
        kept = {row["name"]: row for row in daemon.users["users"]}
        del kept["gone"]
        kept["changed"] = user_row("changed", "another")
        kept["less"] = dict(kept["less"], buckets={"less": ["Read"]})
        daemon.write_users(dict(daemon.users, users=list(kept.values())))
        daemon.process.signal(signal.SIGHUP)
        for name in ("gone", "changed"):
            with pytest.raises(Closed):
                clients[name].recv(5)
        assert clients["same"].set(b"k", b"v").status == 0
        assert clients["less"].get(b"other").status == St.ENOENT
        poll(lambda: clients["less"].set(b"k", b"v").status == St.EACCESS, 5,
             what="the worker of that connection knowing")
        with daemon.client() as client:
            client.login("changed", "another")
            assert client.set(b"k", b"v").status == 0


def open_files(daemon):
    return len(os.listdir("/proc/%d/fd" % daemon.pid))


def curr_connections(server):
    with Client(server.address) as client:
        return int(client.stat()["curr_connections"])


def test_storm(memcacheds, redis):
    """Reloads one after the other under load; afterwards nothing is left of what was opened."""
    one, two, _ = memcacheds
    # A busy machine answers late, and for late answers a pool grows; so it has bounds here.
    few = {"pool_max_connections": 4}
    redis_row = {"name": "rows", "kind": "redis", "servers": servers_of(redis), "database": 6,
                 **few}
    tenants = [{"name": "shop", "upstream": "cache"}, {"name": "ledger", "upstream": "rows"},
               {"name": "default", "upstream": "cache"}]
    with front([cache(one, two, **few), redis_row], tenants) as daemon, admin(daemon) as boss, \
            loaded(daemon, "shop", moves=True) as load, loaded(daemon, "ledger") as ledger:
        def storm(count):
            for n in range(count):
                servers = (one, two) if n % 2 else (two, one)
                row = dict(redis_row, pool_depth=16 + n % 2)
                daemon.write_config(upstreams=[cache(*servers, pool_depth=32 + n % 2, **few), row])
                if n % 5 == 4:
                    done = int(boss.stat()["reloads"])
                    daemon.process.signal(signal.SIGHUP)
                    poll(lambda: int(boss.stat()["reloads"]) > done, 10, what="the reload")
                else:
                    assert boss.call(Op.CONFIG_RELOAD, timeout=20).status == 0
            load.go_on()
            ledger.go_on()

        storm(4)  # what is made once is there
        settle = lambda: (open_files(daemon), curr_connections(one), curr_connections(two),
                          len(clients_of(redis)))
        calm = settle()
        memory = daemon.process.rss_bytes()
        storm(20)
        poll(lambda: all(now <= was + 6 for now, was in zip(settle(), calm)), 10,
             what="files and connections as before")
        grown = daemon.process.rss_bytes() - memory
        assert grown < (16 << 20) * memory_factor(), "%d bytes more" % grown
        stats = boss.stat("upstreams")
        requests = [int(stats["cache:%d:requests" % n]) for n in range(2)]
        assert sum(requests) > 0


def test_connections_of_one_worker_under_load(memcacheds):
    """With so few connections that one worker has them all, the others' requests go by way of it."""
    def row(n):
        return cache(memcacheds[0], pool_max_connections=1 + n % 2, pool_depth=8 + n)

    with front([row(0)], [{"name": "shop", "upstream": "cache"}], threads=3) as daemon, \
            admin(daemon) as boss, loaded(daemon, "shop", connections=4) as load:
        for n in range(1, 9):
            reload(daemon, boss, upstreams=[row(n)])
            load.go_on(3)
        assert int(boss.stat("upstreams")["cache:0:relayed"]) > 0


def test_a_slow_request_is_finished(memcacheds):
    """What is with the old connections ends there, however long; then they close. A tenant that moves
    away takes none of it along, and its upstream may go."""
    with SlowStore(slow={"shop:slow": 700}) as slow:
        rows = [{"name": "shop", "upstream": "cache", "key_prefix": "shop:"},
                {"name": "default", "upstream": "cache"}]
        with front([cache(slow, backend_timeout_ms=5000)], rows, threads=2) as daemon, \
                admin(daemon) as boss, enter(daemon, "shop") as one, enter(daemon, "shop") as two:
            one.send(request(Op.SET, b"slow", b"1", set_extras(), opaque=1) +
                     request(Op.SET, b"slow", b"2", set_extras(), opaque=2) +
                     request(Op.GET, b"slow", opaque=3))
            poll(lambda: int(boss.stat("upstreams")["cache:0:pending"]) > 0, 5, what="it is sent")
            reload(daemon, boss, upstreams=[cache(slow, backend_timeout_ms=5000, pool_depth=5)])
            assert two.set(b"k", b"v").status == 0, "others do not wait"
            assert one.recv(5).status == 0 and one.recv(5).status == 0
            assert one.recv(5).value == b"2", "the order is the client's"
            two.send(request(Op.GET, b"slow", opaque=9))
            poll(lambda: int(boss.stat("upstreams")["cache:0:pending"]) > 0, 5, what="it is sent")
            rows[0]["upstream"] = rows[1]["upstream"] = "other"
            reload(daemon, boss, tenants=rows, upstreams=[dict(cache(memcacheds[2]), name="other")])
            assert two.recv(5).value == b"2", "it was asked of the upstream that has gone"
            assert two.get(b"slow").status == St.ENOENT, "and the next one is not"
            poll(lambda: curr_connections(slow.memcached) <= 2, 5, what="its connections closed")


def test_rows_under_load(memcacheds, redis):
    """Increments of a few rows by several clients: none is lost and none is done twice."""
    def row(n):
        return {"name": "rows", "kind": "redis", "servers": servers_of(redis), "database": 7,
                "pool_depth": 10 + n}

    made, wrong, stop = [], [], threading.Event()

    def run(daemon, number):
        try:
            with enter(daemon, "shop", timeout=20.0) as client:
                rows = Rows(client)
                while not stop.is_set():
                    reply = insist(lambda: rows.increment(b"r%d" % (len(made) % 3), n=1))
                    assert reply.status == 0, reply
                    made.append(number)
        except Exception as error:  # noqa: BLE001 - told to the test's thread
            wrong.append(repr(error))

    with front([row(0)], [{"name": "shop", "upstream": "rows"}]) as daemon, admin(daemon) as boss:
        threads = [threading.Thread(target=run, args=(daemon, n), daemon=True) for n in range(4)]
        for thread in threads:
            thread.start()
        for n in range(1, 9):
            begin = len(made)
            reload(daemon, boss, upstreams=[row(n)])
            poll(lambda: len(made) > begin + 20 or wrong, 20, what="increments")
        stop.set()
        for thread in threads:
            thread.join(scaled(20))
        assert not wrong, wrong
        with enter(daemon, "shop") as client:
            rows = Rows(client)
            assert sum(rows.get(b"r%d" % n)["n"] for n in range(3)) == len(made)


def test_cluster_changes_under_load():
    with RedisCluster(replicas=0) as cluster:
        def row(n):
            return {"name": "cluster", "kind": "redis-cluster", "pool_depth": 8 + n,
                    "servers": [{"address": node.where} for node in cluster.nodes]}

        with front([row(0)], [{"name": "shop", "upstream": "cluster"}]) as daemon, \
                admin(daemon) as boss, loaded(daemon, "shop") as load:
            for n in range(1, 6):
                reload(daemon, boss, upstreams=[row(n)])
                load.go_on()


def test_ring_diff_tells_what_moves():
    """headgatectl ring-diff of a file against where the keys really go before and after its reload."""
    ports = [free_port() for _ in range(3)]
    upstream = {"name": "cache", "kind": "memcached", "ring": "ketama",
                "servers": [{"address": "127.0.0.1:%d" % port} for port in ports[:2]]}
    keys = [b"key:%d" % n for n in range(1500)]

    def places(client):
        return [client.stat(b"where " + key)[key.decode()] for key in keys]

    with Headgate({"upstreams": [upstream], "tenants": [{"name": "default"}]}) as daemon:
        with daemon.client() as client:
            before = places(client)
            upstream["servers"].append({"address": "127.0.0.1:%d" % ports[2]})
            daemon.write_config()
            said = json.loads(headgatectl("--json", "ring-diff", daemon.config_path,
                                          server=daemon.where).stdout)
            assert places(client) == before, "asking changes nothing"
            client.ok(Op.CONFIG_RELOAD)
            poll(lambda: any(str(ports[2]) in place for place in places(client)), what="the new ring")
            after = places(client)
    ring, = said
    moved = 100.0 * sum(a != b for a, b in zip(before, after)) / len(keys)
    assert 20 < ring["percent"] < 50 and abs(ring["percent"] - moved) < 5, (ring, moved)
    for port in ports:
        share = 100.0 * sum(str(port) in place for place in after) / len(keys)
        row, = [row for row in ring["servers"] if str(port) in row["server"]]
        assert abs(row["after_percent"] - share) < 5, (row, share)
