"""test_failures - servers that die, hang, come back, answer late or talk nonsense: live values
arrive, the rest is told so under its own opaque, nobody gets somebody else's value, and the server
is tried again carefully."""
# SPDX-License-Identifier: BSD-3-Clause

import threading
import time

import pytest

from mcbin import Client, Feature, Op, St, poll, request, response, scaled, set_extras, show
from redisservers import Redis
from servers import FakeBackend, Headgate, Memcached, memory_factor

TIMEOUT_MS = 400
DOWN = (St.BACKEND_DOWN, St.BACKEND_TIMEOUT)


def config(where, kind="memcached", **options):
    upstream = {"name": "store", "kind": kind, **({} if kind == "redis" else {"ring": "modula"}),
                "backend_timeout_ms": TIMEOUT_MS, "connect_timeout_ms": 300,
                "queue_timeout_ms": TIMEOUT_MS, "reconnect_max_ms": 300}
    upstream.update(options.pop("upstream", {}))
    upstream["servers"] = [{"address": address} for address in where]
    return dict({"upstreams": [upstream], "tenants": [{"name": "default", "upstream": "store"}]},
                **options)


# ---- a multiget over two servers, one of which fails in the middle ----

class Pair:
    """Two memcacheds, a daemon over both, and keys whose server is known."""

    def __init__(self, **options):
        self.memcacheds = [Memcached(memory_mb=32), Memcached(memory_mb=32)]
        # Under control of its throughput a new server has few tickets, and one that hangs all.
        options["upstream"].update(execution_control="fixed", read_tickets=1024, write_tickets=1024)
        self.daemon = Headgate(config([m.where for m in self.memcacheds], **options))
        self.client = self.daemon.client(timeout=10)
        self.keys = [b"pair:%d" % number for number in range(400)]
        assert self.client.quiet(*(request(Op.SETQ, k, b"of " + k, set_extras())
                                   for k in self.keys)) == []
        self.home = {}
        for number, server in enumerate(self.memcacheds):
            with Client(server.address) as direct:
                for frame in direct.quiet(*(request(Op.GETKQ, k) for k in self.keys)):
                    self.home[frame.key] = number
        counts = [list(self.home.values()).count(number) for number in (0, 1)]
        assert min(counts) > 100 and sum(counts) == 400, counts

    def multiget(self, mark=0xFFFF):
        self.client.send(b"".join(request(Op.GETKQ, k, opaque=n) for n, k in enumerate(self.keys))
                         + request(Op.NOOP, opaque=mark))

    def stop(self):
        self.client.close()
        self.daemon.stop()
        for server in self.memcacheds:
            server.stop()


@pytest.fixture(params=["error", "miss"])
def pair(request):
    made = Pair(upstream={"multiget_backend_error": request.param})
    made.mode = request.param
    yield made
    made.stop()


def check_multiget(pair, frames, dead, statuses, some_of_dead_may_live=False):
    """All values of the live server, in order; the others as configured, each once."""
    opaques = [frame.opaque for frame in frames]
    assert opaques == sorted(set(opaques)), "out of order or twice"
    told = {frame.opaque: frame for frame in frames}
    for number, key in enumerate(pair.keys):
        frame = told.get(number)
        if pair.home[key] != dead:
            assert frame and frame.status == 0 and frame.value == b"of " + key, \
                "a live server's key: %s" % (show(frame) if frame else key)
        elif some_of_dead_may_live and frame and frame.status == 0:
            assert frame.value == b"of " + key
        elif pair.mode == "miss":
            assert frame is None, show(frame)
        else:
            assert frame and frame.status in statuses, show(frame) if frame else key
            assert frame.opcode == Op.GETKQ and frame.value and not frame.cas, show(frame)


@pytest.mark.parametrize("xerror", [True, False])
def test_server_killed_in_the_middle_of_a_multiget(pair, xerror):
    statuses = DOWN if xerror else (St.ETMPFAIL,)
    pair.client.hello(*([Feature.XERROR] if xerror else []))
    pair.memcacheds[1].pause()
    pair.multiget()
    begun = time.monotonic()
    first = pair.client.recv()
    assert first.status == 0 or pair.home[pair.keys[0]] == 1, show(first)
    pair.memcacheds[1].kill()
    frames = [first] + pair.client.replies_until(0xFFFF)
    assert time.monotonic() - begun < scaled(2 * TIMEOUT_MS / 1000)
    check_multiget(pair, frames, 1, statuses)
    assert pair.client.silent(0.05), "one answer to the NOOP"
    pair.multiget(0xFFFE)
    begun = time.monotonic()
    check_multiget(pair, pair.client.replies_until(0xFFFE), 1, statuses)
    assert time.monotonic() - begun < scaled(0.3), "a server known to be dead is not waited for"


