"""test_redis_hostile - servers that speak Redis' protocol wrongly, late, too much or too little:
that costs their connection, a request at most, and never the process or another tenant."""
# SPDX-License-Identifier: BSD-3-Clause

import threading
import time

import pytest

from mcbin import Op, St, poll, request, scaled, set_extras, show
from redis_tools import DOWN, client_of, config, upstream
from redisservers import CUT, HANG, FakeRedis, Redis
from respbin import bulk, error, integer, status
from servers import Headgate, memory_factor

WRONG = (St.EINTERNAL, *DOWN)
HEADER = bytes(11) + b"\1"


@pytest.fixture(scope="module")
def real():
    with Redis() as server:
        yield server


def about(key, answer):
    """A handler that answers whatever names that key, and nothing else."""
    def handler(connection, arguments):
        if any(key in bytes(argument) for argument in arguments[1:]):
            return answer() if callable(answer) else answer
        return None
    return handler


class Pair:
    """A daemon over a server that a test makes behave badly, and over a good one."""

    def __init__(self, real, handler, **options):
        self.fake = FakeRedis(real, handler)
        tenants = [{"name": "default", "upstream": "store"}, {"name": "good", "upstream": "good"}]
        setup = config(self.fake, tenants, **options)
        setup["upstreams"].append(upstream(real, name="good", database=9))
        self.daemon = Headgate(setup)

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        self.daemon.stop(check=kind is None)
        self.fake.stop()


def still_well(pair, client):
    poll(lambda: client.set(b"k", b"v").status == 0 and client.get(b"k").value == b"v", 5,
         what="service after the nonsense")
    with pair.daemon.client(bucket="good") as other:
        assert other.set(b"k", b"of good").status == 0 and other.get(b"k").value == b"of good"


# ---- error replies, one by one ----

ERRORS = [
    ("LOADING Redis is loading the dataset in memory", (St.ETMPFAIL, *DOWN, St.QUEUE_TIMEOUT),
     ()),
    ("BUSY Redis is busy running a script. You can only call SCRIPT KILL", St.EBUSY, ("busy",)),
    ("OOM command not allowed when used memory > 'maxmemory'.", St.ENOMEM, ("memory",)),
    ("READONLY You can't write against a read only replica.", (St.ETMPFAIL, *DOWN), ()),
    ("MISCONF Redis is configured to save RDB snapshots, but it's unable to", St.ETMPFAIL,
     ("save",)),
    ("NOREPLICAS Not enough good replicas to write.", St.ETMPFAIL, ("replicas",)),
    ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is 'no'.", St.ETMPFAIL,
     ("replica",)),
    ("NOAUTH Authentication required.", (St.EINTERNAL, *DOWN), ("login",)),
    ("NOPERM this user has no permissions to run the 'get' command", St.EACCESS, ("user",)),
    ("WRONGTYPE Operation against a key holding the wrong kind of value", St.NOT_SUPPORTED,
     ("string",)),
    ("MOVED 866 127.0.0.1:1", St.EINTERNAL, ("cluster",)),
    ("CLUSTERDOWN Hash slot not served", (St.ETMPFAIL, *DOWN), ("cluster",)),
    ("ERR max number of clients reached", St.EBUSY, ("clients",)),
    ("ERR unknown command 'GET', with args beginning with: 'x'", St.NOT_SUPPORTED, ("command",)),
    ("NEVERHEARD of it", St.EINTERNAL, ("NEVERHEARD of it",)),
    ("", St.EINTERNAL, ()),
    ("ERR \x1b[31m\x00\xff" + "x" * 3000, St.EINTERNAL, ("xxx",)),
]


@pytest.mark.parametrize("said,statuses,words", ERRORS, ids=[row[0].split(" ")[0] or "empty"
                                                             for row in ERRORS])
def test_an_error_has_its_status_and_text(real, said, statuses, words):
    statuses = statuses if isinstance(statuses, tuple) else (statuses,)
    with Pair(real, about(b"bad", error(said.encode("latin-1")))) as pair, \
            client_of(pair.daemon) as client:
        for call in (lambda: client.get(b"bad"), lambda: client.set(b"bad", b"v"),
                     lambda: client.call(Op.APPEND, b"bad", b"v"),
                     lambda: client.delete(b"bad"), lambda: client.incr(b"bad", 1, 1)):
            frame = call()
            assert frame.status in statuses, show(frame)
            text = frame.value.decode()        # whatever the server said, this is text
            assert text and len(text) < 1000 and text.isprintable(), text
            for word in words:
                assert word.lower() in text.lower(), text
        still_well(pair, client)


