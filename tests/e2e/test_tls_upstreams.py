"""test_tls_upstreams - TLS towards real memcached, Redis and Redis Cluster servers: everything works
as without, who is not trusted is not spoken to, and an operator is told why."""
# SPDX-License-Identifier: BSD-3-Clause

import random
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from certs import Authority, Tls
from mcbin import Op, St, poll, request, scaled, set_extras, show
from redis_tools import DOWN, client_of, config, over, upstream
from redisservers import PASSWORD, USER, Redis, RedisCluster
from respbin import slot_of
from servers import HEADGATE, FakeBackend, Headgate, Memcached, free_port, to_yaml
from tablebin import Rows, T
from tablebin import item as batch_item

KINDS = ("memcached", "redis", "redis-cluster")


class Papers:
    """Certificates: of the servers, of Headgate, and of strangers."""

    def __init__(self):
        self.ca, self.stranger = Authority(), Authority("somebody else")
        self.server = self.ca.issue("server")
        self.named = self.ca.issue("named", hosts=("cache.example",))
        self.expired = self.ca.issue("old", expired=True)
        self.foreign = self.stranger.issue("server")
        self.headgate = self.ca.issue("headgate", hosts=())
        self.impostor = self.stranger.issue("headgate", hosts=())


@pytest.fixture(scope="module")
def papers():
    return Papers()


def group(papers, shown=None, **options):
    """The group `tls` of an upstream that trusts the tests' authority; shown: its own."""
    made = dict({"ca": papers.ca.certificate}, **options)
    if shown:
        made.update(certificate=shown.certificate, key=shown.key)
    return {name: value for name, value in made.items() if value is not None}


def server_of(kind, tls, **options):
    if kind == "memcached":
        return Memcached(tls=tls)
    if kind == "redis":
        return Redis(password="own", tls=tls, **options)
    return RedisCluster(replicas=0, tls=tls, **options)


def login_of(kind):
    return {"memcached": {}, "redis": {"password": "own"},
            "redis-cluster": {"user": USER, "password": PASSWORD}}[kind]


@pytest.fixture(scope="module")
def servers(papers):
    """One server of each kind, started when it is asked for."""
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = server_of(kind, Tls(papers.ca, papers.server))
        return made[kind]
    yield of
    for server in made.values():
        server.stop()


@pytest.fixture(scope="module")
def daemons(papers, servers):
    """A daemon over each of them."""
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = over(servers(kind), threads=2, upstream=dict(
                login_of(kind), kind=kind, tls=group(papers), connect_timeout_ms=2000,
                backend_timeout_ms=10000, queue_timeout_ms=10000))
        return made[kind]
    yield of
    for daemon in made.values():
        daemon.stop()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def rows_of_stats(daemon, name):
    """The values of one row, of all servers."""
    with daemon.client() as client:
        stats = client.stat("upstreams")
    return [value for row, value in sorted(stats.items())
            if row.startswith("store:") and row.endswith(":" + name)]


def count(daemon, name):
    return sum(int(value) for value in rows_of_stats(daemon, name))


def set_works(daemon, key=b"k", value=b"v"):
    with client_of(daemon) as client:
        return client.set(key, value).status == 0


# ---- everything works ----

def test_items(daemons, kind):
    daemon = daemons(kind)
    with client_of(daemon) as client:
        assert client.set(b"item", b"one", flags=7).status == 0
        frame = client.get(b"item")
        assert (frame.status, frame.value, frame.extras) == (0, b"one", b"\0\0\0\7")
        assert client.add(b"item", b"two").status == St.EEXISTS
        assert client.replace(b"item", b"two", cas=frame.cas).status == 0
        assert client.call(Op.APPEND, b"item", b"+").status == 0
        assert client.get(b"item").value == b"two+"
        assert client.incr(b"number", 5, 10).status == 0
        assert client.incr(b"number", 5).status == 0
        assert client.delete(b"item").status == 0
        assert client.get(b"item").status == St.ENOENT
    assert count(daemon, "tls_failures") == 0
    assert set(rows_of_stats(daemon, "last_error")) == {""}
    assert set(rows_of_stats(daemon, "state")) == {"closed"}