def test_server_paused_in_the_middle_of_a_multiget(pair):
    pair.client.hello(Feature.XERROR)
    pair.memcacheds[0].pause()
    pair.multiget()
    begun = time.monotonic()
    frames = pair.client.replies_until(0xFFFF)
    took = time.monotonic() - begun
    pair.memcacheds[0].resume()
    # Not more wait at a time than a connection carries; the rest gives up waiting for one.
    check_multiget(pair, frames, 0, DOWN + (St.QUEUE_TIMEOUT,))
    assert 0.8 * TIMEOUT_MS / 1000 < took < scaled(2 * TIMEOUT_MS / 1000 + 0.3), took

    def whole():
        pair.multiget(0xFFFE)
        frames = pair.client.replies_until(0xFFFE)
        return len([f for f in frames if f.status == 0 and f.value == b"of " + f.key]) == 400
    poll(whole, 5, what="all values after the pause")


def test_server_restarted_in_the_middle_of_a_multiget(pair):
    """It comes back empty: its keys are misses or errors until it is trusted again."""
    pair.client.hello(Feature.XERROR)
    pair.memcacheds[1].pause()
    pair.multiget()
    pair.memcacheds[1].kill()
    pair.memcacheds[1].restart()
    frames = pair.client.replies_until(0xFFFF)
    seen = [f for f in frames if f.status]
    assert all(f.status in DOWN for f in seen), [show(f) for f in seen[:3]]
    live = {f.opaque: f.value for f in frames if f.status == 0}
    for number, key in enumerate(pair.keys):
        if pair.home[key] == 0:
            assert live.get(number) == b"of " + key
    key = next(k for k in pair.keys if pair.home[k] == 1)
    poll(lambda: pair.client.set(key, b"again").status == 0, 5, what="the server used again")
    assert pair.client.get(key).value == b"again"


def test_loud_gets_say_the_error_whatever_quiet_ones_do(pair):
    pair.client.hello(Feature.XERROR)
    pair.memcacheds[1].kill()
    key = next(k for k in pair.keys if pair.home[k] == 1)
    frame = pair.client.get(key)
    assert frame.status in DOWN, show(frame)
    assert pair.client.set(key, b"v").status in DOWN
    frames = pair.client.quiet(request(Op.SETQ, key, b"v", set_extras(), opaque=4))
    assert [(f.opaque, f.status in DOWN) for f in frames] == [(4, True)]


# ---- one server: coming and going ----

@pytest.fixture(params=["memcached", "redis"])
def server(request):
    """A server that a test may kill."""
    made = Redis() if request.param == "redis" else Memcached(memory_mb=32)
    made.kind = request.param
    yield made
    made.stop()


def test_start_without_the_server_then_it_comes(server):
    server.kill()
    with Headgate(config([server.where], server.kind)) as daemon, daemon.client() as client:
        client.hello(Feature.XERROR)
        assert client.get(b"k").status in DOWN
        begun = time.monotonic()
        assert client.get(b"k").status in DOWN
        assert time.monotonic() - begun < scaled(0.2), "known to be down: answered at once"
        server.restart()
        poll(lambda: client.set(b"k", b"v").status == 0, 5, what="the server in use")


def test_server_restarted_while_idle(server):
    """The lost connections are noticed, and the next request does not fail for them."""
    with Headgate(config([server.where], server.kind)) as daemon, daemon.client() as client:
        client.hello(Feature.XERROR)
        for number in range(5):
            assert client.set(b"k", b"%d" % number).status == 0
            server.kill()
            server.restart()
            poll(lambda: client.set(b"k", b"v").status == 0, 5, what="the server in use again")


