"""test_redis - headgate over a real Redis: what it says of the errors of one, what an item looks like
to tools of Redis, scripts that get lost, tenants by prefix, database and user, and indexes that stay
right. The semantics of operations are in test_semantics, test_table and test_hbase."""
# SPDX-License-Identifier: BSD-3-Clause

import random
import struct
import threading
import time

import pytest

from conftest import own_rows
from mcbin import (Op, St, counter_extras, poll, request, scaled, set_extras, show)
from redis_tools import DOWN, PATIENT, client_of, config, item, over, upstream
from redisservers import Redis
from respbin import Resp, RespError
from servers import Headgate, free_port
from tablebin import T, Rows, rows_of
from tablebin import item as batch_item

pytestmark = pytest.mark.threaded

U64 = 1 << 64


@pytest.fixture(scope="module")
def redis():
    with Redis(databases=64, loading_process_events_interval_bytes=1024) as server:
        yield server


@pytest.fixture(scope="module")
def daemon(redis):
    """Nobody breaks this one's server."""
    with Redis() as server, over(server, threads=2) as made:
        made.server = server
        yield made


@pytest.fixture
def client(daemon):
    with client_of(daemon) as connection:
        yield connection


def refused(frame, status, *words):
    assert frame.status == status, show(frame)
    text = frame.value.decode("utf-8", "replace")
    for word in words:
        assert word.lower() in text.lower(), (word, text)


MUTATIONS = {
    "set": lambda c, k: c.set(k, b"v"),
    "set with cas": lambda c, k: c.set(k, b"v", cas=5),
    "add": lambda c, k: c.add(k, b"v"),
    "replace": lambda c, k: c.replace(k, b"v"),
    "append": lambda c, k: c.call(Op.APPEND, k, b"v"),
    "incr": lambda c, k: c.incr(k, 1, 1),
}


# ---- errors of a server ----

def test_out_of_memory():
    """What needs memory is refused and changes nothing; reads and deletes go on."""
    with Redis(memory=0) as server, over(server) as daemon, client_of(daemon) as client:
        rows = Rows(client, "t")
        cas = client.set(b"k", b"old").cas
        client.set(b"n", b"5")
        assert rows.insert("r", a=1).affected == 1
        server.command("CONFIG", "SET", "maxmemory", 1)
        for name, what in MUTATIONS.items():
            for key in (b"k", b"n", b"new"):
                frame = client.set(b"k", b"v", cas=cas) if (name, key) == ("set with cas", b"k") \
                    else what(client, key)
                if (name, key) in (("set", b"k"), ("set", b"n"), ("set with cas", b"k"),
                                   ("append", b"k"), ("incr", b"n"), ("set", b"new"),
                                   ("add", b"new"), ("incr", b"new")):
                    refused(frame, St.ENOMEM, "memory")
                else:
                    assert frame.status != 0, (name, key, show(frame))
        reply = rows.insert("s", a=1)
        assert reply.status == St.ENOMEM and "memory" in reply.text, reply
        assert rows.get("r") == {"a": 1} and rows.get("s") is None
        assert client.get(b"k").value == b"old" and client.get(b"new").status == St.ENOENT
        assert client.delete(b"n").status == 0
        server.command("CONFIG", "SET", "maxmemory", 0)
        assert rows_of(rows.ask().body) == [("r", {"a": 1})], "no row that was refused"
        assert client.set(b"k", b"new").status == 0


def test_a_replica_takes_no_writes():
    with Redis() as server, over(server) as daemon, client_of(daemon) as client:
        assert client.set(b"k", b"old").status == 0
        server.command("REPLICAOF", "127.0.0.1", free_port())   # of nobody: it keeps its data
        refused(client.set(b"k", b"new"), St.ETMPFAIL, "replica")
        refused(client.call(Op.APPEND, b"k", b"+"), St.ETMPFAIL, "replica")
        server.command("REPLICAOF", "NO", "ONE")
        poll(lambda: client.set(b"k", b"new").status == 0, 5, what="writes again")
        assert client.get(b"k").value == b"new"


