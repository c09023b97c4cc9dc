"""test_tls - TLS on listeners: handshakes, reading and writing, certificates of both sides."""
# SPDX-License-Identifier: BSD-3-Clause

import inspect
import itertools
import json
import os
import random
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest

from certs import Authority
from mcbin import Client, Closed, Op, St, connect_socket, poll, request, scaled, set_extras, show
from servers import HEADGATE, Headgate, free_port, headgatectl, user_row

import test_restart
import test_semantics
import test_wire


@pytest.fixture(scope="module")
def ca():
    return Authority()


@pytest.fixture(scope="module")
def shown(ca):
    """The server's certificate."""
    return ca.issue("headgate")


class Gate(Headgate):
    """A daemon with a plain listener and one that speaks TLS."""

    def __init__(self, ca, shown, tls=None, config=None, **more):
        self.ca = ca
        self.tls_port = free_port()
        plain = free_port()
        rules = dict({"certificate": shown.certificate, "key": shown.key}, **(tls or {}))
        config = dict(config or {})
        config["listen"] = [{"address": "127.0.0.1:%d" % plain},
                            {"address": "127.0.0.1:%d" % self.tls_port, "tls": rules}]
        super().__init__(config, wait=False, **more)
        self.port = plain
        self.start()

    @property
    def tls_address(self):
        return ("127.0.0.1", self.tls_port)

    def secure(self, shown=None, timeout=5.0, context=None):
        return Client(self.tls_address, timeout, context or self.ca.context(shown))

    def counters(self):
        with self.client() as client:
            stats = client.stat()
        return {name: int(value) for name, value in stats.items()
                if name.startswith("tls_")}

    def handshakes(self):
        prefix = "tls_handshakes_"
        return {name[len(prefix):]: value for name, value in self.counters().items()
                if name.startswith(prefix)}

    def connections(self):
        with self.client() as client:
            return list(client.stat("connections").values())


@pytest.fixture(scope="module")
def gate(ca, shown):
    with Gate(ca, shown, config={"tls_handshake_timeout_ms": 60000, "threads": 2}) as running:
        yield running


def limited(ca, lowest=None, highest=None):
    context = ca.context()
    if lowest:
        context.minimum_version = lowest
    if highest:
        context.maximum_version = highest
    return context


def s_client(gate, *arguments):
    """What openssl's own client says; its input is empty."""
    done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % gate.tls_port,
                           *arguments], input=b"", capture_output=True, timeout=scaled(20))
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def assert_closed(sock):
    try:
        assert sock.recv(100) == b""
    except ConnectionResetError:
        pass


# ---- versions, ciphers, counting ----

@pytest.mark.parametrize("version, name", [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"),
                                           (ssl.TLSVersion.TLSv1_3, "TLSv1.3")])
def test_versions(gate, ca, version, name):
    with gate.secure(context=limited(ca, version, version)) as client:
        client.set(b"version", name.encode())
        assert client.get(b"version").value == name.encode()
        assert client.sock.version() == name
        cipher = client.sock.cipher()[0]
        mine = "peer=127.0.0.1:%d " % client.sock.getsockname()[1]
        row = [row for row in gate.connections() if mine in row][0]
        assert "tls=%s cipher=%s" % (name, cipher) in row
    assert any("tls=- cipher=-" in row for row in gate.connections())


def test_ciphers_and_old_versions(gate, ca):
    assert "Cipher is ECDHE-ECDSA-AES" in s_client(gate, "-tls1_2")
    assert "Verify return code: 0 (ok)" in s_client(gate, "-CAfile", ca.certificate,
                                                    "-verify_return_error")
    for weak in (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA@SECLEVEL=0"],
                 ["-tls1_2", "-cipher", "AES128-GCM-SHA256@SECLEVEL=0"],
                 ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]):
        answer = s_client(gate, *weak)
        assert "Cipher is (NONE)" in answer and "Cipher is ECDHE" not in answer, answer


