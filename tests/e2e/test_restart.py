"""test_restart - restarts that nobody notices: sockets from the parent, hand-over to a new process
under load, the drain between requests, and what the service manager is told."""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import fcntl
import http.client
import itertools
import os
import signal
import socket
import stat
import struct
import subprocess
import threading
import time

import pytest

from certs import Authority
from handover_tools import Load, log_of, start_successor, take_over
from mcbin import (Client, Closed, Op, St, connect_socket, poll, request, scaled,
                   set_extras)
from servers import (HEADGATE, FakeBackend, Headgate, Memcached, Process, free_port, to_yaml,
                     user_row)
from webclient import ask

pytestmark = pytest.mark.threaded


_numbers = itertools.count(1)


# ---- hand-over ----

@pytest.fixture(scope="module")
def memcached():
    server = Memcached()
    yield server
    server.stop()


def remote(memcached):
    return {"upstreams": [{"name": "store", "kind": "memcached",
                           "servers": [{"address": memcached.where}]}],
            "tenants": [{"name": "default"}]}


@pytest.mark.parametrize("store", ["memcached", "embedded"])
def test_three_handovers_under_load(memcached, store):
    config = remote(memcached) if store == "memcached" else {}
    with Headgate(dict(config, threads=2)) as daemon:
        with Load(daemon.address) as load:
            pids = {daemon.pid}
            for _ in range(3):
                log = take_over(daemon)
                assert "a new process has taken over" in log
                pids.add(daemon.pid)
                load.more()
            assert len(pids) == 4
        load.check(daemon)


@pytest.mark.parametrize("store", ["memcached", "embedded"])
def test_handovers_of_a_tls_listener(memcached, store):
    """A handshake that the old process has begun it finishes, and answers the first request."""
    authority = Authority()
    shown = authority.issue("headgate")
    config = remote(memcached) if store == "memcached" else {}
    port = free_port()
    with Headgate(config, wait=False) as daemon:
        daemon.write_config(listen=daemon.config["listen"] + [
            {"address": "127.0.0.1:%d" % port,
             "tls": {"certificate": shown.certificate, "key": shown.key}}])
        daemon.start()
        address = ("127.0.0.1", port)
        with Load(address, 3, tls=authority.context()) as load:
            with Client(address, tls=authority.context()) as idle:
                idle.noop()
                for _ in range(2):
                    take_over(daemon)
                    load.more(20)
                with pytest.raises(Closed):
                    idle.recv(5)
        load.check(daemon)


@pytest.mark.parametrize("store", ["memcached", "embedded"])
def test_the_admin_socket_is_handed_over(memcached, store):
    """/healthz answers through two hand-overs, one connection each; the last process is ready."""
    config = dict(remote(memcached) if store == "memcached" else {},
                  admin={"address": "127.0.0.1:%d" % free_port()})
    failures, asked, stopping = [], [0], threading.Event()

    def run():
        while not stopping.is_set():
            try:
                assert ask(daemon, "/healthz").status == 200
                asked[0] += 1
            except (OSError, http.client.HTTPException) as error:
                failures.append(repr(error))

    with Headgate(config) as daemon:
        thread = threading.Thread(target=run)
        thread.start()
        for _ in range(2):
            before = asked[0]
            poll(lambda: asked[0] > before + 5, 10, what="HTTP answered")
            take_over(daemon)
        before = asked[0]
        poll(lambda: asked[0] > before + 5, 10, what="HTTP answered by the last one")
        stopping.set()
        thread.join(scaled(15))
        # One that the old process had just accepted may see its end.
        assert not [f for f in failures if "refused" in f] and len(failures) <= 2, failures
        assert ask(daemon, "/readyz").status == 200