def test_a_key_of_another_type(client, daemon, key):
    """A list where an item should be: refused, and left as it is."""
    server = daemon.server
    server.command("RPUSH", key, "an", "element")
    refused(client.get(key), St.NOT_SUPPORTED, "string")
    refused(client.call(Op.APPEND, key, b"v"), St.NOT_SUPPORTED, "string")
    refused(client.incr(key, 1, 1), St.NOT_SUPPORTED, "string")
    refused(client.gat(key, 100), St.NOT_SUPPORTED, "string")
    refused(client.set(key, b"v", cas=7), St.NOT_SUPPORTED, "string")
    refused(client.delete(key, cas=7), St.NOT_SUPPORTED, "string")
    assert client.add(key, b"v").status == St.EEXISTS
    assert server.command("LRANGE", key, 0, -1) == [b"an", b"element"]
    assert server.command("TTL", key) == -1
    assert client.delete(key).status == 0
    assert client.set(key, b"v").status == 0


@pytest.mark.parametrize("length", [0, 1, 4, 11])
def test_a_string_that_is_no_item(client, daemon, key, length):
    """Shorter than an item's header: somebody else's. It is refused, and left as it is."""
    daemon.server.command("SET", key, b"x" * length)
    frames = [client.get(key), client.call(Op.APPEND, key, b"v"), client.incr(key, 1, 1),
              client.gat(key, 100), client.set(key, b"v", cas=7), client.delete(key, cas=7)]
    for frame in frames:
        refused(frame, St.NOT_SUPPORTED, "item")
    assert daemon.server.command("GET", key) == b"x" * length
    assert client.set(key, b"v").status == 0 and client.get(key).value == b"v"


def test_a_server_busy_with_a_script():
    with Redis(busy_reply_threshold=20) as server, over(server) as daemon, \
            client_of(daemon) as client:
        assert client.set(b"k", b"v").status == 0
        ended = []

        def spin():
            with server.client(timeout=20) as at:
                ended.append(at.pipeline([["EVAL", "while true do end", 0]])[0])
        thread = threading.Thread(target=spin)
        thread.start()
        try:
            def busy():
                frame = client.get(b"k")
                if frame.status == St.EBUSY:
                    refused(frame, St.EBUSY, "script")
                    return True
                assert frame.status in (0, *DOWN), show(frame)
                return False
            poll(busy, 5, what="busy")
            refused(client.call(Op.APPEND, b"k", b"+"), St.EBUSY, "script")
        finally:
            with server.client() as at:
                at.pipeline([["SCRIPT", "KILL"]])
            thread.join(scaled(20))
        assert isinstance(ended[0], RespError)
        poll(lambda: client.get(b"k").value == b"v", 5, what="service again")


def test_a_server_that_reads_its_data_in():
    """While it does, requests are refused or wait, within their time; then all is there again."""
    with Redis(loading_process_events_interval_bytes=1024) as server, \
            over(server) as daemon, client_of(daemon) as client:
        names = [b"k%d" % n for n in range(400)]
        assert client.quiet(*(request(Op.SETQ, n, n * 50, set_extras()) for n in names)) == []
        server.command("CONFIG", "SET", "key-load-delay", 2500)     # microseconds a key: 1 s
        thread = threading.Thread(target=lambda: server.client(timeout=20).command(
            "DEBUG", "RELOAD", timeout=20))
        thread.start()
        seen = set()
        try:
            while thread.is_alive():
                begun = time.monotonic()
                frame = client.get(b"k399")
                assert time.monotonic() - begun < scaled(1.5)
                assert frame.status in (0, St.ETMPFAIL, *DOWN, St.QUEUE_TIMEOUT), show(frame)
                if frame.status == St.ETMPFAIL:
                    refused(frame, St.ETMPFAIL, "reading")
                seen.add(frame.status)
        finally:
            thread.join(scaled(20))
        assert seen - {0}, "the reload was not noticed"
        poll(lambda: client.get(b"k399").value == b"k399" * 50, 5, what="service again")
        assert [f.value for f in client.quiet(*(request(Op.GETQ, n) for n in names))] == [
            n * 50 for n in names]