def test_a_server_that_lets_nobody_in(real):
    """What it says at the door, however long, reaches the client; the log tells who was refused."""
    said = "DENIED Redis is running in protected mode because protected mode is enabled" + 40 * " etc."
    login = {"user": "ann\nben", "password": "pw-of-ann", "database": 3}
    with Pair(real, lambda connection, arguments: error(said), upstream=login) as pair, \
            client_of(pair.daemon) as client:
        for _ in range(3):
            frame = client.get(b"k")
            assert frame.status == St.EINTERNAL and b"protected mode" in frame.value, show(frame)
        log = pair.daemon.stderr()
        assert 'user="ann\\x0aben" database=3' in log and "protected mode" in log, log
        assert "pw-of-ann" not in log


def test_an_error_for_a_while(real):
    """A server that reads its data in for half a second: then it serves, and nothing is lost."""
    until = [0.0]

    def handler(connection, arguments):
        loading = time.monotonic() < until[0]
        return error("LOADING Redis is loading the dataset in memory") if loading else None
    with Pair(real, handler) as pair, client_of(pair.daemon) as client:
        assert client.set(b"k", b"v").status == 0
        until[0] = time.monotonic() + 0.5
        statuses = set()
        while time.monotonic() < until[0]:
            statuses.add(client.get(b"k").status)
        assert statuses <= {0, St.ETMPFAIL, *DOWN, St.QUEUE_TIMEOUT}, statuses
        poll(lambda: client.get(b"k").value == b"v", 5, what="service again")
        still_well(pair, client)


# ---- nonsense ----

NONSENSE = {
    "text": b"hello\r\n",
    "binary": bytes(range(128, 256)) * 4 + b"\r\n",
    "memcached": b"VALUE bad 0 1\r\nx\r\nEND\r\n",
    "http": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "an integer": integer(7),
    "a status": status("OK"),
    "another status": status("QUEUED"),
    "a list": b"*2\r\n$1\r\na\r\n$1\r\nb\r\n",
    "an empty list": b"*0\r\n",
    "a list of nothing": b"*-1\r\n",
    "a deep list": b"*1\r\n" * 5000 + b":1\r\n",
    "a long list": b"*2147483647\r\n",
    "a list of errors": b"*2\r\n-ERR a\r\n-ERR b\r\n",
    "a negative length": b"$-2\r\n",
    "a length of letters": b"$12a\r\nhello\r\n",
    "an enormous length": b"$9223372036854775807\r\n",
    "a length over 64 bits": b"$99999999999999999999999\r\n",
    "a length over all limits": b"$536870913\r\nabc",
    "a bulk string without its end": b"$16\r\n" + HEADER + b"vvvvXX",
    "an integer of letters": b":12x\r\n",
    "an enormous integer": b":99999999999999999999999\r\n",
    "an empty line": b"\r\n",
    "a line that never ends": b"+" + b"x" * (1 << 20),
    "a map of RESP3": b"%1\r\n+a\r\n+b\r\n",
    "a push of RESP3": b">2\r\n+message\r\n+x\r\n",
    "null of RESP3": b"_\r\n",
    "a double of RESP3": b",1.5\r\n",
    "a short item": bulk(b"short"),
    "an empty item": bulk(b""),
    "twice": bulk(HEADER + b"of bad") * 2,
    "twice nothing": bulk(None) * 2,
    "a hundred times": bulk(HEADER + b"of bad") * 100,
    "half a reply": b"$100\r\n" + HEADER,
    "a message": b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
}
MAY_BE_TRUE = ("twice", "twice nothing", "a hundred times", "a status")
MAY_BE_A_MISS = ("twice nothing", "a list of nothing")