def test_idle_connections_cut_by_the_server():
    fake = FakeBackend()
    with Headgate(config([fake.where])) as daemon, daemon.client() as client:
        for number in range(10):
            assert client.set(b"k%d" % number, b"v").status == 0
            fake.cut()
            poll(lambda: client.stat("upstreams")["store:0:connections"] == "0",
                 what="the end of the idle connection noticed")
            frame = client.get(b"k%d" % number)
            assert frame.status == 0, "round %d: %s" % (number, show(frame))
    fake.stop()


def test_eject_servers():
    memcacheds = [Memcached(memory_mb=32), Memcached(memory_mb=32)]
    setup = config([m.where for m in memcacheds], upstream={"eject_servers": True})
    with Headgate(setup) as daemon, daemon.client() as client:
        memcacheds[1].kill()
        ok = lambda: all(client.set(b"k%d" % n, b"v").status == 0 for n in range(20))
        poll(ok, 5, what="the keys of the dead server on the living one")
        assert all(client.get(b"k%d" % n).value == b"v" for n in range(20))
    for server in memcacheds:
        server.stop()


@pytest.mark.parametrize("window", [0, 8])
def test_hanging_server_is_given_up_and_found_again(server, window):
    """Once enough time-outs over several keys are counted, answers come at once; after the pause
    it is used again. With a window a new tenant's first requests find no connection that is not
    stuck: they wait for queue_timeout_ms, until it is given up."""
    setup = config([server.where], server.kind,
                   upstream={"backend_timeout_ms": 100, "tenant_window": window})
    refusals = DOWN + ((St.QUEUE_TIMEOUT,) if window > 0 else ())
    with Headgate(setup) as daemon:
        with daemon.client(timeout=10) as client:
            client.hello(Feature.XERROR)
            assert client.set(b"k", b"v").status == 0
            server.pause()

            def at_once():
                begun = time.monotonic()
                frames = client.quiet(*(request(Op.GET, b"k%d" % n) for n in range(30)))
                took = time.monotonic() - begun
                wrong = [show(f) for f in frames if f.status not in refusals]
                assert len(frames) == 30 and not wrong, wrong[:3]
                return took < 0.05 and all(f.status in DOWN for f in frames)
            poll(at_once, within=10, what="refusals at once")
            server.resume()
            poll(lambda: client.get(b"k").value == b"v", 5, what="the server in use again")


def test_a_request_has_one_deadline():
    """However patient the backend's time-out, the request is answered by its own deadline."""
    fake = FakeBackend(lambda connection, frame: None)
    setup = config([fake.where], request_deadline_ms=400, throttle_max_wait_ms=100,
                   upstream={"backend_timeout_ms": 30000, "queue_timeout_ms": 30000,
                             "execution_control": "fixed"})
    with Headgate(setup) as daemon, daemon.client(timeout=10) as client:
        begun = time.monotonic()
        frames = client.quiet(*(request(Op.GET, b"k%d" % n, opaque=n) for n in range(100)))
        took = time.monotonic() - begun
        assert len(frames) == 100 and all(f.status in (St.ETMPFAIL, St.EBUSY) for f in frames)
        assert 0.3 < took < scaled(1.0), took
    fake.stop()


def test_servers_on_unix_sockets_and_ipv6():
    memcacheds = [Memcached(memory_mb=32, unix=True), Memcached(memory_mb=32, host="::1"),
                  Memcached(memory_mb=32)]
    with Headgate(config([m.where for m in memcacheds])) as daemon, daemon.client() as client:
        names = [b"k%d" % n for n in range(60)]
        assert client.quiet(*(request(Op.SETQ, n, n, set_extras()) for n in names)) == []
        assert [f.value for f in client.quiet(*(request(Op.GETQ, n) for n in names))] == names
        held = []
        for server in memcacheds:
            with Client(server.address) as direct:
                held.append(len(direct.quiet(*(request(Op.GETQ, n) for n in names))))
        assert sum(held) == 60 and min(held) > 5, held
    for server in memcacheds:
        server.stop()


# ---- the breaker ----