def test_a_login_that_is_refused(redis):
    """The reason reaches the client and the log, which is not flooded; set right, it works."""
    with Redis(password="right") as server:
        for options, words in (({}, ["login"]),
                               ({"password": "wrong"}, ["login"]),
                               ({"user": "nobody", "password": "right"}, ["login"])):
            with over(server, upstream=options) as daemon, client_of(daemon) as client:
                def told():
                    frame = client.get(b"k")
                    assert frame.status in (St.EINTERNAL, *DOWN), show(frame)
                    return all(word in frame.value.decode() for word in words)
                poll(told, 5, what="the reason, for %s" % options)
                for _ in range(50):
                    assert client.get(b"k").status != 0
                log = daemon.stderr()
                assert "wrong" not in options.get("password", "") or "'wrong'" not in log
                told_times = sum("login" in line for line in log.splitlines())
                assert 1 <= told_times <= 20, log
        with over(server, upstream={"password": "right"}) as daemon, client_of(daemon) as client:
            assert client.set(b"k", b"v").status == 0
            server.command("CONFIG", "SET", "requirepass", "other")
            server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            poll(lambda: client.get(b"k").status != 0, 5, what="the new password noticed")
            server.command("CONFIG", "SET", "requirepass", "right")
            poll(lambda: client.get(b"k").value == b"v", 5, what="service again")


def test_a_database_that_is_not_there():
    with Redis(databases=4) as server:
        with over(server, upstream={"database": 7}) as daemon, client_of(daemon) as client:
            poll(lambda: "database" in client.get(b"k").value.decode(), 5, what="the reason")
        with over(server, upstream={"database": 3}) as daemon, client_of(daemon) as client:
            assert client.set(b"k", b"v").status == 0
            assert server.command("DBSIZE", database=3) == 1 and server.command("DBSIZE") == 0


def test_a_user_who_may_not():
    """Rights of the user on the server: the refusal names it, what is allowed goes on."""
    with Redis(users={"reader": "on >pw ~* &* +@read +@connection +@scripting"}) as server:
        server.command("SET", "k", b"\0" * 11 + b"\1value")
        with over(server, upstream={"user": "reader", "password": "pw"}) as daemon, \
                client_of(daemon) as client:
            assert client.get(b"k").value == b"value"
            refused(client.set(b"k", b"v"), St.EACCESS, "user")
            refused(client.call(Op.APPEND, b"k", b"v"), St.EACCESS, "user")
            assert client.get(b"k").value == b"value"


# ---- scripts ----

def test_scripts_that_got_lost(daemon, key):
    """SCRIPT FLUSH in the middle of pipelines: each append and increment is done once, in order."""
    stop = threading.Event()
    flushes = [0]

    def flush():
        with daemon.server.client() as at:
            while not stop.is_set():
                at.command("SCRIPT", "FLUSH")
                flushes[0] += 1
                time.sleep(0.002)
    wrong = []

    def work(number):
        mine = key + b":%d" % number
        with client_of(daemon, timeout=20) as client:
            assert client.set(mine, b"").status == 0
            expected = b""
            for turn in range(30):
                stream, marks = [], []
                for n in range(10):
                    text = b"%d.%d;" % (turn, n)
                    expected += text
                    stream += [request(Op.APPEND, mine, text, opaque=n),
                               request(Op.GET, mine, opaque=100 + n),
                               request(Op.INCR, mine + b"n", b"", counter_extras(1, 1),
                                       opaque=200 + n)]
                    marks.append(expected)
                client.send(b"".join(stream))
                for n in range(10):
                    put, got, count = client.recv(), client.recv(), client.recv()
                    if put.status or got.value != marks[n] or count.status or \
                            struct.unpack(">Q", count.value)[0] != turn * 10 + n + 1:
                        wrong.append((turn, n, show(put), show(got), show(count)))
                        return
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    flusher = threading.Thread(target=flush)
    for thread in [flusher] + threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(60))
    stop.set()
    flusher.join(scaled(10))
    assert not wrong, wrong[:2]
    assert flushes[0] > 5


