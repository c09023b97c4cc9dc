"""servers - start, watch and stop the real servers a test needs, and fake ones.

Everything listens on 127.0.0.1 (or a unix socket, or ::1) on a free port, is waited for with a
bound, is stopped by its own pid, and leaves no file outside of its temporary directory.
built tells where the programs are.
"""
# SPDX-License-Identifier: BSD-3-Clause

import atexit
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import built
from built import BUILD, HEADGATE, HEADGATECTL, memory_factor  # noqa: F401
from mcbin import (PATIENCE, Client, Closed, Op, parse, poll, response, scaled, scram_secret)

SANITIZER = re.compile(rb"(ERROR: \w*Sanitizer|runtime error:|WARNING: ThreadSanitizer)")


class _Ports:
    """Ports of 20000 and up, which the kernel gives to nobody, each handed out once. Processes that
    run beside each other share a file; who has a lock on the byte of a port has the port, until it
    ends."""

    FIRST, COUNT = 20000, 12000

    def __init__(self):
        self.path = os.path.join(tempfile.gettempdir(), "headgate-tests-%d.ports" % os.geteuid())
        self.file = None
        self.mine = set()
        self.lock = threading.Lock()

    def take(self, free):
        """A port for which free(port) is true."""
        with self.lock:
            if self.file is None:
                self.file = open(self.path, "ab")
            for _ in range(2000):
                port = self.FIRST + struct.unpack(">H", os.urandom(2))[0] % self.COUNT
                if port not in self.mine and self._locked(port) and free(port):
                    self.mine.add(port)
                    return port
        raise RuntimeError("no free port")

    def _locked(self, port):
        try:
            fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            return True
        except OSError:
            return False


_ports = _Ports()


def free_port(host="127.0.0.1"):
    """A port nobody listens on now, and no test beside this one asks for."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET

    def free(port):
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((host, port))
                return True
            except OSError:
                return False
    return _ports.take(free)


def answers(address, tls=None):
    """True when a memcached-speaking server answers a NOOP there."""
    try:
        with Client(address, timeout=1.0, tls=tls) as client:
            client.noop()
            return True
    except (OSError, Closed, AssertionError):
        return False


def is_pid(address, pid, tls=None):
    """True when the server there is that process, not another run's that took the port first."""
    try:
        with Client(address, timeout=1.0, tls=tls) as client:
            return client.stat().get("pid") == str(pid)
    except (OSError, Closed, AssertionError):
        return False


_started, _directories = [], []


def sweep():
    """At the end: what a test that failed has left running or lying about."""
    for process in _started:
        if process.alive():
            process.kill()
    for directory in _directories:
        shutil.rmtree(directory, ignore_errors=True)


atexit.register(sweep)


def temporary_directory(prefix):
    """A directory that is gone when the tests end, if not earlier."""
    _directories.append(tempfile.mkdtemp(prefix=prefix))
    return _directories[-1]


class Process:
    """A child with its standard error in a file."""

    def __init__(self, argv, directory, name, env=None):
        self.name = name
        self.stderr_path = os.path.join(directory, name + ".stderr")
        self.log = open(self.stderr_path, "ab")
        full = dict(os.environ)
        # Sanitizers keep freed memory in quarantine; with the usual 256 MB of it no test of memory
        # would mean anything.
        full.setdefault("ASAN_OPTIONS", "quarantine_size_mb=8:detect_leaks=1")
        full.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        full.update(env or {})
        self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log,
                                      stderr=self.log, cwd=directory, env=full)
        _started.append(self)

    @property
    def pid(self):
        return self.child.pid

    def alive(self):
        return self.child.poll() is None

    def stderr(self):
        with open(self.stderr_path, "rb") as log:
            return log.read()

    def signal(self, number):
        self.child.send_signal(number)

    def pause(self):
        self.signal(signal.SIGSTOP)
        poll(lambda: self._state() == "T", what="%s stopped" % self.name)

    def resume(self):
        self.signal(signal.SIGCONT)

    def _state(self):
        with open("/proc/%d/stat" % self.pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]

    def rss_bytes(self):
        with open("/proc/%d/status" % self.pid) as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def cpu_s(self):
        with open("/proc/%d/stat" % self.pid) as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_ns(self):
        """Processor time of all its threads, by the kernel's clock of the process (see
        clock_getcpuclockid(3)), which is finer than what /proc tells."""
        return time.clock_gettime_ns(~self.pid << 3 | 2)

    def wait(self, timeout=PATIENCE):
        return self.child.wait(scaled(timeout))

    def kill(self):
        """End it whatever its state, and reap it."""
        if self.alive():
            self.child.kill()
        self.child.wait(scaled(PATIENCE))
        self.log.close()