@pytest.mark.parametrize("kind", list(NONSENSE))
def test_nonsense_costs_its_connection_only(real, kind):
    with Pair(real, about(b"bad", NONSENSE[kind]), threads=2,
              upstream={"reconnect_max_ms": 50}) as pair, \
            client_of(pair.daemon, timeout=5) as client:
        assert client.set(b"k", b"v").status == 0
        plain_set = lambda: client.set(b"bad", b"v")
        for op in (lambda: client.get(b"bad"), lambda: client.gat(b"bad", 100),
                   plain_set, lambda: client.incr(b"bad", 1, 1),
                   lambda: client.set(b"bad", b"v", cas=9), lambda: client.delete(b"bad")):
            begun = time.monotonic()
            frame = op()
            assert time.monotonic() - begun < scaled(2), "it hangs"
            if frame.status == 0 and frame.opcode == Op.GET:
                assert kind in MAY_BE_TRUE and frame.value == b"of bad", show(frame)
            elif frame.status == 0 and op is plain_set:
                assert kind == "a status", show(frame)
            elif frame.status != 0:
                assert frame.status in WRONG + (St.ENOENT, St.EEXISTS, St.NOT_STORED,
                                                St.DELTA_BADVAL, St.NOT_SUPPORTED, St.E2BIG), \
                    show(frame)
                assert frame.opcode != Op.GET or frame.status != St.ENOENT \
                    or kind in MAY_BE_A_MISS, show(frame)
            still_well(pair, client)


def test_what_comes_unasked_is_no_answer(real):
    """A reply that nobody waits for ends the connection, and is nobody's value."""
    fake = []

    def handler(connection, arguments):
        if arguments[0].upper() == b"GET" and arguments[1] == b"push":
            with pair.fake.lock:
                sock = pair.fake.open[connection]

            def later():
                time.sleep(0.03)
                try:
                    sock.sendall(bulk(HEADER + b"unasked"))
                except OSError:
                    pass
                fake.append(1)
            threading.Thread(target=later).start()
        return None
    with Pair(real, handler, upstream={"pool_max_connections": 1}) as pair, \
            client_of(pair.daemon) as client:
        for turn in range(5):
            poll(lambda: client.get(b"push").status == St.ENOENT, 5, what="service")
            poll(lambda: len(fake) > turn, what="the stray reply sent")
            for n in range(20):
                frame = client.get(b"other%d" % n)
                assert frame.status in (St.ENOENT, *DOWN), show(frame)
        still_well(pair, client)


def test_replies_out_of_turn_are_not_believed(real):
    """Two commands answered in the wrong order: where the kinds of their replies differ that is
    noticed, and neither is told a success or a value."""
    held = {}

    def handler(connection, arguments):
        if b"first" in arguments[1:]:
            held[connection] = bulk(HEADER + b"of first")
            return b""
        if b"second" in arguments[1:]:
            return status("OK") + held.pop(connection, b"")
        return None
    with Pair(real, handler, upstream={"pool_max_connections": 1}) as pair, \
            client_of(pair.daemon) as client:
        assert client.set(b"k", b"v").status == 0
        for _ in range(5):
            client.send(request(Op.GET, b"first", opaque=1) +
                        request(Op.SET, b"second", b"v", set_extras(), opaque=2))
            frames = [client.recv(), client.recv()]
            assert [f.opaque for f in frames] == [1, 2]
            assert all(f.status in WRONG for f in frames), [show(f) for f in frames]
            still_well(pair, client)


@pytest.mark.parametrize("length", [1, 3, 5, 17, 60])
def test_a_connection_cut_within_a_reply(real, length):
    whole = bulk(HEADER + b"x" * 100)

    def cut_off(connection, arguments):
        if arguments[1:] == [b"bad"]:
            with pair.fake.lock:
                sock = pair.fake.open[connection]
            sock.sendall(whole[:length])
            return CUT
        return None
    with Pair(real, cut_off) as pair, client_of(pair.daemon) as client:
        for _ in range(3):
            frame = client.get(b"bad")
            assert frame.status in DOWN, show(frame)
            still_well(pair, client)


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_replies_in_pieces_are_put_together(real, step):
    """The same bytes, in many segments: lines and values cut anywhere."""
    value = bytes(range(256)) * (1 if step < 7 else 100)

    def pieces(connection, arguments):
        if b"cut" not in arguments[1:]:
            return None
        with pair.fake.lock:
            sock = pair.fake.open[connection]
        reply = bulk(HEADER + value)
        for at in range(0, len(reply), step):
            sock.sendall(reply[at:at + step])
            if at % 64 == 0:
                time.sleep(0.0005)
        return b""
    with Pair(real, pieces) as pair, client_of(pair.daemon) as client:
        for _ in range(3):
            frame = client.get(b"cut")
            assert frame.status == 0 and frame.value == value, show(frame)
        still_well(pair, client)