def test_a_restarted_server_gets_its_scripts_again():
    with Redis() as server, over(server, threads=2) as daemon, client_of(daemon) as client:
        for _ in range(3):
            assert client.incr(b"n", 1, 41).status == 0
            assert client.incr(b"n", 1, 41).value == struct.pack(">Q", 42)
            server.kill()
            server.restart()
            poll(lambda: client.set(b"k", b"a").status == 0, 5, what="service again")
            assert client.call(Op.APPEND, b"k", b"b").status == 0
            assert client.get(b"k").value == b"ab"


# ---- what an item looks like ----

@pytest.mark.parametrize("size", [0, 1, 11, 12, 13, 4095, 65535, 65536, 262143, 700001, 1 << 20])
def test_items_as_tools_of_redis_see_them(client, daemon, key, size):
    value = random.Random(size).randbytes(size)
    put = client.set(key, value, flags=0x01020304)
    if size == 1 << 20 and put.status == St.E2BIG:
        value = value[:-512]            # the limit counts key and header too
        put = client.set(key, value, flags=0x01020304)
    assert put.status == 0, show(put)
    at = daemon.server
    assert at.command("GETRANGE", key, 12, -1) == value
    assert item(at.command("GET", key)) == (0x01020304, put.cas, value)
    got = client.get(key)
    assert got.value == value and got.extras == bytes((1, 2, 3, 4)) and got.cas == put.cas
    assert client.delete(key).status == 0 and at.command("EXISTS", key) == 0


def test_large_values_among_small_ones(client, key):
    """Pipelined in both directions, byte for byte."""
    rand = random.Random(7)
    values = [rand.randbytes(rand.choice([0, 10, 1000, 100000, 1000000])) for _ in range(60)]
    names = [key + b":%d" % n for n in range(len(values))]
    sender = threading.Thread(target=lambda: client.sock.sendall(
        b"".join(request(Op.SET, n, v, set_extras(), opaque=i) + request(Op.GET, n, opaque=1000 + i)
                 for i, (n, v) in enumerate(zip(names, values)))))
    sender.start()
    for number, value in enumerate(values):
        put, got = client.recv(20), client.recv(20)
        assert (put.opaque, put.status) == (number, 0), show(put)
        assert got.opaque == 1000 + number and got.value == value
    sender.join(scaled(20))
    client.quiet(*(request(Op.DELETEQ, n) for n in names))


def test_every_write_makes_a_cas_of_its_own(client, daemon, key):
    """And what Redis holds is what was answered, native commands and scripts alike."""
    seen = set()
    for name, what in list(MUTATIONS.items()) * 3:
        if name == "set with cas":
            frame = client.set(key, b"5", cas=client.get(key).cas)
        elif name == "add":
            client.delete(key)
            frame = client.add(key, b"5")
        elif name == "incr":
            client.set(key, b"5")
            frame = client.incr(key, 1)
        else:
            frame = what(client, key)
        assert frame.status == 0 and frame.cas not in seen | {0}, (name, show(frame))
        assert item(daemon.server.command("GET", key))[1] == frame.cas, name
        assert client.get(key).cas == frame.cas, name
        seen.add(frame.cas)


def test_cas_values_differ_between_processes():
    """A CAS of an earlier process never fits by chance: they do not all count from one."""
    with Redis() as server:
        first = []
        for _ in range(3):
            with over(server) as daemon, daemon.client() as client:
                first.append(client.set(b"k", b"v").cas)
        assert len(set(first)) == 3 and max(first) - min(first) > 1 << 32


def test_keys_are_what_they_are(client, daemon, key):
    """A Redis finds an item under its own key; those that begin with a zero byte get one more, which
    keeps them apart from the indexes of tables."""
    server = daemon.server
    for name in (key, key + b" {x}", key + b"\r\n\xff"):
        client.set(name, b"v")
        assert server.command("GETRANGE", name, 12, -1) == b"v"
    client.set(b"\0" + key, b"zero")
    client.set(b"\0i" + key, b"index?")
    assert server.command("GETRANGE", b"\0\0" + key, 12, -1) == b"zero"
    assert server.command("GETRANGE", b"\0\0i" + key, 12, -1) == b"index?"
    assert client.get(b"\0" + key).value == b"zero"


# ---- expiry ----

def pttl_of(daemon, key):
    return daemon.server.command("PTTL", key)


def near(milliseconds, seconds):
    return (seconds - scaled(3)) * 1000 < milliseconds <= (seconds + 1) * 1000