def test_one_probe_and_no_client_request_as_one():
    """While the server is out: refusals at once. Back: one connection, one NOOP; nothing else until
    it is answered."""
    holding = threading.Event()
    release = threading.Event()

    def handler(connection, frame):
        if frame.opcode == Op.NOOP and holding.is_set():
            release.wait(scaled(5))
        FakeBackend.store(connection, frame)
    fake = FakeBackend(handler)
    with Headgate(config([fake.where], threads=2, upstream={"reconnect_max_ms": 100})) as daemon:
        clients = [daemon.client() for _ in range(8)]
        for client in clients:
            client.hello(Feature.XERROR)
            assert client.set(b"k", b"v").status == 0
        fake.refuse()
        # The connections are gone and a new one is refused: the breaker opens.
        poll(lambda: all(c.get(b"k").status == St.BACKEND_DOWN for c in clients), 3,
             what="0xff06 for all")
        begun = time.monotonic()
        for client in clients * 25:
            assert client.get(b"k").status == St.BACKEND_DOWN
        assert time.monotonic() - begun < scaled(1.0), "200 refusals at once"
        holding.set()
        connects, seen = len(fake.connects), len(fake.seen)
        fake.listen()
        poll(lambda: len(fake.seen) > seen, 3, what="the probe")
        end = time.monotonic() + 0.15
        while time.monotonic() < end:
            for client in clients:
                assert client.get(b"k").status == St.BACKEND_DOWN
        assert len(fake.connects) == connects + 1, "one worker probes, with one connection"
        assert [frame.opcode for _, _, frame in fake.seen[seen:]] == [Op.NOOP]
        holding.clear()
        release.set()
        poll(lambda: all(c.get(b"k").value == b"v" for c in clients), 3, what="service again")
        for client in clients:
            client.close()
    fake.stop()


def test_reconnects_are_spread():
    """Probes that fail are repeated after a random delay that grows up to its bound."""
    def handler(connection, frame):
        if dead.is_set():
            connection.close()
        else:
            FakeBackend.store(connection, frame)
    dead = threading.Event()
    fake = FakeBackend(handler)
    setup = config([fake.where], threads=2, upstream={"reconnect_max_ms": 300})
    with Headgate(setup) as daemon, daemon.client() as client:
        client.hello(Feature.XERROR)
        assert client.set(b"k", b"v").status == 0
        fake.refuse()
        poll(lambda: client.get(b"k").status == St.BACKEND_DOWN, 3, what="0xff06")
        dead.set()      # from here on the probe gets a connection, and no answer
        connects, seen = len(fake.connects), len(fake.seen)
        fake.listen()
        begun = time.monotonic()

        def enough():
            client.get(b"k")
            return time.monotonic() > begun + 3 and len(fake.connects) >= connects + 6
        poll(enough, step=0.005, what="six probes")
        took = time.monotonic() - begun
        with fake.lock:
            times = fake.connects[connects:]
            ops = {frame.opcode for _, _, frame in fake.seen[seen:]}
        gaps = sorted(b - a for a, b in zip(times, times[1:]))
        assert 6 <= len(times) <= 20 * took, "%d connects in %.1f s" % (len(times), took)
        assert gaps[-1] < scaled(0.45), gaps
        assert gaps[-1] - gaps[0] > 0.05, "no spread: %s" % gaps
        assert ops == {Op.NOOP}, "only probes reach a server that is out"
        dead.clear()
        poll(lambda: client.set(b"k", b"v").status == 0, 3, what="service again")
    fake.stop()


def test_one_slow_key_does_not_close_the_server():
    asking, answered = threading.Lock(), []

    def handler(connection, frame):
        if frame.key == b"slow":
            with asking:    # not before its client has given up
                pass
        FakeBackend.store(connection, frame)
        answered.append(frame.key)
    fake = FakeBackend(handler)
    setup = config([fake.where], upstream={"backend_timeout_ms": 60})
    with Headgate(setup) as daemon, daemon.client() as slow, daemon.client() as quick:
        slow.hello(Feature.XERROR)
        quick.hello(Feature.XERROR)
        for _ in range(30):
            with asking:
                frame = slow.get(b"slow")
            assert frame.status == St.BACKEND_TIMEOUT, show(frame)
            poll(lambda: answered.count(b"slow") == fake.count(Op.GET), what="the late answer")
        poll(lambda: quick.get(b"k").status == St.ENOENT, within=1, what="service for the others")
        with asking:
            assert slow.get(b"slow").status == St.BACKEND_TIMEOUT, "still asked, not refused"
    fake.stop()