class Memcached:
    """A real memcached with small threads and memory; `address` is where it listens. tls: a
    certs.Tls, then it speaks nothing else."""

    def __init__(self, *options, memory_mb=64, item_max="2m", unix=False, port=None, host="127.0.0.1",
                 tls=None):
        self.options, self.tls = options, tls
        self.memory_mb, self.item_max, self.host = memory_mb, item_max, host
        self.directory = temporary_directory("hg-mc-")
        self.unix_path = os.path.join(self.directory, "sock") if unix else None
        self.port = None if unix else port
        self.process = None
        self.start()

    @property
    def address(self):
        return self.unix_path or (self.host, self.port)

    @property
    def where(self):
        """The address as configurations write it."""
        if self.unix_path:
            return "unix:" + self.unix_path
        return "[%s]:%d" % (self.host, self.port) if ":" in self.host \
            else "%s:%d" % (self.host, self.port)

    def start(self):
        fixed = self.port
        for _ in range(5):
            self.port = fixed
            if self.unix_path:
                where = ["-s", self.unix_path]
            else:
                self.port = self.port or free_port(self.host)
                where = ["-l", self.host if ":" not in self.host else "[%s]" % self.host,
                         "-p", str(self.port)]
            argv = ["memcached", *where, "-U", "0", "-t", "1", "-m", str(self.memory_mb),
                    "-I", self.item_max, *self.options]
            if self.tls:
                argv += ["-Z", "-o", "ssl_chain_cert=%s,ssl_key=%s,ssl_ca_cert=%s,ssl_verify_mode=%d"
                         % (self.tls.shown.certificate, self.tls.shown.key,
                            self.tls.authority.certificate, 2 if self.tls.ask else 0)]
            if os.geteuid() == 0:
                argv += ["-u", "root"]
            self.process = Process(argv, self.directory, "memcached")
            deadline = time.monotonic() + scaled(PATIENCE)
            while self.process.alive() and time.monotonic() < deadline:
                if is_pid(self.address, self.process.pid, self.tls.client if self.tls else None):
                    return self
                time.sleep(0.01)
            log = self.process.stderr()
            self.process.kill()
        raise AssertionError("memcached did not start: %r" % log)

    def restart(self):
        """Start again on the same port after stop()."""
        return self.start()

    def pause(self):
        self.process.pause()

    def resume(self):
        self.process.resume()

    def kill(self):
        self.process.kill()

    def stop(self):
        self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


# ---- configuration files ----

_PLAIN = re.compile(r"^[A-Za-z_/.][A-Za-z0-9_/.-]*$")