def test_expiry_is_that_of_redis(client, daemon, key):
    month = 60 * 60 * 24 * 30
    now = int(time.time())
    steps = [
        ("set", lambda: client.set(key, b"1", expiry=100), 100),
        ("append keeps it", lambda: client.call(Op.APPEND, key, b"2"), 100),
        ("prepend keeps it", lambda: client.call(Op.PREPEND, key, b"3"), 100),
        ("incr keeps it", lambda: client.incr(key, 1), 100),
        ("set without", lambda: client.set(key, b"1"), None),
        ("touch", lambda: client.touch(key, 200), 200),
        ("replace", lambda: client.replace(key, b"2", expiry=300), 300),
        ("touch for ever", lambda: client.touch(key, 0), None),
        ("get and touch", lambda: client.gat(key, 400), 400),
        ("get and touch for ever", lambda: client.gat(key, 0), None),
        ("a month", lambda: client.set(key, b"2", expiry=month), month),
        ("a date", lambda: client.set(key, b"2", expiry=now + month + 500), month + 500),
        ("touch to a date", lambda: client.touch(key, now + month + 700), month + 700),
        ("with cas", lambda: client.set(key, b"4", expiry=50, cas=client.get(key).cas), 50),
        ("with cas, none", lambda: client.set(key, b"4", cas=client.get(key).cas), None),
        ("delete", lambda: client.delete(key), False),
        ("add", lambda: client.add(key, b"5", expiry=60), 60),
        ("delete again", lambda: client.delete(key), False),
        ("a new counter", lambda: client.incr(key, 1, 5, 70), 70),
        ("a date long ago", lambda: client.set(key, b"5", expiry=now - 1000), False),
    ]
    for name, what, seconds in steps:
        frame = what()
        assert frame.status == 0, (name, show(frame))
        left = pttl_of(daemon, key)
        if seconds is None:
            assert left == -1, (name, left)
        elif seconds is False:
            assert left == -2, (name, left)
        else:
            assert near(left, seconds), (name, left)


def test_what_expired_is_gone_on_both_sides(client, daemon, key):
    client.set(key, b"v", expiry=1)
    poll(lambda: client.get(key).status == St.ENOENT, within=4, what="the expiry")
    assert daemon.server.command("EXISTS", key) == 0
    client.set(key, b"v", expiry=1000)
    daemon.server.command("PEXPIRE", key, 1)
    poll(lambda: client.get(key).status == St.ENOENT, within=4, what="the expiry by Redis")


# ---- counters ----

EDGES = [0, 1, 9, 10, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 53) - 1, 1 << 53,
         (1 << 53) + 1, 10 ** 18 + 7, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, U64 - 2, U64 - 1]


@pytest.mark.parametrize("start", EDGES)
def test_counters_at_the_edges(client, daemon, key, start):
    """64 bits, unsigned, exactly: beyond what a Redis' own integers and Lua's numbers hold. A number
    that got shorter is padded with spaces, as memcached does it."""
    for delta in EDGES:
        client.set(key, b"%d" % start, flags=3)
        frame = client.incr(key, delta)
        up = (start + delta) % U64
        assert frame.status == 0 and frame.value == struct.pack(">Q", up), (delta, show(frame))
        flags, cas, text = item(daemon.server.command("GET", key))
        assert (flags, cas, text.rstrip(b" ")) == (3, frame.cas, b"%d" % up)
        client.set(key, b"%d" % start)
        frame = client.decr(key, delta)
        assert frame.value == struct.pack(">Q", max(0, start - delta)), (delta, show(frame))
    client.delete(key)
    frame = client.incr(key, 1, start)
    assert frame.value == struct.pack(">Q", start)
    assert item(daemon.server.command("GET", key))[2] == b"%d" % start