def test_sizes(daemons, kind):
    """Around the edges of records, and many of them."""
    with client_of(daemons(kind)) as client:
        for size in (0, 1, 16383, 16384, 16385, 65536, 1048576):
            value = bytes((size + n) % 251 for n in range(997)) * (size // 997 + 1)
            assert client.set(b"sized", value[:size]).status == 0
            assert client.get(b"sized").value == value[:size]


def test_many_values_at_once(daemons, kind):
    """More than a link reads in a turn: what is decrypted and not taken yet is come back to."""
    daemon = daemons(kind)
    keys = [b"many%04d" % n for n in range(1500)]
    value = b"0123456789abcdef" * 512
    with client_of(daemon, timeout=30) as client:
        sent = threading.Thread(target=client.send, args=(b"".join(
            request(Op.SETQ, key, value + key, set_extras()) for key in keys)
            + request(Op.NOOP, opaque=1),))
        sent.start()
        assert client.recv().opcode == Op.NOOP
        sent.join()
        for _ in range(2):
            client.send(b"".join(request(Op.GETKQ, key) for key in keys)
                        + request(Op.NOOP, opaque=2))
            frames = client.replies_until(2)
            assert not [show(frame) for frame in frames if frame.status]
            got = {bytes(frame.key): bytes(frame.value) for frame in frames if frame.key}
            assert len(got) == len(keys)
            assert all(got[key] == value + key for key in keys)


def test_many_clients(daemons, kind):
    daemon, failures = daemons(kind), []

    def work(number):
        with client_of(daemon, timeout=30) as client:
            for n in range(200):
                key, value = b"c%d-%d" % (number, n), b"%d" % n * (n + 1)
                client.send(request(Op.SET, key, value, set_extras()) + request(Op.GET, key))
                first, second = client.recv(), client.recv()
                if first.status or second.value != value:
                    failures.append((key, show(first), show(second)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(60))
        assert not thread.is_alive()
    assert not failures, failures[:3]


def test_any_sizes_in_any_order(daemons, kind):
    """However requests fall into records. memcached (1.6.18) hides from itself what it has decrypted
    behind the end of a value, and would not answer; no request may meet that."""
    daemon, failures = daemons(kind), []
    before = count(daemon, "timeouts")

    def work(number):
        dice = random.Random(number)
        with client_of(daemon, timeout=30) as client:
            for n in range(150):
                sizes = [dice.choice((0, 50, 3000, 8156, 16350, 20000, 70000)) + dice.randrange(60)
                         for _ in range(dice.randrange(1, 12))]
                client.send(b"".join(
                    request(Op.SET, b"r%d-%d" % (number, at), b"%06d" % n * (size // 6),
                            set_extras()) + request(Op.GET, b"r%d-%d" % (number, at))
                    for at, size in enumerate(sizes)))
                for size in sizes:
                    first, second = client.recv(), client.recv()
                    if first.status or second.value != b"%06d" % n * (size // 6):
                        failures.append((size, show(first), show(second)[:200]))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(60))
        assert not thread.is_alive()
    assert not failures, failures[:3]
    assert count(daemon, "timeouts") == before


def test_rows(daemons, kind):
    with client_of(daemons(kind)) as client:
        rows = Rows(client, "rows")
        assert rows.insert("a", name="ann", n=1).status == 0
        assert rows.update("a", name="eve").status == 0
        assert rows.increment("a", n=4).status == 0
        assert rows.get("a") == {"name": b"eve", "n": 5}
        done = rows.batch(*[batch_item(T.INSERT, "b%02d" % n, {"x": b"y" * 2000})
                            for n in range(50)])
        assert done.status == 0, done
        assert rows.get("b49") == {"x": b"y" * 2000}
        if kind == "redis":
            assert [row for row, _ in rows.query(b"b10", b"b20")] == ["b%02d" % n for n in
                                                                       range(10, 21)]
        assert rows.delete("a").status == 0
        assert rows.get("a") is None


@pytest.mark.parametrize("threads", (1, 2))
def test_users_and_databases_share_a_connection(papers, threads):
    """AUTH and SELECT on a connection that is up: another identity, the same TLS. With two workers
    one of them has it, and carries the other's requests."""
    users = {name: "on >%s-password ~* &* +@all" % name for name in ("ann", "bob")}
    tenants = [{"name": "default", "upstream": "store"}] + [
        {"name": name, "upstream": "store", "backend_user": name,
         "backend_password": name + "-password", "backend_database": number}
        for number, name in enumerate(users, 1)]
    with Redis(password="own", users=users, tls=Tls(papers.ca, papers.server)) as server, \
            over(server, tenants, threads=threads, upstream={
                "password": "own", "pool_max_connections": 1, "tls": group(papers)}) as daemon:
        for turn in range(3):
            for name in ("default", *users):
                with client_of(daemon, name) as client:
                    assert client.set("%s%d" % (name, turn), name.encode()).status == 0
        for number, name in enumerate(("default", *users)):
            with server.client(number) as redis:
                assert len(redis.command("KEYS", "*")) == 3, name
        assert count(daemon, "connects") < 9, "connections were made instead of rebound"


# ---- servers come and go ----

@pytest.mark.parametrize("kind", ("memcached", "redis"))
def test_restart(papers, kind):
    tls = Tls(papers.ca, papers.server)
    server = server_of(kind, tls)
    with over(server, upstream=dict(login_of(kind), kind=kind, tls=group(papers))) as daemon:
        assert set_works(daemon)
        server.kill()
        with client_of(daemon) as client:
            poll(lambda: client.set(b"k", b"v").status == St.BACKEND_DOWN, 10, what="out")
        assert "Connection refused" in "".join(rows_of_stats(daemon, "last_error"))
        server.restart()
        poll(lambda: set_works(daemon), 10, what="back")
        assert rows_of_stats(daemon, "last_error") == [""]
        assert count(daemon, "tls_failures") == 0
    server.stop()


def test_killed_under_load(papers):
    """Every request is answered once, whatever becomes of the connection."""
    server = Redis(password="own", tls=Tls(papers.ca, papers.server))
    with over(server, threads=2, upstream={"password": "own", "tls": group(papers)}) as daemon:
        statuses, stop = [[] for _ in range(4)], threading.Event()

        def work(mine):
            with client_of(daemon, timeout=20) as client:
                while not stop.is_set():
                    client.send(b"".join(request(Op.SET, b"k%d" % n, b"v" * 5000, set_extras())
                                         for n in range(20)))
                    mine += [client.recv().status for _ in range(20)]

        threads = [threading.Thread(target=work, args=(mine,)) for mine in statuses]
        for thread in threads:
            thread.start()
        poll(lambda: all(len(mine) > 100 for mine in statuses), 20, what="load")
        server.kill()
        poll(lambda: all(mine[-1] == St.BACKEND_DOWN for mine in statuses), 20, what="down")
        server.restart()
        poll(lambda: all(mine[-1] == 0 for mine in statuses), 20, what="back")
        stop.set()
        for thread in threads:
            thread.join(scaled(30))
            assert not thread.is_alive()
    server.stop()
    assert {s for mine in statuses for s in mine} <= {
        0, St.QUEUE_TIMEOUT, *DOWN}


def test_a_slot_moves(papers, servers, daemons):
    """MOVED and ASK name servers that are reached over TLS as well."""
    cluster, daemon = servers("redis-cluster"), daemons("redis-cluster")
    tag = next(b"{t%d}" % n for n in range(1000)
               if cluster.where_is(b"{t%d}" % n) is cluster.nodes[0])
    with client_of(daemon) as client:
        for n in range(50):
            assert client.set(tag + b"%d" % n, b"%d" % n).status == 0
        to = cluster.nodes[1]
        source = cluster.start_move(slot_of(tag), to)
        assert client.set(tag + b"new", b"asked").status == 0
        assert client.get(tag + b"7").value == b"7"
        while cluster.move_keys(slot_of(tag), source, to, 10):
            pass
        cluster.end_move(slot_of(tag), source, to)
        for n in range(50):
            assert client.get(tag + b"%d" % n).value == b"%d" % n
        assert client.get(tag + b"new").value == b"asked"
        stats = client.stat("upstreams")
    assert int(stats["store:redirects_ask"]) > 0 and int(stats["store:redirects_moved"]) > 0
    assert count(daemon, "tls_failures") == 0


def test_a_cluster_that_names_hosts(papers, servers):
    """Its servers are reached, and must prove who they are, under the names that it announces."""
    cluster = servers("redis-cluster")

    def announce(host, endpoints):
        for node in cluster.nodes:
            node.command("CONFIG", "SET", "cluster-announce-hostname", host)
            node.command("CONFIG", "SET", "cluster-preferred-endpoint-type", endpoints)

    def named(node):
        return all(owner[2][0] == b"localhost" for owner in node.command("CLUSTER", "SLOTS"))

    announce("localhost", "hostname")
    try:
        poll(lambda: all(named(node) for node in cluster.nodes), 10, what="names told")
        with over(cluster, upstream=dict(login_of("redis-cluster"), kind="redis-cluster",
                                         tls=group(papers), queue_timeout_ms=5000)) as daemon:
            with client_of(daemon) as client:
                for n in range(30):
                    assert client.set(b"host%d" % n, b"v").status == 0
            addresses = rows_of_stats(daemon, "address")
            assert {"localhost:%d" % node.port for node in cluster.nodes} <= set(addresses)
            assert count(daemon, "tls_failures") == 0
    finally:
        announce("", "ip")


# ---- whom not to trust ----

def refused(daemon, *words):
    """Requests are answered that the server is out, and everybody who looks is told why."""
    with client_of(daemon) as client:
        poll(lambda: client.set(b"k", b"v").status == St.BACKEND_DOWN, 10, what="refused")
    errors = " / ".join(rows_of_stats(daemon, "last_error"))
    for word in words:
        assert word in errors, errors
    assert "TLS failed" in errors
    assert count(daemon, "tls_failures") > 0
    assert "TLS failed" in daemon.stderr()


def test_a_foreign_authority(papers, servers, kind):
    with over(servers(kind), upstream=dict(login_of(kind), kind=kind, tls=group(
            papers, ca=papers.stranger.certificate))) as daemon:
        refused(daemon, "certificate")
        assert count(daemon, "connects") == 0


def test_the_authorities_of_the_system(papers, servers):
    """Which ours is not one of."""
    with over(servers("redis"), upstream=dict(login_of("redis"), tls={})) as daemon:
        refused(daemon, "certificate")


def test_another_name(papers):
    with Redis(tls=Tls(papers.ca, papers.named)) as server:
        with over(server, upstream={"tls": group(papers)}) as daemon:
            refused(daemon, "mismatch")
        with over(server, upstream={"tls": group(papers, server_name="cache.example")}) as daemon:
            assert set_works(daemon)
        with over(server, upstream={"tls": group(papers, server_name="other.example")}) as daemon:
            refused(daemon, "mismatch")


def test_a_name_in_the_address(papers, servers):
    """localhost is looked up, announced, and found in the certificate."""
    server = servers("redis")
    where = [{"address": "localhost:%d" % server.port}]
    with over(server, upstream=dict(login_of("redis"), servers=where,
                                    tls=group(papers))) as daemon:
        poll(lambda: set_works(daemon), 10, what="served")


def test_an_old_certificate(papers):
    with Redis(tls=Tls(papers.ca, papers.expired)) as server, \
            over(server, upstream={"tls": group(papers)}) as daemon:
        refused(daemon, "expired")


def test_no_verification(papers):
    """Anybody will do, which is complained of at the start and at each reload."""
    with Redis(tls=Tls(papers.ca, papers.expired)) as server, \
            over(server, upstream={"tls": {"verify": False}}) as daemon:
        assert set_works(daemon)
        assert daemon.stderr().count("verify false") == 1, daemon.stderr()
        daemon.process.signal(signal.SIGHUP)
        poll(lambda: daemon.stderr().count("verify false") == 2, 10, what="told again")


def test_a_server_without_tls(papers):
    """It takes the greeting for something else, or waits for more of it."""
    with Redis() as server, over(server, upstream={"tls": group(papers)}) as daemon:
        refused(daemon)
    server = Memcached()
    with over(server, upstream={"kind": "memcached", "tls": group(papers)}) as daemon:
        refused(daemon)
    server.stop()


def test_a_mute_server(papers):
    """The time for connecting is the handshake's too."""
    listener = socket.create_server(("127.0.0.1", 0))

    class Mute:
        where = "127.0.0.1:%d" % listener.getsockname()[1]
    with over(Mute, upstream={"tls": group(papers), "connect_timeout_ms": 100}) as daemon:
        refused(daemon, "no answer in time")
    listener.close()


@pytest.mark.parametrize("kind", ("memcached", "redis"))
def test_a_server_that_asks_for_a_certificate(papers, kind):
    server = server_of(kind, Tls(papers.ca, papers.server, ask=True))

    def daemon_with(shown):
        return over(server, upstream=dict(login_of(kind), kind=kind, tls=group(papers, shown)))
    with daemon_with(papers.headgate) as daemon:
        assert set_works(daemon)
    with daemon_with(None) as daemon:
        refused(daemon)
        assert count(daemon, "lost") == 0, "a request was sent on a connection that was refused"
    with daemon_with(papers.impostor) as daemon:
        refused(daemon)
    server.stop()


def test_versions(papers):
    with Redis(tls=Tls(papers.ca, papers.server), tls_protocols="TLSv1.2") as server:
        with over(server, upstream={"tls": group(papers)}) as daemon:
            assert set_works(daemon)
        with over(server, upstream={"tls": group(papers, min_version="1.3")}) as daemon:
            refused(daemon, "protocol version")


# ---- what is said at the greeting ----

class Greeted:
    """A server that notes which name it is called by, and hangs up."""

    def __init__(self, papers, shown):
        self.names, self.done = [], 0
        context = papers.ca.server_context(shown)
        context.sni_callback = lambda sock, name, context: self.names.append(name)
        self.context, self.listener = context, socket.create_server(("127.0.0.1", 0))
        self.where = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
                with sock:
                    sock.settimeout(scaled(5))
                    self.context.wrap_socket(sock, server_side=True).close()
                    self.done += 1
            except ssl.SSLError:
                continue
            except OSError:
                return

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def test_the_announced_name(papers):
    server = Greeted(papers, papers.named)
    with over(server, upstream={"tls": group(papers, server_name="cache.example")}) as daemon:
        with client_of(daemon) as client:
            client.set(b"k", b"v")
        poll(lambda: server.done > 0, what="a handshake")
    assert set(server.names) == {"cache.example"}
    server.stop()
    server = Greeted(papers, papers.server)
    with over(server, upstream={"tls": group(papers)}) as daemon:
        with client_of(daemon) as client:
            client.set(b"k", b"v")
        poll(lambda: server.done > 0, what="a handshake")
    assert set(server.names) == {None}, "an address was announced as a name"
    server.stop()


# ---- new files ----

def test_new_certificates_at_a_reload(papers, tmp_path):
    trust = tmp_path / "ca.pem"
    shutil.copy(papers.stranger.certificate, trust)
    with Redis(tls=Tls(papers.ca, papers.server)) as server, \
            over(server, upstream={"tls": {"ca": str(trust)}}) as daemon:
        refused(daemon, "certificate")
        trust.write_text("nothing of use")
        daemon.process.signal(signal.SIGHUP)
        words = "upstream 'store': cannot read authorities '%s': it holds no certificate" % trust
        poll(lambda: words in daemon.stderr(), 10, what="complaint")
        shutil.copy(papers.ca.certificate, trust)
        daemon.process.signal(signal.SIGHUP)
        poll(lambda: set_works(daemon), 10, what="trusted now")


# ---- the configuration ----

class At:
    def __init__(self, *where):
        self.where = list(where)


def store(where="h:1", kind="redis", **tls):
    return {"upstreams": [upstream(At(where), kind, tls=tls)],
            "tenants": [{"name": "default", "upstream": "store"}]}


FAULTS = {
    "a unix socket": (store("unix:/run/redis.sock"),
                      "'tls' of upstream 'store' beside the unix socket 'unix:/run/redis.sock'"),
    "no key": (store(certificate="/x"), "'certificate' in tls of upstream 'store' without a key"),
    "no certificate": (store(key="/x"), "'key' in tls of upstream 'store' without a certificate"),
    "a port in the name": (store(server_name="a/b"),
                           "server_name 'a/b' in tls of upstream 'store' is none"),
    "no file": (store(ca="/nowhere/ca.pem"), "cannot read '/nowhere/ca.pem': No such file"),
    "a version": (store(min_version="1.1"), "1.2, 1.3"),
    "embedded": ({"upstreams": [{"name": "store", "kind": "embedded", "tls": {}}]},
                 "'tls' has no effect on upstream 'store' of kind embedded"),
}


def checked(tmp_path, setup):
    path = tmp_path / "headgate.yaml"
    path.write_text(to_yaml(dict(setup, data_dir=str(tmp_path / "data"))))
    done = subprocess.run([HEADGATE, "--check", "-c", str(path)], capture_output=True, text=True,
                          timeout=20)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(tmp_path, fault):
    setup, words = FAULTS[fault]
    if "no file" != fault:
        for row in setup["upstreams"]:
            for option in ("certificate", "key"):
                if option in row["tls"]:
                    (tmp_path / option).write_text("-")
                    row["tls"][option] = str(tmp_path / option)
    code, said = checked(tmp_path, setup)
    assert code != 0 and words in said, said


def test_files_that_are_no_certificates(tmp_path, papers):
    """The message names upstream and file, before the start and at it."""
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nnonsense\n")
    for tls in {"ca": str(broken)}, {"certificate": str(broken), "key": papers.headgate.key}, \
            {"certificate": papers.headgate.certificate, "key": str(broken)}:
        daemon = Headgate(store("127.0.0.1:%d" % free_port(), **tls), wait=False).launch()
        assert daemon.process.wait() != 0
        said = daemon.stderr()
        assert "cannot open upstream 'store'" in said and str(broken) in said, said
        code, said = checked(tmp_path, store(**tls))
        assert code != 0 and "upstream 'store'" in said and str(broken) in said, said
        daemon.stop(check=False)