LOGINS = {
    "garbage": b"hello there\r\n", "an integer": integer(3), "a list": b"*1\r\n:1\r\n",
    "an error": error("ERR no"), "a cut": CUT, "silence": HANG, "nil": b"$-1\r\n",
    "a deep list": b"*1\r\n" * 3000, "half a line": b"+O",
}


@pytest.mark.parametrize("kind", list(LOGINS))
def test_a_login_answered_with_nonsense(real, kind):
    """No connection comes up: refusals within their time, no hang; then it behaves, and serves."""
    behave = threading.Event()

    def handler(connection, arguments):
        return None if behave.is_set() else LOGINS[kind]
    with Pair(real, handler, upstream={"user": "tests", "password": "tests-password",
                                       "database": 2}) as pair, \
            client_of(pair.daemon) as client:
        for _ in range(5):
            begun = time.monotonic()
            frame = client.get(b"k")
            assert frame.status in WRONG + (St.QUEUE_TIMEOUT,), show(frame)
            assert time.monotonic() - begun < scaled(1.5)
        behave.set()
        still_well(pair, client)
        names = [c[0].upper() for c in pair.fake.commands()]
        assert b"AUTH" in names and b"SELECT" in names, set(names)


# ---- late ----

def test_late_replies_never_reach_the_wrong_request(real):
    """Answers that come after their requests were given up: whoever asks next gets its own."""
    def handler(connection, arguments):
        if arguments[0].upper() != b"GET":
            return None
        key = arguments[1]
        if key.endswith(b":7") and key.split(b":")[1] in (b"2", b"6", b"9"):
            time.sleep(0.12)
        return bulk(HEADER + b"of " + key)
    counts = {"good": 0, "error": 0}
    wrong = []

    def worker(number):
        with pair.daemon.client(timeout=10) as client:
            for turn in range(12):
                names = [b"%d:%d:%d" % (number, turn, n) for n in range(20)]
                client.send(b"".join(request(Op.GET, n, opaque=i) for i, n in enumerate(names)))
                for index, name in enumerate(names):
                    frame = client.recv()
                    if frame.opaque != index or frame.status == 0 and frame.value != b"of " + name:
                        wrong.append((name, show(frame)))
                    counts["good" if frame.status == 0 else "error"] += 1
    with Pair(real, handler, threads=2, upstream={
            "backend_timeout_ms": 80, "pool_max_connections": 4, "pool_depth": 16}) as pair:
        threads = [threading.Thread(target=worker, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(scaled(60))
        assert not wrong, wrong[:5]
        assert counts["good"] > 100 and counts["error"] > 5, counts
        with pair.daemon.client(timeout=10) as client:
            poll(lambda: client.get(b"calm").value == b"of calm", 5, what="service again")


def test_a_sent_write_is_never_repeated(real):
    """The connection breaks with the write under way: an error, and no second attempt."""
    with Pair(real, about(b"once", CUT)) as pair, client_of(pair.daemon) as client:
        for number, call in enumerate((lambda: client.set(b"once", b"v"),
                                       lambda: client.incr(b"once", 1, 1),
                                       lambda: client.call(Op.APPEND, b"once", b"v"),
                                       lambda: client.delete(b"once"))):
            poll(lambda: client.set(b"k", b"v").status == 0, 3, what="a good connection")
            frame = call()
            assert frame.status in DOWN, show(frame)
            tried = sum(b"once" in c for c in pair.fake.commands())
            assert tried == number + 1, "sent %d times" % (tried - number)


def test_a_script_that_is_never_known(real):
    """Loaded again and again in vain: the request is refused in its time, not retried for ever."""
    def handler(connection, arguments):
        if arguments[0].upper() in (b"EVALSHA", b"EVAL", b"FCALL"):
            return error("NOSCRIPT No matching script. Please use EVAL.")
        return None
    with Pair(real, handler) as pair, client_of(pair.daemon) as client:
        begun = time.monotonic()
        for _ in range(5):
            frame = client.call(Op.APPEND, b"k", b"v")
            assert frame.status not in (0, St.ENOENT, St.NOT_STORED), show(frame)
        assert time.monotonic() - begun < scaled(3)
        assert len(pair.fake.commands()) < 200
        still_well(pair, client)


@pytest.mark.parametrize("answer", ["MOVED 1 127.0.0.1:%d", "ASK 1 127.0.0.1:%d", "MOVED",
                                    "ASK x y", "MOVED 99999 127.0.0.1:1", "MOVED 1 :0",
                                    "TRYAGAIN Multiple keys request during rehashing of slot"])
@pytest.mark.parametrize("kind", ["redis", "redis-cluster"])
def test_redirects_for_ever(real, kind, answer):
    """Sent in a circle, or nowhere: refused within its time."""
    with Redis() as backend:
        def handler(connection, arguments):
            if arguments[0].upper() == b"CLUSTER":
                port = integer(fake.port)
                node = b"*3\r\n$9\r\n127.0.0.1\r\n" + port + b"$40\r\n" + b"a" * 40 + b"\r\n"
                return b"*1\r\n*3\r\n:0\r\n:16383\r\n" + node
            if b"bad" in arguments:
                return error(answer % fake.port if "%d" in answer else answer)
            return None
        fake = FakeRedis(backend, handler)
        setup = {"name": "store", "kind": kind, "servers": [{"address": fake.where}],
                 "backend_timeout_ms": 400, "queue_timeout_ms": 400}
        with Headgate({"upstreams": [setup]}) as daemon, client_of(daemon) as client:
            poll(lambda: client.set(b"k", b"v").status == 0, 5, what="service")
            for call in (lambda: client.get(b"bad"), lambda: client.set(b"bad", b"v"),
                         lambda: client.incr(b"bad", 1, 1)):
                begun = time.monotonic()
                frame = call()
                assert frame.status not in (0, St.ENOENT), show(frame)
                assert time.monotonic() - begun < scaled(2.5)
            assert len([c for c in fake.commands() if b"bad" in c]) < 300
            poll(lambda: client.get(b"k").value == b"v", 5, what="service")
        fake.stop()


# ---- slow and hanging ----

def test_memory_of_a_server_that_hangs_is_bounded(real):
    with Pair(real, about(b"big", HANG), upstream={
            "backend_timeout_ms": 300, "queue_timeout_ms": 300,
            "pool_max_connections": 2}) as pair:
        before = pair.daemon.process.rss_bytes()
        clients = [pair.daemon.client(timeout=10) for _ in range(40)]
        for client in clients:
            client.send(b"".join(request(Op.SET, b"big%d" % n, b"v" * 20000, set_extras(),
                                         opaque=n) for n in range(20)) +
                        request(Op.NOOP, opaque=99))
        for client in clients:
            frames = client.replies_until(99, timeout=10)
            assert [f.opaque for f in frames] == list(range(20))
            assert all(f.status in (St.ETMPFAIL, St.EBUSY) for f in frames), show(frames[0])
            client.close()
        assert pair.daemon.process.rss_bytes() - before < (32 << 20) * memory_factor()
        with client_of(pair.daemon) as client:
            still_well(pair, client)


def test_a_value_that_never_ends_does_not_fill_the_memory(real):
    """It claims a value of 500 MiB and sends: what is read of it stays within the limits."""
    def handler(connection, arguments):
        if b"huge" not in arguments:
            return None
        with pair.fake.lock:
            sock = pair.fake.open[connection]
        sock.sendall(b"$524288000\r\n")
        for _ in range(500):
            sock.sendall(bytes(1 << 20))
        return b"\r\n"
    with Pair(real, handler) as pair, client_of(pair.daemon) as client:
        before = pair.daemon.process.rss_bytes()
        frame = client.get(b"huge")
        assert frame.status in WRONG + (St.E2BIG,), show(frame)
        still_well(pair, client)
        assert pair.daemon.process.rss_bytes() - before < (64 << 20) * memory_factor()