def test_counters_at_random(client, key):
    rand, value = random.Random(11), 12345
    client.set(key, b"%d" % value)
    sizes = [1, 8, 31, 32, 33, 52, 53, 54, 62, 63, 64]
    steps = [(rand.random() < 0.6, rand.getrandbits(rand.choice(sizes))) for _ in range(500)]
    client.send(b"".join(request(Op.INCR if up else Op.DECR, key, b"", counter_extras(delta),
                                 opaque=n) for n, (up, delta) in enumerate(steps)))
    for n, (up, delta) in enumerate(steps):
        value = (value + delta) % U64 if up else max(0, value - delta)
        frame = client.recv()
        assert frame.opaque == n and frame.value == struct.pack(">Q", value), (up, delta, show(frame))


def test_counters_of_many_clients(daemon, key):
    seen = []

    def work():
        with client_of(daemon) as client:
            seen.extend(struct.unpack(">Q", client.incr(key, 1, 1).value)[0] for _ in range(100))
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(30))
    assert sorted(seen) == list(range(1, 801))


# ---- the plain layout ----

@pytest.fixture(scope="module")
def plain():
    with Redis() as server, over(server, upstream={"redis_layout": "plain"}) as made:
        made.server = server
        yield made


def test_plain_strings_are_shared_with_clients_of_redis(plain, key):
    with client_of(plain) as client, plain.server.client() as redis:
        for value in (b"", b"v", b"short", b"exactly 12 b", bytes(range(256)) * 20):
            redis.command("SET", key, value)
            got = client.get(key)
            assert (got.value, got.extras) == (value, bytes(4)), show(got)
            assert client.set(key, value + b"!").status == 0
            assert redis.command("GET", key) == value + b"!"
        redis.command("SET", key, 41)
        assert client.incr(key, 1).value == struct.pack(">Q", 42)
        assert redis.command("INCR", key) == 43
        assert client.decr(key, 3).value == struct.pack(">Q", 40)
        assert client.call(Op.APPEND, key, b"!").status == 0
        assert client.call(Op.PREPEND, key, b"#").status == 0
        assert redis.command("GET", key) == b"#40!"
        assert client.incr(key, 1).status == St.DELTA_BADVAL
        assert client.add(key, b"v").status == St.EEXISTS
        assert client.replace(key, b"w", expiry=100).status == 0
        assert 90000 < redis.command("PTTL", key) <= 100000
        assert client.gat(key, 200).value == b"w"
        assert client.touch(key, 0).status == 0 and redis.command("PTTL", key) == -1
        assert client.delete(key).status == 0 and redis.command("EXISTS", key) == 0
        assert client.incr(key, 1, 7).value == struct.pack(">Q", 7)
        assert redis.command("GET", key) == b"7"
        # A number stays one for Redis, when it gets shorter too.
        redis.command("SET", key, 1000)
        assert client.decr(key, 1).value == struct.pack(">Q", 999)
        assert redis.command("GET", key) == b"999" and redis.command("INCR", key) == 1000
        redis.command("RPUSH", key + b"l", "x")
        refused(client.get(key + b"l"), St.NOT_SUPPORTED, "string")


def test_plain_strings_have_neither_flags_nor_cas(plain, key):
    with client_of(plain) as client:
        assert client.set(key, b"5").status == 0
        for frame in (client.set(key, b"v", flags=1), client.add(key, b"v", flags=1),
                      client.replace(key, b"v", flags=0xFFFFFFFF)):
            refused(frame, St.NOT_SUPPORTED, "flags")
        for frame in (client.set(key, b"v", cas=5), client.delete(key, cas=5),
                      client.call(Op.APPEND, key, b"v", cas=5),
                      client.call(Op.INCR, key, b"", counter_extras(1), cas=5)):
            refused(frame, St.NOT_SUPPORTED, "cas")
        assert client.get(key).value == b"5"
        assert client.set(key, b"again").status == 0


# ---- tenants that share a server ----

def tenants_of(server, *rows):
    return over(server, [dict(row, upstream="store") for row in rows], threads=2,
                upstream=PATIENT)


def fill(daemon, *names):
    """Each tenant's `k` says whose it is; it sees nothing of the others."""
    for name in names:
        with client_of(daemon, name) as client:
            assert client.set(b"k", b"of " + name.encode()).status == 0
            assert client.incr(b"n", 1, 1).status == 0
            assert Rows(client, "t").insert("r", of=name).status == 0
    for name in names:
        with client_of(daemon, name) as client:
            assert client.get(b"k").value == b"of " + name.encode()
            assert client.incr(b"n", 1).value == struct.pack(">Q", 2)
            assert Rows(client, "t").query() == [("r", {"of": name.encode()})]
            client.set(b"own", b"v")
            for other in names:
                if other != name:
                    with client_of(daemon, other) as stranger:
                        assert stranger.get(b"own").status == St.ENOENT
            client.delete(b"own")


