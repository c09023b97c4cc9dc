"""test_http_hostile - HTTP: who may read, and what clients that mean no good can do to it."""
# SPDX-License-Identifier: BSD-3-Clause

import os
import socket
import time

import pytest

from mcbin import poll, scaled
from servers import Headgate, memory_factor
from webclient import api, ask, place, raw, scrape, serve

pytestmark = pytest.mark.threaded

TOKEN = "correct-horse-battery"


def get(path="/healthz", *headers, host="localhost"):
    lines = ["GET %s HTTP/1.1" % path, "Host: " + host, "Connection: close", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def status_of(reply):
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.") else None


@pytest.fixture(scope="module")
def daemon():
    with serve({"tenants": [{"name": "default"}]}) as running:
        yield running


# ---- every reply ----

def test_headers(daemon):
    for path in ("/", "/metrics", "/api/status.json", "/healthz", "/nothing"):
        headers = ask(daemon, path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy


def test_head_has_no_body(daemon):
    for path in ("/", "/metrics", "/api/status.json", "/readyz"):
        reply = ask(daemon, path, method="HEAD")
        assert reply.status == 200 and reply.body == b"" and int(reply.headers["Content-Length"]) > 0


def test_other_methods(daemon):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"):
        reply = ask(daemon, "/metrics", method=method)
        assert reply.status == 405 and reply.headers["Allow"] == "GET, HEAD", method
    assert ask(daemon, "/login").status == 405
    assert ask(daemon, "/nothing").status == 404
    assert ask(daemon, "/api/../metrics").status == 404


# ---- the host ----

def test_foreign_host_names(daemon):
    host, port = place(daemon)
    for name in ("localhost", "127.0.0.1", "127.0.0.1:%d" % port, "LOCALHOST:1", "[::1]:%d" % port,
                 "127.8.8.8"):
        assert status_of(raw(daemon, get(host=name))) == 200, name
    for name in ("evil.example", "evil.example:%d" % port, "127.0.0.1.evil.example", "10.0.0.1",
                 "localhost.evil.example", "[2001:db8::1]", "", "::1", "[", "x" * 300):
        reply = raw(daemon, get("/metrics", host=name))
        assert status_of(reply) in (421, 400), (name, reply[:200])
        assert b"headgate_" not in reply
    assert status_of(raw(daemon, b"GET /healthz HTTP/1.0\r\n\r\n")) == 200


# ---- the token ----

@pytest.fixture(scope="module")
def guarded():
    with serve({"tenants": [{"name": "default"}]}, admin={"token": TOKEN}) as running:
        yield running


def bearer(token):
    return {"Authorization": "Bearer " + token}


def test_without_a_token(guarded):
    for path in ("/metrics", "/api/status.json", "/api/hotkeys.json", "/api/history.json", "/nothing"):
        reply = ask(guarded, path)
        assert reply.status == 401 and "headgate_" not in reply.text, path
        assert reply.headers["WWW-Authenticate"].startswith("Bearer")
    for path in ("/healthz", "/readyz", "/"):
        assert ask(guarded, path).status == 200


def test_with_a_token(guarded):
    assert ask(guarded, "/metrics", headers=bearer(TOKEN)).status == 200
    assert api(guarded, "slow", headers=bearer(TOKEN)) == {"slow": []}
    for wrong in (TOKEN + "x", TOKEN[:-1]):
        began = time.monotonic()
        assert ask(guarded, "/metrics", headers=bearer(wrong)).status == 401
        assert time.monotonic() - began > 0.9, "a wrong token is answered late"


def test_login_and_cookie(guarded):
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ask(guarded, "/login", method="POST", body="token=guess-guess", headers=form).status == 403
    assert ask(guarded, "/login", method="POST", body="nothing", headers=form).status == 400
    reply = ask(guarded, "/login", method="POST", body="token=" + TOKEN, headers=form)
    cookie = reply.headers["Set-Cookie"]
    assert reply.status == 200 and cookie.startswith("headgate_token_%d=" % place(guarded)[1])
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and TOKEN not in cookie
    value = cookie.split(";")[0]
    for have in (value, "other=1; " + value, value + "; later=2"):
        assert ask(guarded, "/api/status.json", headers={"Cookie": have}).status == 200, have
    for have in (value + "0", value.split("=")[0] + "=" + TOKEN, "x" + value):
        assert ask(guarded, "/api/status.json", headers={"Cookie": have}).status == 401


def test_cookies_of_two_tunnels(guarded):
    """A browser sends both, since cookies know no ports: each tunnel finds its own."""
    form = {"Content-Type": "application/x-www-form-urlencoded", "Host": "127.0.0.1:9001"}
    reply = ask(guarded, "/login", method="POST", body="token=" + TOKEN, headers=form)
    value = reply.headers["Set-Cookie"].split(";")[0]
    assert value.startswith("headgate_token_9001=")
    for host, both, status in (("127.0.0.1:9001", "headgate_token_9002=other; " + value, 200),
                               ("localhost:9001", value + "; headgate_token_900=x", 200),
                               ("127.0.0.1:9002", value, 401), ("127.0.0.1", value, 401)):
        got = ask(guarded, "/api/status.json", headers={"Cookie": both, "Host": host})
        assert got.status == status, (host, both)


def test_guessing_does_not_delay_others(guarded):
    socks = []
    for _ in range(30):
        sock = socket.create_connection(place(guarded))
        sock.sendall(get("/metrics", "Authorization: Bearer guess-guess"))
        socks.append(sock)
    began = time.monotonic()
    assert ask(guarded, "/metrics", headers=bearer(TOKEN)).status == 200
    assert time.monotonic() - began < scaled(1)
    for sock in socks:
        sock.close()  # while their refusals wait
    poll(lambda: scrape(guarded, headers=bearer(TOKEN)).get("headgate_http_connections") <= 2,
         what="all have gone")


def test_token_file_and_reload(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    with serve({"tenants": [{"name": "default"}]}, admin={"token_file": str(path)}) as running:
        assert ask(running, "/metrics", headers=bearer(TOKEN)).status == 200
        path.write_text("another-token-now\n")
        running.ctl("reload")
        assert ask(running, "/metrics", headers=bearer("another-token-now")).status == 200
        assert ask(running, "/metrics", headers=bearer(TOKEN)).status == 401
        assert TOKEN not in running.stderr() and "another-token" not in running.stderr()


@pytest.mark.parametrize("admin,says", [
    ({"address": "0.0.0.0:0"}, "admin address '0.0.0.0:0' would show keys to everybody"),
    ({"address": "unix:/tmp/x"}, "is a unix socket"),
    ({"address": "127.0.0.1:0", "token": "short"},
     "token of admin is too short, or has blanks or bytes that no header takes "
     "(accepted: 8 to 512 printable ASCII characters)"),
    ({"address": "127.0.0.1:0", "token": "with a blank"}, "token of admin is too short, or has"),
    ({"address": "127.0.0.1:0", "token_file": "/nonexistent"}, "cannot read '/nonexistent'"),
])
def test_refused_configurations(admin, says):
    running = Headgate({"admin": admin, "tenants": [{"name": "default"}]}, wait=False)
    running.launch()
    assert running.process.wait(scaled(10)) == 1
    assert says in running.stderr()
    running.stop(check=False)


def test_beyond_loopback_a_reload_cannot_take_the_token_away():
    with serve({"tenants": [{"name": "default"}]},
               admin={"address": "0.0.0.0:0", "token": TOKEN}) as running:
        port = place(running)[1]
        with socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as sock:
            sock.sendall(get("/metrics", "Authorization: Bearer " + TOKEN, host="any.example"))
            assert sock.recv(12) == b"HTTP/1.1 200"
        running.write_config(admin={"address": "127.0.0.1:1"})
        running.ctl("reload")
        for headers in ([], ["Authorization: Bearer " + TOKEN], ["Authorization: Bearer "]):
            with socket.create_connection(("127.0.0.1", port), timeout=scaled(10)) as sock:
                sock.sendall(get("/metrics", *headers))
                assert sock.recv(12) == b"HTTP/1.1 401"


def test_a_busy_port_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = "127.0.0.1:%d" % taken.getsockname()[1]
        running = Headgate({"admin": {"address": where}, "tenants": [{"name": "default"}]}, wait=False)
        running.launch()
        assert running.process.wait(scaled(10)) == 1
        assert "cannot bind '%s' for HTTP: address in use" % where in running.stderr()
        running.stop(check=False)


# ---- clients that mean no good ----

def test_garbage(daemon):
    for data in (b"\x00" * 100, b"\xff\xfe\xfd\r\n\r\n", b"GET\r\n\r\n", b"GET /\r\n\r\n", b"\r\n" * 50,
                 b"GET / HTTP/9.9\r\n\r\n", b"GET http://[::1 HTTP/1.1\r\nHost: a\r\n\r\n",
                 b"\x80\x00\x00\x00\x00\x00\x00\x00" * 3 + b"\r\n\r\n",
                 b"GET %00%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                 b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                 b"GET /metrics HTTP/1.1\r\nHost localhost\r\n\r\n", os.urandom(3000) + b"\r\n\r\n"):
        with socket.create_connection(place(daemon), timeout=scaled(10)) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            reply = b""
            try:
                while True:
                    more = sock.recv(65536)
                    if not more:
                        break
                    reply += more
            except OSError:
                pass
            assert b"headgate_" not in reply, data
    assert ask(daemon, "/healthz").status == 200


def test_huge_heads_and_bodies(daemon):
    for data in (b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n", get("/healthz", "X: " + "y" * 100000),
                 get("/healthz", *["X%d: y" % i for i in range(5000)]),
                 b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n",
                 b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                 b"fffffff\r\n" + b"z" * 100000,
                 b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n"):
        with socket.create_connection(place(daemon), timeout=scaled(10)) as sock:
            reply = b""
            try:
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
                reply = sock.recv(65536)
            except OSError:
                pass
            assert not reply or status_of(reply) in (400, 413, 414, 431, 405, 200), (data[:60], reply)
            assert status_of(reply) != 200 or b"POST" in data[:4], data[:60]
    assert ask(daemon, "/healthz").status == 200


def test_pipelining(daemon):
    one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reply = raw(daemon, one * 49 + get("/healthz"))
    assert reply.count(b"HTTP/1.1 200 OK") == 50 and reply.count(b"\r\n\r\nok\n") == 50
    # Paths whose answers come from other threads keep their order too.
    asked = b"GET /api/hotkeys.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    reply = raw(daemon, (asked + one) * 10 + get("/healthz"))
    assert reply.count(b"HTTP/1.1 200 OK") == 21


def test_slow_heads_keep_nobody_out(daemon):
    """More connections than there are places, each of which sends its head byte by byte."""
    socks = []
    for _ in range(150):
        sock = socket.create_connection(place(daemon), timeout=scaled(10))
        sock.sendall(b"GET /met")
        socks.append(sock)
    for _ in range(5):
        for sock in socks:
            try:
                sock.sendall(b"r")
            except OSError:
                pass
        began = time.monotonic()
        seen = scrape(daemon)
        assert time.monotonic() - began < scaled(1)
        assert seen.get("headgate_http_connections") <= 96
    for sock in socks:
        sock.close()
    poll(lambda: scrape(daemon).get("headgate_http_connections") <= 2, what="all have gone")


def test_a_head_that_never_ends_is_cut_off(daemon):
    with socket.create_connection(place(daemon), timeout=scaled(30)) as sock:
        began = time.monotonic()
        sock.sendall(b"GET /healthz HTTP/1.1\r\n")
        sock.settimeout(0.5)
        while time.monotonic() - began < scaled(20):
            try:
                sock.sendall(b"X: y\r\n")
                if sock.recv(1) == b"":
                    break
            except socket.timeout:
                continue
            except OSError:
                break
        assert 4.5 < time.monotonic() - began < scaled(9)


def test_readers_that_do_not_read():
    """Replies that nobody takes are bounded, and so is memory."""
    tenants = [{"name": "tenant-with-a-long-name-%03d" % i} for i in range(100)]
    with serve({"tenants": tenants}) as running:
        one = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        size = len(ask(running, "/metrics").body)
        assert size > 500000
        before = running.process.rss_bytes()
        socks = []
        for _ in range(60):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(place(running))
            sock.sendall(one * 20)
            socks.append(sock)
        began = time.monotonic()
        assert ask(running, "/healthz").status == 200
        assert time.monotonic() - began < scaled(2)
        assert running.process.rss_bytes() - before < (100 << 20) * memory_factor()
        for sock in socks:
            sock.close()
        poll(lambda: ask(running, "/metrics").status == 200 and
             scrape(running).get("headgate_http_connections") <= 2, what="all have gone")


def test_clients_that_leave_in_the_middle(daemon):
    for path in ("/metrics", "/api/hotkeys.json", "/api/slow.json", "/api/history.json", "/"):
        for _ in range(30):
            sock = socket.create_connection(place(daemon))
            sock.sendall(get(path))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
            sock.close()
    poll(lambda: scrape(daemon).get("headgate_http_connections") <= 2, what="all have gone")
    assert api(daemon, "slow") == {"slow": []}


def test_ending_with_requests_under_way():
    running = serve({"tenants": [{"name": "default"}]}, admin={"token": TOKEN})
    socks = []
    for path in ("/metrics", "/api/hotkeys.json", "/api/slow.json", "/metrics"):
        sock = socket.create_connection(place(running))
        sock.sendall(get(path, "Authorization: Bearer " + (TOKEN if "api" in path else "wrong-token")))
        socks.append(sock)
    running.stop()
    for sock in socks:
        sock.close()