def test_lowest_version(ca, shown):
    with Gate(ca, shown, {"min_version": "1.3"}) as gate:
        with pytest.raises(ssl.SSLError, match="(?i)protocol version"):
            gate.secure(context=limited(ca, highest=ssl.TLSVersion.TLSv1_2))
        with gate.secure() as client:
            client.noop()
        poll(lambda: gate.handshakes()["failed"] == 1, what="the count of failed handshakes")
        assert "TLS handshake failed" in gate.stderr() and "unsupported protocol" in gate.stderr()


def test_everything_is_counted(ca, shown):
    with Gate(ca, shown) as gate:
        before = gate.handshakes()
        with gate.secure() as one, gate.secure() as two:
            one.noop(), two.noop()
            assert gate.counters()["tls_connections"] == 2
        poll(lambda: gate.counters()["tls_connections"] == 0, what="no TLS connections")
        with pytest.raises(ssl.SSLError):
            gate.secure(context=ssl.create_default_context())  # trusts others
        with connect_socket(gate.tls_address) as sock:
            sock.sendall(request(Op.NOOP))
            assert_closed(sock)
        poll(lambda: gate.handshakes()["plain"] == before["plain"] + 1, what="a plain client")
        poll(lambda: gate.handshakes()["now"] == 0, what="all to be over")
        after = gate.handshakes()
        assert after["started"] == sum(after[name] for name in (
            "succeeded", "failed", "plain", "timed_out", "displaced"))
        assert after["started"] == before["started"] + 4
        assert "this listener speaks TLS, the client does not" in gate.stderr()
        assert 0 < gate.counters()["tls_certificate_expires_s"] <= 30 * 86400
        with gate.client() as client:
            threads = client.stat("threads")
        assert threads["handshakes_0:started"] == str(after["started"])


def test_reset_leaves_what_is_open_now(gate):
    with gate.secure() as one:
        one.noop()
        before = gate.counters()["tls_connections"]
        assert before >= 1
        one.stat("reset")
        assert gate.counters()["tls_connections"] == before
    poll(lambda: gate.counters()["tls_connections"] < before, what="one has gone")
    assert gate.counters()["tls_connections"] == before - 1


# ---- reading and writing ----

@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_large_values_both_ways(gate, ca, version):
    value = random.Random(7).randbytes((1 << 20) - 100)
    with gate.secure(context=limited(ca, version, version)) as client:
        for n in range(5):
            client.set(b"large:%d" % n, value[n:])
        for n in range(5):
            assert client.get(b"large:%d" % n).value == value[n:]


def test_thousands_in_a_row(gate):
    with gate.secure(timeout=20) as client:
        count = 6000
        sender = threading.Thread(target=lambda: client.sock.sendall(b"".join(
            request(Op.SET, b"row:%d" % n, b"v%d" % n, set_extras(), opaque=n)
            + request(Op.GET, b"row:%d" % n, opaque=n) for n in range(count))))
        sender.start()
        for n in range(count):
            stored, found = client.recv(), client.recv()
            assert (stored.opaque, found.opaque) == (n, n), show(found)
            assert found.value == b"v%d" % n
        sender.join()


def test_records_split_anywhere(gate):
    """Each byte a record of its own; then frames and records that never end at the same place."""
    rand = random.Random(3)
    with gate.secure() as client:
        client.send_bytewise(request(Op.SET, b"split", b"value", set_extras())
                             + request(Op.GET, b"split"))
        assert client.recv().status == 0 and client.recv().value == b"value"
        frames = b"".join(request(Op.SET, b"split:%d" % n, b"x" * rand.choice([0, 9, 700, 30000]),
                                  set_extras(), opaque=n) for n in range(200))
        at = 0
        while at < len(frames):
            step = rand.choice([1, 23, 24, 1000, 16384, 40000])
            client.sock.sendall(frames[at:at + step])
            at += step
        assert [client.recv().opaque for _ in range(200)] == list(range(200))


def test_slow_reader(gate):
    """Ten times what the server keeps for a client: it stops reading, and all arrives."""
    value = random.Random(5).randbytes(200000)
    with gate.secure(timeout=20) as client, gate.secure() as other:
        client.set(b"slow", value)
        sender = threading.Thread(target=lambda: client.sock.sendall(
            b"".join(request(Op.GET, b"slow", opaque=n) for n in range(400))))
        sender.start()
        poll(lambda: any("out_bytes=0 " not in row for row in gate.connections()),
             what="unsent bytes")
        other.noop()  # others are served
        for n in range(400):
            frame = client.recv()
            assert frame.opaque == n and frame.value == value
        sender.join()