def test_tenants_by_prefix():
    with Redis() as server, tenants_of(server, {"name": "a"}, {"name": "b", "key_prefix": "B/"}) \
            as daemon:
        fill(daemon, "a", "b")
        assert sorted(server.command("KEYS", "*")) == sorted(
            [b"a:k", b"a:n", b"a:t\0r", b"a:\0it", b"B/k", b"B/n", b"B/t\0r", b"B/\0it"])
        for name in ("a", "b"):
            with client_of(daemon, name) as client:
                refused(client.call(Op.FLUSH), St.NOT_SUPPORTED, "flush")
        assert server.command("DBSIZE") == 8


def test_tenants_by_database():
    with Redis() as server, tenants_of(server, {"name": "a", "backend_database": 3},
                                       {"name": "b", "backend_database": 5}) as daemon:
        fill(daemon, "a", "b")
        assert [server.command("DBSIZE", database=n) for n in (0, 3, 5)] == [0, 4, 4]
        prefixes = {key.split(b"k")[0] for n in (3, 5)
                    for key in server.command("KEYS", "*k", database=n)}
        assert len(prefixes) <= 2, prefixes


def test_tenants_by_user():
    """The server itself keeps them apart: each user sees its own part of the keys only."""
    users = {name: "on >pw-%s ~%s:* &* +@all -@admin" % (name, name) for name in ("a", "b")}
    with Redis(password="nobody", users=users) as server, \
            tenants_of(server, *({"name": n, "backend_user": n, "backend_password": "pw-" + n,
                                  "key_prefix": n + ":"} for n in users)) as daemon:
        fill(daemon, "a", "b")
        with server.client() as at:
            assert {row["user"] for row in at.clients()} == {"a", "b"}
            at.command("ACL", "SETUSER", "a", "resetkeys", "~other:*")
        with client_of(daemon, "a") as client, client_of(daemon, "b") as other:
            refused(client.get(b"k"), St.EACCESS, "user")
            refused(client.set(b"k", b"v"), St.EACCESS, "user")
            refused(client.incr(b"n", 1), St.EACCESS, "user")
            assert other.get(b"k").value == b"of b"
            server.command("ACL", "SETUSER", "a", "~a:*")
            assert client.get(b"k").value == b"of a"


def test_flush_of_a_tenant_touches_nobody_else():
    with Redis() as server:
        rows = [{"name": "a", "backend_database": 3}, {"name": "b", "backend_database": 5}]
        with tenants_of(server, *rows) as daemon:
            fill(daemon, "a", "b")
            with client_of(daemon, "a") as client, client_of(daemon, "b") as other:
                frame = client.call(Op.FLUSH)
                assert frame.status in (0, St.NOT_SUPPORTED), show(frame)
                left = server.command("DBSIZE", database=3)
                assert left == (4 if frame.status else 0)
                assert other.get(b"k").value == b"of b"
        with over(server, [{"name": "default", "upstream": "store"}]) as daemon, \
                client_of(daemon) as client:
            client.set(b"k", b"v")
            assert client.call(Op.FLUSH).status == 0
            assert client.get(b"k").status == St.ENOENT
            assert server.command("DBSIZE") == 0
            assert server.command("DBSIZE", database=5) == 4


def test_flush_where_it_is_allowed():
    with Redis() as server:
        setup = config(server, [{"name": n, "upstream": "store"} for n in ("a", "b")],
                       upstream={"allow_flush": True})
        with Headgate(setup) as daemon, client_of(daemon, "a") as client:
            client.set(b"k", b"v")
            assert client.call(Op.FLUSH).status == 0
            assert client.get(b"k").status == St.ENOENT


# ---- indexes of tables ----