def test_not_ready_while_it_drains():
    with Held() as backend:
        config = backend.config(admin={"address": "127.0.0.1:%d" % free_port()})
        with Headgate(config) as daemon, daemon.client(timeout=15) as client:
            assert ask(daemon, "/readyz").status == 200
            client.send(request(Op.GET, b"slow"))
            backend.wait_for()
            daemon.process.signal(signal.SIGTERM)
            poll(lambda: ask(daemon, "/readyz").status == 503, 5, what="not ready")
            assert ask(daemon, "/healthz").status == 200
            backend.gate.set()
            assert client.recv(5).status == St.ENOENT
            assert daemon.process.wait(10) == 0


def test_pipelines_are_answered(memcached):
    """Long pipelines: what is answered is answered whole and in order, up to the end of the stream."""
    results, stopping = [], threading.Event()

    def run():
        while not stopping.is_set():
            with daemon.client(timeout=10) as client:
                sent = got = 0
                try:
                    while not stopping.is_set():
                        client.send(b"".join(request(Op.SET, b"p%d" % (i % 7), b"v" * 2000,
                                                     set_extras(), opaque=sent + i)
                                             for i in range(50)))
                        sent += 50
                        while got < sent:
                            assert client.recv(10).opaque == got
                            got += 1
                except (Closed, OSError):
                    results.append(len(client.buffer))

    with Headgate(remote(memcached)) as daemon:
        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            take_over(daemon)
        stopping.set()
        for thread in threads:
            thread.join(scaled(15))
        assert len(results) >= 3 and set(results) == {0}, results