def test_farewell(gate):
    """A QUIT is answered by TLS's own farewell, not by a cut."""
    with gate.secure() as client:
        client.sock.suppress_ragged_eofs = False
        client.send(request(Op.SET, b"last", b"word", set_extras()) + request(Op.QUIT))
        assert [frame.opcode for frame in client.recv_until_closed()] == [Op.SET, Op.QUIT]
    with gate.secure() as client:
        client.send(request(Op.GET, b"last"))
        plain = client.sock.unwrap  # the client's farewell: what it asked for still comes
        frame = client.recv()
        assert frame.value == b"word"
        plain().close()
    poll(lambda: gate.counters()["tls_connections"] == 0, what="no TLS connections")


def test_frames_that_are_wrong(gate):
    """The random streams of test_wire through TLS: answered with whole frames, or closed."""
    rand = random.Random(11)
    names = [b"k", b"key:11", b"no such bucket", b"PLAIN", b"settings"]
    for _ in range(60):
        with gate.secure() as client:
            try:
                client.send_bytewise(test_wire.mutated(rand, names), rand.choice([1 << 20, 64]))
                socket.socket.shutdown(client.sock, socket.SHUT_WR)  # TLS itself goes on
                client.recv_until_closed()
            except (BrokenPipeError, ConnectionResetError, OSError) as wrong:
                assert not isinstance(wrong, TimeoutError), "neither answered nor closed"
    with gate.secure() as client:
        client.noop()


# The suite of semantics: what needs nothing but a client and a key, and waits for no expiry.
SEMANTICS = [name for name, function in vars(test_semantics).items()
             if name.startswith("test_") and not hasattr(function, "pytestmark")
             and set(inspect.signature(function).parameters) == {"client", "key"}
             and "sleep" not in inspect.getsource(function)
             and "poll" not in inspect.getsource(function)]
KEYS = itertools.count()


@pytest.mark.parametrize("name", SEMANTICS)
def test_semantics_are_the_same(gate, name):
    assert len(SEMANTICS) > 10
    with gate.secure() as client:
        getattr(test_semantics, name)(client=client, key=b"tls-key:%d" % next(KEYS))


def test_text_where_tls_is_spoken_and_tls_where_it_is_not(gate, ca):
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        Client(gate.address, tls=ca.context())
    with gate.client() as client:
        client.noop()
    for words in (b"get a\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x00", b"*1\r\n$4\r\nPING\r\n"):
        with connect_socket(gate.tls_address) as sock:
            sock.sendall(words)
            assert_closed(sock)


# ---- handshakes that are slow, strange, many ----