# ---- answers that are late, swapped or nonsense ----

def test_late_replies_never_reach_the_wrong_request():
    """Answers of a backend that hangs now and then arrive after their requests were given up:
    whoever asks next gets its own value or an error."""
    def handler(connection, frame):
        if frame.key.endswith(b":7") and frame.key.split(b":")[1] in (b"2", b"6", b"9"):
            time.sleep(0.12)
        if frame.opcode in (Op.GET, Op.GETK):
            connection.reply(frame, value=b"of " + frame.key, extras=bytes(4),
                             key=frame.key if frame.opcode == Op.GETK else b"")
        else:
            FakeBackend.store(connection, frame)
    fake = FakeBackend(handler)
    setup = config([fake.where], threads=2, upstream={
        "backend_timeout_ms": 80, "pool_max_connections": 4, "pool_depth": 16})
    counts = {"good": 0, "error": 0}
    wrong = []

    def worker(number):
        with daemon.client(timeout=10) as client:
            for turn in range(12):
                names = [b"%d:%d:%d" % (number, turn, n) for n in range(20)]
                client.send(b"".join(request(Op.GET, n, opaque=i) for i, n in enumerate(names)))
                for index, name in enumerate(names):
                    frame = client.recv()
                    if frame.opaque != index or frame.status == 0 and frame.value != b"of " + name:
                        wrong.append((name, show(frame)))
                    counts["good" if frame.status == 0 else "error"] += 1
    with Headgate(setup) as daemon:
        threads = [threading.Thread(target=worker, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(scaled(60))
        assert not wrong, wrong[:5]
        assert counts["good"] > 100 and counts["error"] > 5, counts
        with daemon.client(timeout=10) as client:
            poll(lambda: client.get(b"calm").value == b"of calm", 5, what="service again")
    fake.stop()


def test_swapped_replies_are_never_believed():
    """Two requests on one connection, answered in the wrong order: no value changes hands."""
    waiting = {}

    def handler(connection, frame):
        if not frame.key.startswith(b"swap"):
            return FakeBackend.store(connection, frame)
        first = waiting.pop(connection.number, None)
        if first is None:
            waiting[connection.number] = frame
            return None
        for other in (frame, first):
            connection.reply(other, value=b"of " + other.key, extras=bytes(4))
        return None
    fake = FakeBackend(handler)
    setup = config([fake.where], upstream={"pool_max_connections": 1})
    with Headgate(setup) as daemon, daemon.client() as client:
        for turn in range(5):
            frames = []
            client.send(request(Op.GET, b"swap1", opaque=1) + request(Op.GET, b"swap2", opaque=2))
            frames = [client.recv(), client.recv()]
            assert [f.opaque for f in frames] == [1, 2]
            for frame, key in zip(frames, (b"swap1", b"swap2")):
                assert frame.status != 0 or frame.value == b"of " + key, show(frame)
            poll(lambda: client.set(b"k", b"v").status == 0, 5, what="service again")
    fake.stop()


NONSENSE = {
    "text": lambda frame: b"ERROR\r\n",
    "request magic": lambda frame: request(frame.opcode, frame.key, opaque=frame.opaque),
    "wrong opaque": lambda frame: response(frame.opcode, opaque=frame.opaque ^ 0x5555,
                                           extras=bytes(4), value=b"not yours"),
    "wrong opcode": lambda frame: response(0x77, opaque=frame.opaque, value=b"not yours"),
    "enormous body": lambda frame: response(frame.opcode, opaque=frame.opaque)[:8]
    + b"\xff\xff\xff\xff" + bytes(12),
    "contradicting lengths": lambda frame: b"\x81" + bytes([frame.opcode]) + b"\xff\xff\xff"
    + bytes(19),
    "no extras in a hit": lambda frame: response(frame.opcode, opaque=frame.opaque, value=b"v"),
    "a reply too many": lambda frame: response(frame.opcode, opaque=frame.opaque, extras=bytes(4),
                                               value=b"of bad") * 2,
    "half a reply": lambda frame: response(frame.opcode, opaque=frame.opaque, extras=bytes(4),
                                           value=b"x" * 100)[:60],
}


@pytest.mark.parametrize("kind", list(NONSENSE))
def test_nonsense_costs_its_connection_only(kind):
    def handler(connection, frame):
        if frame.key == b"bad":
            connection.send(NONSENSE[kind](frame))
            if kind == "half a reply":
                connection.close()
        else:
            FakeBackend.store(connection, frame)
    fake = FakeBackend(handler)
    good = Memcached(memory_mb=32)
    setup = config([fake.where])
    setup["upstreams"].append({"name": "good", "kind": "memcached",
                               "servers": [{"address": good.where}]})
    setup["tenants"].append({"name": "good", "upstream": "good"})
    with Headgate(setup) as daemon:
        with daemon.client(timeout=3) as client, daemon.client(bucket="good") as other:
            client.hello(Feature.XERROR)
            assert client.set(b"k", b"v").status == 0
            for _ in range(3):
                frame = client.get(b"bad")
                allowed = kind in ("a reply too many", "no extras in a hit")
                assert frame.status in DOWN or allowed and frame.status == 0 \
                    and frame.value in (b"of bad", b"v"), show(frame)
                poll(lambda: client.get(b"k").value == b"v", 3, what="service after the nonsense")
                assert other.set(b"k", b"v").status == 0
    fake.stop()
    good.stop()


def test_a_sent_write_is_never_repeated():
    """The connection breaks with the write under way: an error, and no second attempt."""
    def handler(connection, frame):
        if frame.key == b"once":
            connection.close()
        else:
            FakeBackend.store(connection, frame)
    fake = FakeBackend(handler)
    with Headgate(config([fake.where])) as daemon, daemon.client() as client:
        client.hello(Feature.XERROR)
        for number, op in enumerate((Op.SET, Op.INCR, Op.APPEND)):
            poll(lambda: client.set(b"k", b"v").status == 0, 3, what="a good connection")
            extras = {Op.SET: set_extras(), Op.INCR: bytes(20), Op.APPEND: b""}[op]
            frame = client.call(op, b"once", b"" if op == Op.INCR else b"v", extras)
            assert frame.status in DOWN, show(frame)
            with fake.lock:
                tried = sum(1 for _, _, f in fake.seen if f.key == b"once")
            assert tried == number + 1, "%s was sent %d times" % (op.name, tried - number)
    fake.stop()


def test_memory_of_a_backend_is_bounded():
    """Requests for a server that hangs are refused or wait within their caps; none is kept."""
    fake = FakeBackend(lambda connection, frame: None)
    setup = config([fake.where], upstream={"backend_timeout_ms": 300, "queue_timeout_ms": 300,
                                           "pool_max_connections": 2})
    with Headgate(setup) as daemon:
        before = daemon.process.rss_bytes()
        clients = [daemon.client(timeout=10) for _ in range(40)]
        for client in clients:
            client.send(b"".join(request(Op.SET, b"k%d" % n, b"v" * 20000, set_extras(), opaque=n)
                                 for n in range(20)) + request(Op.NOOP, opaque=99))
        for client in clients:
            frames = client.replies_until(99, timeout=10)
            assert [f.opaque for f in frames] == list(range(20))
            assert all(f.status in (St.ETMPFAIL, St.EBUSY) for f in frames), show(frames[0])
            client.close()
        assert daemon.process.rss_bytes() - before < (32 << 20) * memory_factor()
    fake.stop()


def test_values_are_right_while_a_server_comes_and_goes(server):
    """Readers check every byte while the server is killed and started again, over and over."""
    stop = threading.Event()
    wrong, good = [], [0]

    def reader(number):
        with daemon.client(timeout=10) as client:
            turn = 0
            while not stop.is_set():
                turn += 1
                key = b"%d:%d" % (number, turn % 50)
                value = key * (1 + turn % 300)
                put = client.set(key, value)
                got = client.get(key)
                if put.status == 0 and got.status == 0:
                    good[0] += 1
                    if got.value != value:
                        wrong.append((key, len(got.value)))
    with Headgate(config([server.where], server.kind, threads=2)) as daemon:
        threads = [threading.Thread(target=reader, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(6):
            reached = good[0] + 50
            poll(lambda: good[0] >= reached, 10, what="progress")
            server.kill()
            server.restart()
        stop.set()
        for thread in threads:
            thread.join(scaled(20))
        assert not wrong, wrong[:5]
        assert good[0] >= 300