@pytest.mark.foreign
@pytest.mark.parametrize("store", ["memcached", "embedded"])
def test_real_client(memcached, store):
    """pylibmc, with connections that stay: it sees a connection end, asks again and goes on."""
    import pylibmc  # pylint: disable=import-outside-toplevel
    lost, served, stopping = [], [0, 0], threading.Event()

    def run(number):
        client = pylibmc.Client(["127.0.0.1:%d" % daemon.port], binary=True,
                                behaviors={"tcp_nodelay": True, "retry_timeout": 1})
        n, failed_at = 0, None
        while not stopping.is_set():
            n += 1
            try:
                client["real:%d" % number] = n
                if client["real:%d" % number] != n:
                    lost.append(n)
                served[0] += 1
                failed_at = None
            except (pylibmc.Error, KeyError) as error:
                served[1] += 1
                failed_at = failed_at or time.monotonic()
                if time.monotonic() - failed_at > scaled(5):
                    lost.append(repr(error))
                    return
                client.disconnect_all()

    config = remote(memcached) if store == "memcached" else {}
    with Headgate(config) as daemon:
        threads = [threading.Thread(target=run, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(2):
            before = served[0]
            poll(lambda: served[0] > before + 50, 10, what="served")
            take_over(daemon)
        before = served[0]
        poll(lambda: served[0] > before + 50, 10, what="served by the last one")
        stopping.set()
        for thread in threads:
            thread.join(scaled(15))
    assert not lost, lost
    # Each connection is closed once a hand-over, and costs a request or two of its client.
    assert served[1] <= 3 * 2 * 3, served


class Held:
    """A backend that keeps the answers for the key `slow` until it is told to give them."""

    def __init__(self):
        self.gate = threading.Event()
        self.fake = FakeBackend(self._handle)

    def _handle(self, connection, frame):
        if frame.key == b"slow" and frame.opcode != Op.SET:
            self.gate.wait(scaled(10))
        FakeBackend.store(connection, frame)

    def config(self, **options):
        upstream = {"name": "store", "kind": "memcached", "backend_timeout_ms": 8000,
                    "servers": [{"address": self.fake.where}]}
        return dict({"upstreams": [upstream], "tenants": [{"name": "default"}],
                     "request_deadline_ms": 9000}, **options)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.gate.set()
        self.fake.stop()

    def wait_for(self, count=1):
        poll(lambda: self.fake.count(Op.GET) >= count, 5, what="the request at the backend")


def ended(client):
    with pytest.raises((Closed, ConnectionResetError)):
        client.recv(5)
    return True


def test_in_flight_is_answered_by_the_old_one():
    with Held() as backend, Headgate(backend.config()) as daemon:
        with daemon.client(timeout=15) as client:
            client.set(b"slow", b"answer")
            client.send(request(Op.GET, b"slow", opaque=7))
            backend.wait_for()
            # Behind it, and not begun when the hand-over comes.
            client.send(request(Op.GET, b"slow", opaque=8) + request(Op.NOOP, opaque=9))
            old, new = daemon.process, start_successor(daemon)
            poll(lambda: 'msg="ready"' in log_of(new), 10, what="the new process ready")
            assert old.alive()
            with daemon.client() as other:
                assert other.stat()["pid"] == str(new.pid)
            backend.gate.set()
            assert [client.recv(5).opaque for _ in range(3)] == [7, 8, 9]
            assert ended(client)
        assert old.wait(10) == 0
        daemon.process = new


def test_a_new_connection_may_ask_before_it_is_closed():
    """Accepted by the old one at the last moment: its first request is answered."""
    with Held() as backend, Headgate(backend.config()) as daemon:
        with daemon.client(timeout=15) as busy, daemon.client(timeout=15) as idle:
            idle.noop()
            busy.send(request(Op.GET, b"slow"))
            backend.wait_for()
            with daemon.client() as fresh:
                poll(lambda: idle.stat()["curr_connections"] == "3", 5, what="accepted")
                daemon.process.signal(signal.SIGTERM)
                assert ended(idle)
                assert fresh.noop().status == 0
                assert ended(fresh)
            backend.gate.set()
            assert busy.recv(5).status == St.ENOENT
            assert ended(busy)
        assert daemon.process.wait(10) == 0


def test_half_a_request_is_waited_for():
    with Held() as backend, Headgate(backend.config()) as daemon:
        with daemon.client(timeout=15) as client:
            client.noop()
            whole = request(Op.SET, b"k", b"v" * 100, set_extras())
            client.send(whole[:60])
            poll(lambda: int(dict_of_threads(daemon)["worker_0:bytes_read"]) >= 84, 5,
                 what="the first half read")
            daemon.process.signal(signal.SIGTERM)
            poll(lambda: "draining" in daemon.stderr(), 5, what="the drain")
            client.send(whole[60:])
            assert client.recv(5).status == 0
            assert ended(client)
        assert daemon.process.wait(10) == 0
        assert backend.fake.items[b"k"]


def dict_of_threads(daemon):
    with daemon.client() as client:
        return client.stat("threads")


def test_held_requests_wait_on_for_half_of_the_drain():
    config = {"tenants": [{"name": "default", "hard_limit": 0}], "throttle_max_wait_ms": 2000,
              "drain_timeout_s": 1}
    with Headgate(config) as daemon:
        with daemon.client() as client:
            client.send(request(Op.SET, b"k", b"v", set_extras(), opaque=3))
            assert client.silent(0.1)
            begun = time.monotonic()
            daemon.process.signal(signal.SIGTERM)
            frame = client.recv(5)
            assert frame.status == St.ETMPFAIL
            assert 0.3 < time.monotonic() - begun < scaled(1.5)
            assert ended(client)
        assert daemon.process.wait(5) == 0


# ---- when the new process fails ----

def still_serves(daemon, pid=None):
    with daemon.client() as client:
        assert client.stat()["pid"] == str(pid or daemon.pid)
        client.set(b"alive", b"yes")


@pytest.mark.parametrize("wrong", ["yaml", "listen", "users", "lmdb"])
def test_a_wrong_new_configuration_leaves_the_old_one(wrong):
    with Headgate() as daemon:
        path = os.path.join(daemon.directory, "new.yaml")
        config = dict(daemon.config)
        if wrong == "yaml":
            config["thread"] = 3
        elif wrong == "listen":
            with socket.create_server(("127.0.0.1", 0)) as taken:
                config["listen"] = config["listen"] + [
                    {"address": "127.0.0.1:%d" % taken.getsockname()[1]}]
                check_refused(daemon, path, config, "address in use")
            return
        elif wrong == "users":
            config["users_file"] = "/nowhere/users.yaml"
        else:
            config["tenants"] = [{"name": "default", "upstream": "embedded"}]
            config["upstreams"] = [{"name": "embedded", "kind": "embedded"},
                                   {"name": "other", "kind": "embedded"}]
            with open(os.path.join(config["data_dir"], "other.mdb"), "wb") as file:
                file.write(b"no LMDB file" * 1000)
            os.chmod(file.name, 0o600)
        check_refused(daemon, path, config, {"yaml": "thread", "users": "/nowhere/users.yaml",
                                             "lmdb": "other.mdb"}[wrong])


def check_refused(daemon, path, config, text):
    Headgate._write(path, to_yaml(config))
    with daemon.client() as client:
        client.set(b"before", b"there")
    with Load(daemon.address, 2) as load:
        new = start_successor(daemon, path)
        assert new.wait(15) == 1
        assert text in log_of(new), log_of(new)
        load.more(20)
    load.check(daemon)
    still_serves(daemon)
    with daemon.client() as client:
        assert client.get(b"before").value == b"there"
    take_over(daemon)
    still_serves(daemon)


MESSAGE = struct.Struct("=IHHIBB80s80s256s2x")
HELLO, OFFER, REFUSE, RELEASE, RELEASED, DONE, BYE = range(1, 8)


class Stranger:
    """The new side of a hand-over, by hand."""

    def __init__(self, daemon):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(scaled(5))
        self.sock.connect(os.path.join(daemon.config["data_dir"], "handover.sock"))
        self.fds = []

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.sock.close()
        for fd in self.fds:
            os.close(fd)

    def say(self, kind, magic=0x4f484748, version=1):
        self.sock.send(MESSAGE.pack(magic, version, kind, 0, 0, 0, b"", b"", b""))

    def hear(self):
        """Kind, and what came as the reason; 0 at the end."""
        data, fds, _, _ = socket.recv_fds(self.sock, 1000, 80)
        self.fds += fds
        if not data:
            return 0, ""
        fields = MESSAGE.unpack(data)
        return fields[2], fields[8].split(b"\0")[0].decode()


@pytest.mark.parametrize("step", ["hello", "offer", "release", "released"])
@pytest.mark.parametrize("store", ["memcached", "embedded"])
def test_the_new_process_dies_half_way(memcached, store, step):
    config = remote(memcached) if store == "memcached" else {}
    with Headgate(config) as daemon:
        with Load(daemon.address, 2) as load:
            with Stranger(daemon) as stranger:
                if step != "hello":
                    stranger.say(HELLO)
                    assert stranger.hear()[0] == OFFER and len(stranger.fds) == 1
                    load.more(10)
                if step.startswith("release"):
                    stranger.say(RELEASE)
                if step == "released":
                    assert stranger.hear()[0] == RELEASED
            load.more(20)
        load.check(daemon)
        still_serves(daemon)
        take_over(daemon)
        still_serves(daemon)


def test_nothing_is_changed_while_another_takes_over():
    with Headgate() as daemon, Stranger(daemon) as stranger:
        stranger.say(HELLO)
        assert stranger.hear()[0] == OFFER
        with daemon.client() as client:
            frame = client.call(Op.SET_PARAM, b"node_capacity", b"5000")
            assert frame.status == St.EBUSY and b"taking over" in frame.value, frame
            assert client.call(Op.CONFIG_RELOAD).status != 0
            daemon.process.signal(signal.SIGHUP)
            poll(lambda: "reload refused" in daemon.stderr(), 5, what="the refusal of SIGHUP")
            with Stranger(daemon) as second:
                assert second.hear() == (REFUSE, "another process is taking over")
            stranger.sock.close()
            poll(lambda: client.call(Op.SET_PARAM, b"node_capacity", b"5000").status == 0, 5,
                 what="changes are made again")
        take_over(daemon)
        with daemon.client() as client:
            assert client.stat("settings")["node_capacity"] == "5000"


def test_what_is_no_handover_is_refused():
    with Headgate() as daemon:
        with Stranger(daemon) as stranger:
            stranger.say(HELLO, version=2)
            kind, why = stranger.hear()
            assert kind == REFUSE and "version" in why
        for send in (lambda s: s.say(DONE), lambda s: s.say(HELLO, magic=5),
                     lambda s: s.sock.send(b"GET / HTTP/1.0"), lambda s: s.say(99)):
            with Stranger(daemon) as stranger:
                send(stranger)
                assert stranger.hear()[0] == 0 and not stranger.fds
        mode = os.stat(os.path.join(daemon.config["data_dir"], "handover.sock")).st_mode
        assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
        still_serves(daemon)
    assert not os.path.exists(os.path.join(daemon.config["data_dir"], "handover.sock"))


def test_who_says_nothing_is_hung_up_on():
    with Headgate() as daemon, Stranger(daemon) as silent:
        with Stranger(daemon) as second:
            assert second.hear() == (REFUSE, "another process is taking over")
        silent.sock.settimeout(scaled(8))
        assert silent.hear() == (0, "")
        assert "silent for too long" in daemon.stderr()
        take_over(daemon)
        still_serves(daemon)


def test_the_old_one_may_be_ended_while_another_takes_over(memcached):
    """SIGTERM comes between the offer and DONE: the sockets are with the new one, and stay open."""
    with Headgate(remote(memcached)) as daemon:
        with Stranger(daemon) as stranger:
            stranger.say(HELLO)
            assert stranger.hear()[0] == OFFER
            daemon.process.signal(signal.SIGTERM)
            assert daemon.process.wait(10) == 0
            assert stranger.hear()[0] == 0
            # The socket is with the stranger, and still takes connections.
            socket.create_connection(daemon.address, scaled(5)).close()


def test_files_of_shared_sockets_stay_when_the_old_one_is_ended():
    """SIGTERM between the offer and DONE: the new one's clients find its unix socket."""
    with Headgate(wait=False) as daemon:
        path = os.path.join(daemon.directory, "sock")
        daemon.write_config(listen=daemon.config["listen"] + [{"address": "unix:" + path}])
        daemon.start()
        with daemon.client() as client, Stranger(daemon) as stranger:
            stranger.say(HELLO)
            assert stranger.hear()[0] == OFFER and len(stranger.fds) == 2
            daemon.process.signal(signal.SIGTERM)
            poll(lambda: "draining" in daemon.stderr(), 5, what="draining")
            client.close()
            assert daemon.process.wait(10) == 0
            connect_socket(path).close()


def test_nobody_waits_for_one_who_hangs():
    """Its queue is full of those who asked before: the next one is told so, and does not hang."""
    with Headgate() as daemon, contextlib.ExitStack() as stack:
        daemon.process.pause()
        try:
            for _ in range(50):
                sock = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                sock.setblocking(False)
                try:
                    sock.connect(os.path.join(daemon.config["data_dir"], "handover.sock"))
                except BlockingIOError:
                    break
            else:
                raise AssertionError("the queue has no end")
            new = start_successor(daemon)
            assert new.wait(10) == 1 and "no answer in time" in log_of(new)
        finally:
            daemon.process.resume()
        stack.close()
        take_over(daemon)
        still_serves(daemon)


def test_without_anybody_to_take_over_from():
    with Headgate(wait=False) as daemon:
        daemon.process = start_successor(daemon)
        poll(lambda: "ready" in daemon.stderr(), 10, what="ready")
        assert "no running process to take over from" in daemon.stderr()
        still_serves(daemon)
    with Headgate({"handover_socket": ""}) as daemon:
        new = start_successor(daemon)
        assert new.wait(10) == 1 and "handover_socket is off" in log_of(new)
        still_serves(daemon)


def test_sigusr2_and_what_has_changed_in_listen():
    """The signal starts the program anew; one address goes, one comes, a unix socket stays."""
    with Headgate(wait=False) as daemon:
        path = os.path.join(daemon.directory, "sock")
        gone = os.path.join(daemon.directory, "gone")
        fresh = free_port()
        first = daemon.config["listen"] + [{"address": "unix:" + path}]
        daemon.write_config(listen=first + [{"address": "unix:" + gone}])
        daemon.start()
        inode = os.stat(path).st_ino
        daemon.write_config(listen=first + [{"address": "127.0.0.1:%d" % fresh}])
        old = daemon.process
        old.signal(signal.SIGUSR2)
        poll(lambda: not old.alive(), 15, what="the old one's end\n" + log_of(old))
        assert "started a new process" in log_of(old)
        with Client(path) as client:
            pid = int(client.stat()["pid"])
        try:
            assert pid != old.pid and os.stat(path).st_ino == inode
            assert not os.path.exists(gone)
            with Client(("127.0.0.1", fresh)) as client:
                assert client.stat()["pid"] == str(pid)
            still_serves(daemon, pid)
        finally:
            os.kill(pid, signal.SIGTERM)
        poll(lambda: not serves_still(pid), 10, what="its end")
        assert not os.path.exists(path)


def state_of(pid):
    with open("/proc/%d/stat" % pid) as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def serves_still(pid):
    return os.path.exists("/proc/%d" % pid) and state_of(pid) != "Z"


# ---- sockets of the parent ----

class Activated(Headgate):
    """Started as systemd would: sockets from descriptor 3 on."""

    def __init__(self, config, sockets, names, **more):
        self.sockets, self.names = sockets, names
        super().__init__(config, wait=False, **more)

    def launch(self):
        # Numbers that are free, and not those that they are to get.
        copies = [fcntl.fcntl(sock.fileno(), fcntl.F_DUPFD, 100) for sock in self.sockets]
        moves = "".join(" %d<&%d %d<&-" % (3 + n, copy, copy) for n, copy in enumerate(copies))
        script = "export LISTEN_PID=$$ LISTEN_FDS=%d LISTEN_FDNAMES=%s; exec \"$@\"%s" % (
            len(self.sockets), self.names, moves)
        try:
            self.process = PassingProcess(["bash", "-c", script, "bash", *self.argv()], self.directory,
                                          "headgate", copies)
        finally:
            for copy in copies:
                os.close(copy)
        return self


class PassingProcess(Process):
    def __init__(self, argv, directory, name, fds):
        real = subprocess.Popen
        try:
            subprocess.Popen = lambda *args, **more: real(*args, pass_fds=fds, **more)
            super().__init__(argv, directory, name)
        finally:
            subprocess.Popen = real


def listening(address):
    family = socket.AF_UNIX if isinstance(address, str) else \
        socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    sock = socket.socket(family)
    sock.bind(address)
    sock.listen(16)
    return sock


def test_sockets_of_the_parent(tmp_path):
    path = str(tmp_path / "sock")
    own = free_port()
    with listening(("127.0.0.1", 0)) as tcp, listening(path) as unix:
        port = tcp.getsockname()[1]
        early = socket.create_connection(("127.0.0.1", port))
        early.sendall(request(Op.NOOP))
        config = {"listen": [{"address": "127.0.0.1:%d" % own},
                             {"address": "localhost:%d" % port}, {"address": "unix:" + path}]}
        with Activated(config, [unix, tcp], "a:b") as daemon:
            daemon.launch()
            early.settimeout(scaled(5))
            assert len(early.recv(24)) == 24, "who came before the start is served"
            early.close()
            for address in (("127.0.0.1", own), ("127.0.0.1", port), path):
                with Client(address) as client:
                    assert client.stat()["pid"] == str(daemon.pid)
            environment = open("/proc/%d/environ" % daemon.pid, "rb").read()
            assert b"LISTEN_PID" in environment, "as it was at the start"
            # Its successor has the sockets, and not the variables.
            take_over(daemon)
            for address in (("127.0.0.1", own), ("127.0.0.1", port), path):
                with Client(address) as client:
                    assert client.stat()["pid"] == str(daemon.pid)
        assert os.path.exists(path), "the file of the parent's socket stays"


@pytest.mark.parametrize("case", ["unwanted", "datagram", "closed", "count", "connected"])
def test_sockets_of_the_parent_that_are_wrong(case):
    with contextlib.ExitStack() as stack:
        good = stack.enter_context(listening(("127.0.0.1", 0)))
        other = stack.enter_context(listening(("127.0.0.1", 0)))
        port, other_port = good.getsockname()[1], other.getsockname()[1]
        sockets, text = [good, other], "127.0.0.1:%d" % other_port
        if case == "datagram":
            udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sockets, text = [good, udp], "wrong kind of socket"
        elif case == "closed":
            sockets, text = [good, stack.enter_context(open("/dev/null", "rb"))], "no socket"
        elif case == "connected":
            client = stack.enter_context(socket.create_connection(("127.0.0.1", other_port)))
            sockets, text = [client], "wrong kind of socket"
        daemon = Activated({"listen": [{"address": "127.0.0.1:%d" % port}]}, sockets, "x:y")
        if case == "count":
            daemon.sockets, text = [good], "LISTEN_FDS"
            daemon.wrapper = ["env", "LISTEN_FDS=many"]
        daemon.launch()
        assert daemon.process.wait(10) == 1
        assert text in daemon.stderr() and "headgate: " in daemon.stderr(), daemon.stderr()
        daemon.process.kill()


def test_sockets_that_are_meant_for_another_process():
    with Headgate(env={"LISTEN_PID": "1", "LISTEN_FDS": "3"}) as daemon:
        still_serves(daemon)


# ---- the service manager ----

class Manager:
    """What systemd listens on. Each message is a list of lines."""

    def __init__(self, directory, abstract=False):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.settimeout(scaled(5))
        name = "hg-test-%d-%d" % (os.getpid(), next(_numbers))
        self.sock.bind("\0" + name if abstract else os.path.join(directory, name))
        self.path = "@" + name if abstract else os.path.join(directory, name)
        self.env = {"NOTIFY_SOCKET": self.path}
        self.seen = []

    def hear(self, word, timeout=8.0):
        """The next message that has such a line; what came before it is in `seen`."""
        end = time.monotonic() + scaled(timeout)
        while True:
            assert time.monotonic() < end, (word, self.seen)
            with contextlib.suppress(socket.timeout):
                self.seen.append(self.sock.recv(4096).decode().split("\n"))
                if any(line.startswith(word) for line in self.seen[-1]):
                    return self.seen[-1]


@pytest.mark.parametrize("abstract", [False, True])
def test_the_manager_is_told(tmp_path, abstract):
    manager = Manager(str(tmp_path), abstract)
    with Headgate(env=manager.env) as daemon:
        assert manager.hear("READY=1")[1].startswith("STATUS=")
        assert len(manager.seen) == 1
        before_us = time.monotonic_ns() // 1000
        daemon.process.signal(signal.SIGHUP)
        message = manager.hear("RELOADING=1")
        told_us = int([line for line in message if line.startswith("MONOTONIC_USEC=")][0][15:])
        assert before_us <= told_us <= time.monotonic_ns() // 1000
        manager.hear("READY=1")
        daemon.write_config(node_capacity="lots")
        daemon.process.signal(signal.SIGHUP)
        manager.hear("RELOADING=1")
        assert "fail" in manager.hear("READY=1")[1], "it runs on, with the old settings"
        daemon.process.signal(signal.SIGTERM)
        manager.hear("STOPPING=1")
        assert daemon.process.wait(10) == 0
    assert not any("WATCHDOG=1" in message for message in manager.seen)


def test_the_manager_follows_a_handover(tmp_path, memcached):
    for config in (remote(memcached), {}):
        manager = Manager(str(tmp_path))
        with Headgate(config, env=manager.env) as daemon:
            manager.hear("READY=1")
            manager.seen.clear()
            old = daemon.process
            old.signal(signal.SIGUSR2)
            main = manager.hear("MAINPID=")
            pid = int(main[0][8:])
            assert pid != old.pid
            manager.hear("READY=1")
            assert old.wait(10) == 0
            assert not any("STOPPING=1" in message for message in manager.seen)
            still_serves(daemon, pid)
            os.kill(pid, signal.SIGTERM)
            manager.hear("STOPPING=1")
            poll(lambda: not serves_still(pid), 10, what="its end")


def test_watchdog(tmp_path):
    """Ten intervals of a busy and of an idle process: each is pinged in time."""
    manager = Manager(str(tmp_path))
    env = dict(manager.env, WATCHDOG_USEC="400000")
    with Headgate({"threads": 3}, env=env) as daemon:
        manager.hear("READY=1")
        times = []
        with Load(daemon.address, 2):
            for _ in range(8):
                manager.hear("WATCHDOG=1")
                times.append(time.monotonic())
        for _ in range(4):
            manager.hear("WATCHDOG=1")
            times.append(time.monotonic())
        gaps = [b - a for a, b in zip(times, times[1:])]
        assert max(gaps) < scaled(0.4) and sum(gaps) / len(gaps) > 0.1, gaps
        assert "no sign of life" not in daemon.stderr()
    quiet = Manager(str(tmp_path))
    with Headgate(env=dict(quiet.env, WATCHDOG_USEC="100000", WATCHDOG_PID="1")) as daemon:
        quiet.hear("READY=1")
        quiet.sock.settimeout(0.3)
        with pytest.raises(socket.timeout):
            quiet.sock.recv(100)


def test_the_watchdog_follows_handovers(tmp_path):
    """Its variables name the first process; the third is pinged for all the same."""
    manager = Manager(str(tmp_path))
    env = dict(manager.env, WATCHDOG_USEC="200000")
    with Headgate(wait=False, env=env) as daemon:
        # The process sets its own id first, as a manager would.
        daemon.wrapper = ["bash", "-c", "WATCHDOG_PID=$$ exec \"$@\"", "bash"]
        daemon.start()
        manager.hear("WATCHDOG=1")
        pids = [daemon.pid]
        for _ in range(2):
            manager.seen.clear()
            os.kill(pids[-1], signal.SIGUSR2)
            pids.append(int(manager.hear("MAINPID=")[0][8:]))
            manager.hear("READY=1")
            poll(lambda: not serves_still(pids[-2]), 10, what="the old one's end")
            manager.seen.clear()
            for _ in range(3):
                manager.hear("WATCHDOG=1", 1.0)
        os.kill(pids[-1], signal.SIGTERM)
        poll(lambda: not serves_still(pids[-1]), 10, what="the last one's end")


def test_a_manager_that_is_not_there():
    for path in ("/nowhere/notify", "nonsense", "@" + "x" * 200):
        with Headgate(env={"NOTIFY_SOCKET": path}) as daemon:
            still_serves(daemon)


# ---- server.drain ----

def test_drain_by_headgatectl():
    with Headgate() as daemon:
        daemon.ctl("drain", "--wait")
        assert daemon.process.wait(5) == 0


def test_drain_by_opcode():
    users = {"users": [user_row("boss", privileges=("NodeSupervisor",)), user_row("shop")]}
    config = {"tenants": [{"name": "shop"}, {"name": "boss"}]}
    with Headgate(config, users=users) as daemon:
        with daemon.client() as client:
            client.login("shop", "pw")
            assert client.call(Op.SET_PARAM, b"server.drain", b"true").status == St.EACCESS
        with daemon.client() as client, daemon.client() as idle:
            idle.login("shop", "pw")
            client.login("boss", "pw")
            frame = client.call(Op.SET_PARAM, b"server.drain", b"yes")
            assert frame.status == St.EINVAL and b"accepted: true" in frame.value
            assert client.call(Op.SET_PARAM, b"server.drain", b"true").status == 0
            assert ended(client) and ended(idle)
        assert daemon.process.wait(10) == 0
        assert "asked to drain" in daemon.stderr()