def hello(ca):
    """The first bytes of a client that means it, and the rest of its side."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = ca.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        side.do_handshake()
    return side, incoming, outgoing


def test_a_handshake_byte_by_byte(gate, ca):
    side, incoming, outgoing = hello(ca)
    with connect_socket(gate.tls_address) as sock:
        while True:
            for byte in outgoing.read():
                sock.sendall(bytes([byte]))
            try:
                side.do_handshake()
                break
            except ssl.SSLWantReadError:
                incoming.write(sock.recv(1))
        side.write(request(Op.NOOP, opaque=77))
        for byte in outgoing.read():
            sock.sendall(bytes([byte]))
        reply = b""
        while len(reply) < 24:
            try:
                reply += side.read(24)
            except ssl.SSLWantReadError:
                incoming.write(sock.recv(1))
        assert reply[1] == Op.NOOP


def test_the_first_request_with_the_end_of_the_handshake(gate, ca):
    side, incoming, outgoing = hello(ca)
    with connect_socket(gate.tls_address) as sock:
        sock.sendall(outgoing.read())
        while True:
            incoming.write(sock.recv(65536))
            try:
                side.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
        side.write(b"".join(request(Op.NOOP, opaque=n) for n in range(2000)))
        sock.sendall(outgoing.read())  # end of the handshake and 48 KB of requests in one
        reply = b""
        while len(reply) < 48000:
            try:
                reply += side.read(65536)
            except ssl.SSLWantReadError:
                incoming.write(sock.recv(65536))
        assert reply[12 + 24 * 1999:][:4] == (1999).to_bytes(4, "big")


def test_garbage(gate):
    before = gate.handshakes()["failed"]
    rand = random.Random(9)
    for _ in range(40):
        with connect_socket(gate.tls_address) as sock:
            try:
                sock.sendall(b"\x16\x03" + rand.randbytes(rand.choice([0, 1, 3, 100, 20000])))
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(1000):
                    pass
            except OSError as wrong:
                assert not isinstance(wrong, TimeoutError)
    poll(lambda: gate.handshakes()["failed"] >= before + 40, what="all counted as failed")
    with gate.secure() as client:
        client.noop()


def test_slow_handshakes_time_out(ca, shown):
    # Time enough for the one that does get through, on a busy machine too.
    with Gate(ca, shown, config={"tls_handshake_timeout_ms": 2000}) as gate:
        begun = time.monotonic()
        with connect_socket(gate.tls_address) as silent, \
                connect_socket(gate.tls_address) as halfway, gate.secure() as client:
            _, _, outgoing = hello(ca)
            halfway.sendall(outgoing.read()[:50])
            for sock in (silent, halfway):
                assert_closed(sock)
            assert 1.95 < time.monotonic() - begun < scaled(4)
            client.noop()  # who is through may be silent
            poll(lambda: gate.handshakes()["timed_out"] == 2, what="two timeouts")
        log = gate.stderr()
        assert "the client said nothing" in log and "the client stopped half-way" in log


def descriptors(gate):
    return len(os.listdir("/proc/%d/fd" % gate.pid))


def test_a_flood_of_half_open_connections(ca, shown):
    """500 that never speak, when 50 may be there: nobody else waits for them."""
    config = {"max_tls_handshakes": 50, "tls_handshake_timeout_ms": 20000}
    with Gate(ca, shown, config=config) as gate, gate.client() as plain, gate.secure() as secure:
        before = descriptors(gate)
        flood = []
        slowest = 0
        for n in range(500):
            flood.append(connect_socket(gate.tls_address))
            if n % 50 == 0:
                begun = time.monotonic()
                plain.noop(), secure.noop()
                slowest = max(slowest, time.monotonic() - begun)
        assert slowest < scaled(0.5)
        assert gate.handshakes()["now"] <= 50
        assert descriptors(gate) <= before + 51
        begun = time.monotonic()
        with gate.secure(timeout=10) as another:  # behind all of them
            another.set(b"through", b"the flood")
        assert time.monotonic() - begun < scaled(5)
        poll(lambda: gate.handshakes()["displaced"] >= 400, what="the silent ones to be ended")
        for sock in flood:
            sock.close()
        poll(lambda: gate.handshakes()["now"] == 0, what="no handshakes")
        poll(lambda: descriptors(gate) <= before + 1, what="the descriptors to be closed")


def test_many_real_clients_at_once(ca, shown):
    """More than may be there at a time: they wait, none is refused."""
    with Gate(ca, shown, config={"max_tls_handshakes": 4}) as gate:
        failures = []

        def visit(n):
            try:
                with gate.secure(timeout=20) as client:
                    client.set(b"visitor:%d" % n, b"x")
            except Exception as wrong:  # told below
                failures.append(repr(wrong))

        visitors = [threading.Thread(target=visit, args=(n,)) for n in range(60)]
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join()
        assert not failures, failures[:3]
        assert gate.handshakes()["succeeded"] == 60


# ---- certificates ----

def serial(client):
    return client.sock.getpeercert()["serialNumber"]


def reload(gate):
    return gate.ctl("reload", check=False)


def test_reload_of_the_certificate_under_load(ca):
    first, second = ca.issue("headgate"), ca.issue("headgate")
    other = ca.issue("headgate")
    with Gate(ca, first) as gate, gate.secure() as old:
        failures, done, over = [], [0], threading.Event()

        def visit():
            try:
                while not over.is_set():
                    with gate.secure() as client:
                        for n in range(20):
                            client.set(b"load", b"%d" % n)
                            done[0] += 1
            except Exception as wrong:  # told below
                failures.append(repr(wrong))

        visitors = [threading.Thread(target=visit) for _ in range(3)]
        for visitor in visitors:
            visitor.start()
        before = serial(old)
        second.copy_to(first)
        assert reload(gate).returncode == 0
        with gate.secure() as fresh:
            assert serial(fresh) != before
            now = serial(fresh)
        assert serial(old) == before
        old.noop()
        # A key of somebody else: all is refused, and what was in force stays.
        with open(first.key, "w") as out, open(other.key) as wrong:
            out.write(wrong.read())
        refused = reload(gate)
        assert refused.returncode != 0
        assert first.key in refused.stderr and "does not belong" in refused.stderr
        with gate.secure() as fresh:
            assert serial(fresh) == now
        os.unlink(first.certificate)
        refused = reload(gate)
        assert refused.returncode != 0 and first.certificate in refused.stderr
        seen = done[0]
        poll(lambda: done[0] > seen + 100 or failures, what="the load to go on")
        over.set()
        for visitor in visitors:
            visitor.join()
        assert not failures, failures[:3]
        old.noop()


def test_bad_files_at_the_start(ca, shown, tmp_path):
    no_pem = str(tmp_path / "no.pem")
    with open(no_pem, "w") as out:
        out.write("nothing of the kind\n")
    expired = ca.issue("headgate", expired=True)
    with Gate(ca, expired) as gate:
        assert "valid no more" in gate.stderr() and expired.certificate in gate.stderr()
        with gate.secure(context=ca.context(verify=False)) as client:
            client.noop()
        assert gate.counters()["tls_certificate_expires_s"] < 0
        for tls, words in (({"certificate": "/nowhere/a.crt", "key": shown.key},
                            "cannot read certificate '/nowhere/a.crt': No such file"),
                           ({"certificate": shown.certificate, "key": expired.key},
                            "does not belong to the certificate"),
                           ({"certificate": shown.certificate, "key": shown.key,
                             "client_auth": "required"}, "needs 'client_ca'"),
                           ({"certificate": shown.certificate, "key": shown.key,
                             "client_ca": ca.certificate, "client_auth": "optional",
                             "client_user": "cn"}, "needs a users_file"),
                           ({"certificate": shown.certificate, "key": shown.key,
                             "client_user": "cn"}, "needs 'client_auth'"),
                           ({"certificate": no_pem, "key": no_pem},
                            "cannot read certificate '%s': it holds no certificate in PEM form" % no_pem),
                           ({"certificate": shown.certificate, "key": no_pem},
                            "cannot read key '%s': it holds no private key in PEM form" % no_pem),
                           ({"certificate": shown.certificate}, "key")):
            gate.write_config(listen=[{"address": "127.0.0.1:%d" % gate.port, "tls": tls}])
            done = subprocess.run(gate.argv("--check"), capture_output=True, text=True,
                                  timeout=scaled(20))
            assert done.returncode != 0 and words in done.stderr, done.stderr


# ---- client certificates ----

TENANTS = {"tenants": [{"name": "shop"}, {"name": "ledger"}, {"name": "default"}]}
USERS = {"users": [{"name": "shop", "buckets": {"shop": ["Read", "Write"]}},
                   user_row("ledger"),
                   user_row("root", privileges=("Stats", "NodeSupervisor"))],
         "anonymous": {"bucket": "default", "privileges": ["Read", "Write", "Stats"]}}


def asking(ca, auth):
    return {"client_ca": ca.certificate, "client_auth": auth, "client_user": "cn"}


def whoami(gate, client):
    client.noop()   # the server may not have seen the end of the handshake yet
    mine = "peer=127.0.0.1:%d " % client.sock.getsockname()[1]
    with gate.client() as root:
        root.login("root", "pw")
        rows = root.stat("connections").values()
    row = [row for row in rows if mine in row][0]
    return re.search(r"user=(\S+) bucket=(\S+)", row).groups()


def assert_refused(gate, shown):
    with pytest.raises((ssl.SSLError, ConnectionResetError, BrokenPipeError, Closed)):
        with gate.secure(shown) as client:
            client.noop()


def test_client_certificates_required(ca, shown):
    shop, stranger = ca.issue("shop", hosts=()), ca.issue("nobody", hosts=())
    elsewhere = Authority().issue("shop", hosts=())
    with Gate(ca, shown, asking(ca, "required"), TENANTS, users=USERS) as gate:
        with gate.secure(shop) as client:
            client.set(b"mine", b"goods")
            assert whoami(gate, client) == ("shop", "shop")
            assert client.call(Op.SELECT_BUCKET, b"ledger").status == St.EACCESS
            with gate.secure(ca.issue("ledger", hosts=())) as other:
                assert whoami(gate, other) == ("ledger", "ledger")
                assert other.get(b"mine").status == St.ENOENT
        for wrong in (None, stranger, elsewhere):
            assert_refused(gate, wrong)
        assert gate.counters()["tls_unknown_users"] == 1
        assert "names no user: closed" in gate.stderr()
        # Who has no secrets comes with a certificate only.
        with gate.client() as client:
            for password in ("", "pw"):
                assert client.sasl_plain("shop", password).status == St.AUTH_ERROR


def test_client_certificates_optional(ca, shown):
    shop, stranger = ca.issue("shop", hosts=()), ca.issue("nobody", hosts=())
    with Gate(ca, shown, asking(ca, "optional"), TENANTS, users=USERS) as gate:
        with gate.secure(shop) as client:
            assert whoami(gate, client) == ("shop", "shop")
        with gate.secure() as client:
            assert whoami(gate, client) == ("-", "default")
        with gate.secure(stranger) as client:
            assert whoami(gate, client) == ("-", "default")
            client.login("ledger", "pw")  # a password goes through TLS as well
            assert whoami(gate, client) == ("ledger", "ledger")
        assert gate.counters()["tls_unknown_users"] == 1
        with pytest.raises((ssl.SSLError, ConnectionResetError, Closed)):
            with gate.secure(Authority().issue("shop", hosts=())) as client:
                client.noop()


def test_revoked_users_are_disconnected(ca, shown):
    shop = ca.issue("shop", hosts=())
    with Gate(ca, shown, asking(ca, "required"), TENANTS, users=USERS) as gate:
        with gate.secure(shop) as client, gate.secure(ca.issue("ledger", hosts=())) as other:
            client.noop(), other.noop()
            gate.write_users(dict(USERS, users=USERS["users"][1:]))
            gate.process.signal(1)  # SIGHUP
            assert client.recv_until_closed() == []
            other.noop()
        assert_refused(gate, shop)


def test_a_new_authority_takes_effect_with_a_reload(ca, shown):
    """A resumed session is no way around it."""
    new = Authority()
    old_shop, new_shop = ca.issue("shop", hosts=()), new.issue("shop", hosts=())
    with Gate(ca, shown, asking(ca, "required"), TENANTS, users=USERS) as gate:
        context = ca.context(old_shop)
        with gate.secure(context=context) as client:
            client.noop()
            session = client.sock.session
        assert_refused(gate, new_shop)
        sock = context.wrap_socket(connect_socket(gate.tls_address), server_hostname="localhost",
                                   session=session)
        assert sock.session_reused
        sock.sendall(request(Op.NOOP))  # and it still is somebody
        assert len(sock.recv(24)) == 24
        sock.close()
        rules = dict(gate.config["listen"][1]["tls"], client_ca=new.certificate)
        gate.write_config(listen=[gate.config["listen"][0],
                                  dict(gate.config["listen"][1], tls=rules)])
        gate.process.signal(1)  # SIGHUP
        poll(lambda: "configuration reloaded" in gate.stderr(), what="the reload")
        with gate.secure(new_shop) as client:
            client.noop()
        assert_refused(gate, old_shop)
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            sock = context.wrap_socket(connect_socket(gate.tls_address),
                                       server_hostname="localhost", session=session)
            with sock:
                sock.sendall(request(Op.NOOP))
                if sock.recv(24) == b"":
                    raise ConnectionResetError


# ---- the end ----

def test_drain(ca, shown):
    with Gate(ca, shown) as gate, gate.secure() as client:
        client.sock.suppress_ragged_eofs = False
        client.noop()
        gate.process.signal(15)
        assert client.recv_until_closed() == []
        poll(lambda: not gate.process.alive(), what="the end")


def test_the_end_does_not_wait_for_handshakes_longer_than_it_may(ca, shown):
    config = {"tls_handshake_timeout_ms": 60000, "drain_timeout_s": 1}
    with Gate(ca, shown, config=config) as gate, connect_socket(gate.tls_address) as silent:
        poll(lambda: gate.handshakes()["now"] == 1, what="a handshake")
        gate.process.signal(15)
        assert_closed(silent)
        poll(lambda: not gate.process.alive(), what="the end")


# ---- headgatectl ----

def test_headgatectl(ca, shown):
    shop = ca.issue("shop", hosts=())
    with Gate(ca, shown, asking(ca, "required"), TENANTS, users=USERS) as gate:
        where = ["-s", "localhost:%d" % gate.tls_port]
        certificate = ["--tls-cert", shop.certificate, "--tls-key", shop.key]
        trust = ["--tls-ca", ca.certificate]

        def says(code, words, *arguments):
            done = headgatectl(*arguments, "buckets", check=False)
            assert done.returncode == code and words in done.stdout + done.stderr, done
            return done

        says(0, "shop", *where, *trust, *certificate)
        says(0, "shop", *where, "--tls-insecure", *certificate)
        says(3, "certificate is refused", *where, "--tls", *certificate)
        says(3, "certificate required", *where, *trust)
        says(3, "", *where)  # plain: the listener closes
        says(3, "no TLS with", "-s", gate.where, *trust)  # TLS where it is not spoken
        says(2, "/nowhere/ca", *where, "--tls-ca", "/nowhere/ca")
        says(2, "--tls-key", *where, "--tls-cert", shop.certificate)
        says(2, "does not belong", *where, "--tls-cert", shop.certificate, "--tls-key", shown.key)


def test_a_successor_takes_over_under_load(ca, shown):
    """Nobody who comes is refused, whoever of the two processes greets him."""
    with Gate(ca, shown, config={"threads": 2}) as gate:
        failures, done, over = [], [0], threading.Event()

        def visit():
            while not over.is_set():
                try:
                    with gate.secure(timeout=10) as client:
                        client.set(b"visit", b"x")
                        done[0] += 1
                except Exception as wrong:  # told below
                    failures.append(repr(wrong))

        visitors = [threading.Thread(target=visit) for _ in range(3)]
        for visitor in visitors:
            visitor.start()
        for _ in range(2):
            seen = done[0]
            poll(lambda: done[0] > seen + 30 or failures, what="visitors")
            test_restart.take_over(gate)
        seen = done[0]
        poll(lambda: done[0] > seen + 30 or failures, what="visitors of the successor")
        over.set()
        for visitor in visitors:
            visitor.join()
        assert not failures, failures[:3]
        assert gate.handshakes()["succeeded"] > 30


# ---- headgate-load ----

def load(*arguments):
    argv = [os.path.join(os.path.dirname(HEADGATE), "headgate-load"), "--json", "--interval", "0",
            *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=scaled(60))


def test_headgate_load(gate, ca):
    where = "localhost:%d" % gate.tls_port
    common = ("-s", where, "-n", 20000, "-c", 4, "-p", 50, "--keys", 500)
    for sizes in ("0-100", "30000"):
        count = 20000 if sizes == "0-100" else 2000
        done = load("-s", where, "-n", count, "-c", 4, "-p", 50, "--keys", 500, "--fill",
                    "--value-bytes", sizes, "--key-prefix", sizes + ":", "--tls", ca.certificate)
        assert done.returncode == 0, done.stderr
        total = json.loads(done.stdout)["total"]
        assert total["operations"] == count and total["lost"] == 0, total
    for tls, words in (("system", "certificate is refused"), ("/nowhere/ca", "/nowhere/ca")):
        done = load(*common, "--tls", tls)
        assert done.returncode != 0 and words in done.stderr, done.stderr
    done = load("-s", where, "-n", 100, "-c", 2, "--tls", "any", "--key-prefix", "any:")
    assert done.returncode == 0, done.stderr
    done = load(*common)  # plain
    assert done.returncode != 0