def index_and_rows(server, table, prefix=b"", database=0):
    """What the index of a table says, and which rows there are."""
    with server.client(database, timeout=10) as at:
        index = at.command("ZRANGE", prefix + b"\0i" + table, 0, -1)
        head = prefix + table + b"\0"
        # "*" of the name itself cannot occur: tables of these tests have plain names
        found = [key[len(head):] for key in at.command("KEYS", head + b"*")]
    return index, sorted(found)


def test_the_index_goes_with_the_rows(client, daemon, key):
    rows = Rows(client, "t%d" % time.monotonic_ns())
    table = rows.name.encode()
    for name in ("b", "a", "c", "\x01", "ab"):
        assert rows.insert(name, n=1).affected == 1
    index, found = index_and_rows(daemon.server, table)
    assert index == found == [b"\x01", b"a", b"ab", b"b", b"c"]
    assert rows.delete("ab").affected == 1 and rows.delete("never").affected == 0
    rows.batch(*[batch_item(T.DELETE, n) for n in ("a", "b")], batch_item(T.INSERT, "z", {"n": 1}))
    index, found = index_and_rows(daemon.server, table)
    assert index == found == [b"\x01", b"c", b"z"]
    # What was deleted behind our back is in no range, nor is an index entry a row.
    daemon.server.command("DEL", table + b"\0c")
    assert [row for row, _ in rows.query()] == ["\x01", "z"]
    for name in ("\x01", "z"):
        rows.delete(name)
    assert daemon.server.command("EXISTS", b"\0i" + table) == 0


@pytest.mark.parametrize("ranges", ["on", "off"])
def test_ranges_can_be_switched_off(ranges):
    with Redis() as server, over(server, upstream={"ranges": ranges}) as daemon, \
            client_of(daemon) as client:
        rows = Rows(client, "t")
        assert rows.insert("r", n=1).affected == 1 and rows.get("r") == {"n": 1}
        reply = rows.ask("a", "z")
        if ranges == "on":
            assert rows_of(reply.body) == [("r", {"n": 1})]
        else:
            assert reply.status == St.NOT_SUPPORTED and "range" in reply.text, reply
        assert server.command("EXISTS", b"\0it") == (ranges == "on")


@pytest.mark.parametrize("threads", [1, 2])
def test_index_and_rows_agree_after_a_kill(threads):
    """The process is killed in the middle of its work, again and again: no row without its index
    entry, no entry without its row."""
    with Redis() as server:
        for turn in range(4):
            daemon = over(server, threads=threads)
            stop = threading.Event()
            done = [0]

            def work(number):
                rand = random.Random(turn * 100 + number)
                try:
                    with daemon.client(timeout=5) as client:
                        rows = Rows(client, "t")
                        while not stop.is_set():
                            names = ["r%d" % rand.randrange(200) for _ in range(20)]
                            rows.batch(*[batch_item(*rand.choice([
                                (T.INSERT_OR_UPDATE, n, {"n": turn}), (T.DELETE, n),
                                (T.INSERT, n, {"m": 1}), (T.REPLACE, n, {"x": b"y" * 50})]))
                                for n in names])
                            done[0] += 1
                except Exception:       # the daemon is killed under it
                    return
            workers = [threading.Thread(target=work, args=(n,)) for n in range(6)]
            for worker in workers:
                worker.start()
            poll(lambda: done[0] > 60, 20, what="work")
            daemon.process.kill()
            stop.set()
            for worker in workers:
                worker.join(scaled(20))
            daemon.stop(check=False)
            poll(lambda: not server.client().clients()[1:], what="its connections gone")
            index, found = index_and_rows(server, b"t")
            assert index == found, (turn, set(index) ^ set(found))
            assert found, "nothing was written"
        with over(server) as daemon, daemon.client() as client:
            rows = Rows(client, "t")
            told = rows.query(limit=1000)
            assert [row.encode() for row, _ in told] == found
            assert all(rows.get(row) == columns for row, columns in told)


# ---- where a server listens ----

def test_a_unix_socket(key):
    with Redis(unix=True) as server, over(server) as daemon, client_of(daemon) as client:
        assert client.set(key, b"v").status == 0 and client.incr(b"n", 1, 5).status == 0
        assert server.command("GETRANGE", key, 12, -1) == b"v"