def _scalar(value):
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    text = str(value)
    if _PLAIN.match(text) and text not in ("true", "false", "yes", "no", "null", "on", "off"):
        return text
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _flow(value):
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (_key(k), _flow(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(_flow(v) for v in value)
    return _scalar(value)


def _key(key):
    return key if re.match(r"^[A-Za-z_][A-Za-z0-9_]*$", key) else '"%s"' % key


def to_yaml(config):
    """A configuration as the manual writes it: one option a line, one list row a line."""
    lines = []
    for key, value in config.items():
        if isinstance(value, list):
            lines.append("%s:" % _key(key) if value else "%s: []" % _key(key))
            lines += ["  - %s" % _flow(row) for row in value]
        elif isinstance(value, dict):
            lines.append("%s: %s" % (_key(key), _flow(value)))
        else:
            lines.append("%s: %s" % (_key(key), _flow(value)))
    return "\n".join(lines) + "\n"


def with_patience(config):
    """The configuration with longer time-outs wherever it says nothing of them: its test is about
    something else, and a slow machine is no reason to refuse a request."""
    slow = max(1, int(built.SCALE))
    if slow == 1:
        return config
    config = dict(config)
    config.setdefault("request_deadline_ms", 2500 * slow)
    if "upstreams" in config:
        config["upstreams"] = [
            row if row.get("kind", "embedded") == "embedded" or "configuration" in row else
            dict({"connect_timeout_ms": 500 * slow, "backend_timeout_ms": 1000 * slow,
                  "queue_timeout_ms": 1000 * slow}, **row) for row in config["upstreams"]]
    return config


class Headgate:
    """The daemon under test. `config` holds options of the configuration file; listen, data_dir
    and state_file are added when absent, and longer time-outs unless patient is False. `users` is
    the content of the users file, or None."""

    def __init__(self, config=None, users=None, listen=None, wait=True, wrapper=(), env=None,
                 start_timeout=PATIENCE, patient=True):
        self.directory = temporary_directory("hg-e2e-")
        self.patient = patient
        self.config = dict(config or {})
        self.wrapper = list(wrapper)
        self.env = env
        self.start_timeout = start_timeout
        self.process = None
        self.port = free_port()
        self.config.setdefault("listen", listen or [{"address": "127.0.0.1:%d" % self.port}])
        self.config.setdefault("data_dir", os.path.join(self.directory, "data"))
        self.config.setdefault("state_file", os.path.join(self.directory, "state.json"))
        self.config.setdefault("threads", 1)
        self.users_path = os.path.join(self.directory, "users.yaml")
        if users is not None:
            self.config.setdefault("users_file", self.users_path)
            self.write_users(users)
        self.config_path = os.path.join(self.directory, "headgate.yaml")
        self.write_config()
        if wait:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        self.stop(check=kind is None)

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def where(self):
        return "127.0.0.1:%d" % self.port

    @property
    def pid(self):
        return self.process.pid

    def write_config(self, **changes):
        self.config.update(changes)
        self._write(self.config_path, to_yaml(
            with_patience(self.config) if self.patient else self.config))

    def write_users(self, users):
        self.users = users
        self._write(self.users_path, to_yaml(users))

    @staticmethod
    def _write(path, text):
        with open(path, "w") as out:
            out.write(text)
        os.chmod(path, 0o600)

    def argv(self, *more):
        return [*self.wrapper, HEADGATE, "-c", self.config_path, *more]

    def launch(self):
        """Start without waiting for it."""
        assert os.path.exists(HEADGATE), "%s is missing: build first, or set HG_BUILD" % HEADGATE
        self.process = Process(self.argv(), self.directory, "headgate", self.env)
        return self

    def start(self):
        self.launch()
        deadline = time.monotonic() + scaled(self.start_timeout)
        while True:
            if not self.process.alive():
                raise AssertionError("headgate ended with %s at the start:\n%s" % (
                    self.process.child.returncode, self.stderr()))
            if answers(self.address):
                return self
            if time.monotonic() > deadline:
                log = self.stderr()
                self.process.kill()
                raise AssertionError("headgate does not answer:\n" + log)
            time.sleep(0.01)

    def stderr(self):
        return self.process.stderr().decode("utf-8", "replace")

    def client(self, timeout=PATIENCE, bucket=None):
        client = Client(self.address, timeout)
        if bucket is not None:
            frame = client.select(bucket)
            assert frame.status == 0, "select %s: 0x%x %r" % (bucket, frame.status, frame.value)
        return client

    def ctl(self, *args, check=True, user=None, stdin=None, env=None):
        """Run headgatectl against this server; the finished process."""
        return headgatectl(*(["-u", user] if user else []), *args, server=self.where, check=check,
                           stdin=stdin, env=env)

    def terminate(self, timeout=PATIENCE, check=True):
        """SIGTERM and wait; with check, the exit code is 0 and no sanitizer complained."""
        if self.process.alive():
            self.process.signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            log = self.stderr()
            self.process.kill()
            raise AssertionError("headgate ignores SIGTERM:\n" + log[-3000:]) from None
        self.process.log.close()
        log = self.process.stderr()
        found = SANITIZER.search(log)
        assert not found, log[found.start():found.start() + 6000].decode("utf-8", "replace")
        if check:
            assert code == 0, "headgate exit code %d:\n%s" % (
                code, log.decode("utf-8", "replace")[-6000:])
        return code

    def restart(self):
        self.terminate()
        return self.start()

    def stop(self, check=True):
        try:
            if self.process is not None and not self.process.log.closed:
                self.terminate(check=check)
        finally:
            if self.process is not None:
                self.process.kill()
            shutil.rmtree(self.directory, ignore_errors=True)


def headgatectl(*args, server=None, check=True, stdin=None, env=None):
    """Run the operator's tool; with check, it must succeed."""
    argv = [HEADGATECTL, *(["-s", server] if server else []), *args]
    full = dict(os.environ)
    full.update(env or {})
    done = subprocess.run(argv, capture_output=True, text=True, timeout=scaled(PATIENCE), input=stdin,
                          env=full)
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    if check:
        assert done.returncode == 0, "%s: exit %d\n%s%s" % (
            " ".join(argv), done.returncode, done.stdout, done.stderr)
    return done


def user_row(name, password="pw", buckets=None, privileges=(), mechanisms=("SCRAM-SHA-256",)):
    """A row of the users file. Without `buckets` the user may read, write and see the statistics
    of the bucket of its own name."""
    if buckets is None:
        buckets = {name: ["Read", "Write", "Stats"]}
    return {"name": name, "secrets": [scram_secret(password, m) for m in mechanisms],
            "buckets": buckets, "privileges": list(privileges)}


ADMIN = ("NodeSupervisor", "BucketThrottleManagement", "Impersonate", "Stats", "Read", "Write")


# ---- a fake backend ----

class FakeConnection:
    """What a handler gets: replies go out at once or, by `later`, after a delay."""

    def __init__(self, server, sock, number):
        self.server, self.sock, self.number = server, sock, number
        self.accepted_at = time.monotonic()
        self.lock = threading.Lock()
        self.closed = False

    def send(self, data):
        with self.lock:
            try:
                self.sock.sendall(data)
            except OSError:
                self.closed = True

    def reply(self, frame, status=0, **fields):
        self.send(response(frame.opcode, status, opaque=frame.opaque, **fields))

    def close(self):
        self.closed = True
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class FakeBackend:
    """A server whose behaviour a test writes: handler(connection, frame) is called for every
    request, in its connection's thread. Without one it is a small key-value store.

    seen: list of (time, connection number, frame); connects: list of accept times."""

    def __init__(self, handler=None, port=None):
        self.handler = handler or FakeBackend.store
        self.port = port or free_port()
        self.items = {}
        self.next_cas = 1
        self.seen, self.connects, self.connections = [], [], []
        self.garbage = []
        self.lock = threading.Lock()
        self.listener = None
        self.listen()

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def where(self):
        return "127.0.0.1:%d" % self.port

    def listen(self):
        """Accept connections (again)."""
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(self.address)
        self.listener.listen(256)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        return self

    def refuse(self):
        """Stop listening and cut every connection: connects are refused."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()

    def cut(self):
        with self.lock:
            connections, self.connections = self.connections, []
        for connection in connections:
            connection.close()

    def stop(self):
        try:
            self.refuse()
        except OSError:
            pass
        assert not self.garbage, self.garbage

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                connection = FakeConnection(self, sock, len(self.connects))
                self.connects.append(connection.accepted_at)
                self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        data = b""
        while not connection.closed:
            try:
                frame, data = parse(data)
            except AssertionError as wrong:
                self.garbage.append(str(wrong))
                break
            if frame is not None:
                with self.lock:
                    self.seen.append((time.monotonic(), connection.number, frame))
                self.handler(connection, frame)
                continue
            try:
                more = connection.sock.recv(1 << 16)
            except OSError:
                break
            if not more:
                break
            data += more
        connection.sock.close()

    def count(self, *opcodes):
        with self.lock:
            return sum(1 for _, _, frame in self.seen if frame.opcode in opcodes)

    # -- the small store --

    @staticmethod
    def store(connection, frame):
        """Enough of memcached to stand behind a front end: loud operations only."""
        server = connection.server
        with server.lock:
            answer = server._answer(frame)
        if answer is not None:
            connection.reply(frame, **answer)

    def _answer(self, frame):
        op, key = frame.opcode, frame.key
        if op in (Op.NOOP, Op.FLUSH):
            if op == Op.FLUSH:
                self.items.clear()
            return {}
        if op == Op.VERSION:
            return {"value": "1.6.18"}
        if op in (Op.GET, Op.GETK, Op.GAT, Op.GATK):
            with_key = key if op in (Op.GETK, Op.GATK) else b""
            if key not in self.items:
                return {"status": 1, "key": with_key}
            flags, value, cas = self.items[key]
            return {"extras": flags, "value": value, "cas": cas, "key": with_key}
        if op in (Op.SET, Op.ADD, Op.REPLACE):
            if op == Op.ADD and key in self.items:
                return {"status": 2}
            if op == Op.REPLACE and key not in self.items:
                return {"status": 1}
            self.next_cas += 1
            self.items[key] = (frame.extras[:4], frame.value, self.next_cas)
            return {"cas": self.next_cas}
        if op == Op.DELETE:
            return {"status": 0 if self.items.pop(key, None) else 1}
        if op == Op.TOUCH:
            return {"status": 0 if key in self.items else 1}
        return {"status": 0x81, "value": "not in this fake"}


def describe_config():
    """What --describe-config prints."""
    done = subprocess.run([HEADGATE, "--describe-config"], capture_output=True, text=True,
                          timeout=scaled(PATIENCE))
    assert done.returncode == 0, done.stderr
    return done.stdout


def bucket_details(client, name):
    """The JSON of one bucket."""
    rows = client.stat("bucket_details " + name)
    assert list(rows) == [name], rows
    return json.loads(rows[name])
