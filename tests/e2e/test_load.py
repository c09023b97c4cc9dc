"""test_load - headgate-load against a real memcached, and against servers that answer wrongly"""
# SPDX-License-Identifier: BSD-3-Clause

import base64
import hashlib
import hmac
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from built import BUILD, SCALE
from redisservers import FakeRedis, Redis
from servers import free_port

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOAD = os.path.join(BUILD, "headgate-load")
HEADER = struct.Struct(">BBHBBHIIQ")
M64 = (1 << 64) - 1


# What headgate-load(1) says of keys and values, written down a second time.

def mix(n):
    z = n * 0x9E3779B97F4A7C15 & M64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
    return z ^ z >> 31


PATTERN = b"".join(struct.pack("<Q", mix(0x68656164 + i + 1)) for i in range(1024))


def key_of(n, length=16, prefix="", space="k"):
    head = prefix + space
    return (head + str(n).rjust(length - len(head), "0")).encode()


def value_of(n, low, high=None):
    h = mix(n + 1)
    length = low + ((h >> 32) * ((high or low) - low + 1) >> 32)
    offset = (h >> 20) % 4096
    value = (struct.pack("<Q", h) + PATTERN[offset + 8:offset + max(length, 8)])[:length]
    return h & 0xFFFFFFFF, value


def poll_until(question, seconds=10.0):
    end = time.monotonic() + seconds * SCALE
    while time.monotonic() < end:
        answer = question()
        if answer:
            return answer
        time.sleep(0.01)
    raise AssertionError("waited %g s for %s" % (seconds * SCALE, question))


def connects(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


class Memcached:
    def __init__(self, *args, path=None):
        self.port = None if path else free_port()
        where = ["-s", path] if path else ["-l", "127.0.0.1", "-p", str(self.port), "-U", "0"]
        user = ["-u", "root"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(["memcached", "-t", "1", "-m", "256", *where, *user, *args],
                                        stderr=subprocess.DEVNULL)
        poll_until(lambda: os.path.exists(path) if path else connects(self.port))
        self.address = "unix:" + path if path else "127.0.0.1:%d" % self.port

    def ask(self, opcode, key=b"", extras=b"", value=b""):
        """One request, one reply: (status, extras, value, cas)."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as s:
            s.sendall(HEADER.pack(0x80, opcode, len(key), len(extras), 0, 0,
                                  len(key) + len(extras) + len(value), 0, 0) + extras + key + value)
            f = s.makefile("rb")
            head = HEADER.unpack(f.read(24))
            body = f.read(head[6])
            return head[5], body[:head[3]], body[head[3] + head[2]:], head[8]

    def get(self, key):
        status, extras, value, _ = self.ask(0, key)
        return (struct.unpack(">I", extras)[0], value) if status == 0 else None

    def set(self, key, flags, value):
        assert self.ask(1, key, struct.pack(">II", flags, 0), value)[0] == 0

    def stat(self, name):
        with socket.create_connection(("127.0.0.1", self.port), 5) as s:
            s.sendall(b"stats\r\n" if name else b"")
            text = b""
            while not text.endswith(b"END\r\n"):
                text += s.recv(65536)
        rows = dict(line.split(" ", 2)[1:] for line in text.decode().split("\r\n")
                    if line.startswith("STAT "))
        return int(rows[name])

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def memcached():
    server = Memcached()
    yield server
    server.stop()


class Fake:
    """A server whose replies a function makes. `answer(request, peer)` gets a Request and returns the
    bytes to send, or None to close; `peer` is a dict that lives as long as the connection."""

    class Request:
        def __init__(self, head, body):
            (self.magic, self.opcode, key_bytes, extras_bytes, _, _, _, self.opaque,
             self.cas) = head
            self.extras = body[:extras_bytes]
            self.key = body[extras_bytes:extras_bytes + key_bytes]
            self.value = body[extras_bytes + key_bytes:]

        def reply(self, status=0, extras=b"", value=b"", cas=7, magic=0x81, opcode=None,
                  opaque=None):
            opcode = self.opcode if opcode is None else opcode
            opaque = self.opaque if opaque is None else opaque
            return HEADER.pack(magic, opcode, 0, len(extras), 0, status, len(extras) + len(value),
                               opaque, cas) + extras + value

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.open = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.open.append(peer)
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer):
        memory = {"socket": peer}
        f = peer.makefile("rb")
        try:
            while True:
                head = f.read(24)
                if len(head) < 24:
                    break
                head = HEADER.unpack(head)
                out = self.answer(self.Request(head, f.read(head[6])), memory)
                if out is None:
                    break
                peer.sendall(out)
        except OSError:
            pass
        try:
            peer.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        f.close()
        peer.close()

    def stop(self):
        self.listener.close()
        for peer in self.open:
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


@pytest.fixture
def fake():
    made = []

    def make(answer):
        made.append(Fake(answer))
        return made[-1]

    yield make
    for server in made:
        server.stop()


def good_answer(request, peer):
    """A store that has every key of 32-byte values."""
    if request.opcode in (0, 0x1D):
        flags, value = value_of(int(request.key[1:]), 32)
        return request.reply(extras=struct.pack(">I", flags), value=value)
    return request.reply()


def run(*args, timeout=30, **kwargs):
    command = [LOAD, *[str(a) for a in args]]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout * SCALE,
                          **kwargs)


def load(*args, code=0, **kwargs):
    """Runs with --json; returns the report and stderr."""
    done = run("--json", "--interval", 0, *args, **kwargs)
    assert done.returncode == code, (done.returncode, done.stderr, done.stdout)
    return json.loads(done.stdout), done.stderr


# Against memcached.

@pytest.mark.parametrize("size", ["0", "1", "7", "8", "9", "32", "3-70", "1000-1024"])
def test_fill_stores_what_the_manual_says(memcached, size):
    load("-s", memcached.address, "--fill", "-n", 0, "--keys", 300, "--value-bytes", size,
         "--key-prefix", "p:", "--key-bytes", 20, "-c", 3, "-p", 7)
    low, _, high = size.partition("-")
    for n in range(300):
        assert memcached.get(key_of(n, 20, "p:")) == value_of(n, int(low), int(high or low))
    assert memcached.stat("curr_items") == 300


def test_counts_agree_with_the_server(memcached):
    report, _ = load("-s", memcached.address, "-n", 20001, "--keys", 50, "-c", 7, "-p", 3)
    total = report["total"]
    ops = total["by_operation"]
    assert total["operations"] == 20001 == total["done"] + total["missed"]
    assert sum(ops["get"].values()) == memcached.stat("cmd_get")
    assert sum(ops["set"].values()) == memcached.stat("cmd_set")
    assert ops["get"]["done"] == memcached.stat("get_hits")
    assert 0.88 < memcached.stat("cmd_get") / 20001 < 0.92
    assert total["statuses"] == {"0x00": total["done"], "0x01": total["missed"]}
    assert total["wrong"] == total["lost"] == total["unanswered"] == total["refused"] == 0
    assert total["bytes_out"] == 20001 * 40 + sum(ops["set"].values()) * 40
    assert total["bytes_in"] == 20001 * 24 + ops["get"]["done"] * 36 + ops["get"]["missed"] * 9


@pytest.mark.alone
def test_time_bounds_a_run(memcached):
    began = time.monotonic()
    report, _ = load("-s", memcached.address, "-t", 0.4, "-c", 4, "--warmup", 0.2)
    assert 0.6 <= time.monotonic() - began < 5 * SCALE
    assert 0.4 <= report["seconds"] < 1
    total = report["total"]
    assert abs(total["ops_per_s"] - total["operations"] / report["seconds"]) < 1
    latency = total["latency_us"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p999"]
    assert latency["p999"] <= latency["max"]


def test_operations_bound_a_run_after_a_warm_up(memcached):
    report, _ = load("-s", memcached.address, "-n", 1000, "-c", 4, "-p", 8, "--warmup", 0.1)
    assert report["total"]["operations"] == 1000


def test_every_operation_is_right_on_memcached(memcached):
    mix_text = "get=20,set=10,delete=5,incr=10,append=64,touch=5,gat=5"
    report, stderr = load("-s", memcached.address, "-n", 20000, "--mix", mix_text, "--keys", 100,
                          "--value-bytes", "0-200", "-p", 5, "-c", 5, "--fill")
    ops = report["total"]["by_operation"]
    assert set(ops) == {"get", "set", "delete", "incr", "append", "start", "touch", "gat"}
    assert ops["delete"]["missed"] > 0 and ops["get"]["missed"] > 0
    assert ops["append"]["missed"] == 0, "--fill makes the keys of append too"
    assert stderr == ""
    counted = sum(int(memcached.get(key_of(n, space="c"))[1]) + 1 for n in range(100)
                  if memcached.get(key_of(n, space="c")))
    assert counted == ops["incr"]["done"], "counters begin at 0 and grow by 1"
    flags, value = memcached.get(key_of(0, space="a"))
    base_flags, base = value_of(0, 0, 200)
    pieces = value[len(base):]
    assert flags == base_flags and value.startswith(base)
    assert pieces == struct.pack("<Q", mix(1)) * (len(pieces) // 8)


def test_values_of_a_mebibyte_in_a_pipeline():
    server = Memcached("-I", "2m", "-m", "512")
    try:
        report, _ = load("-s", server.address, "--keys", 20, "--value-bytes", "1048500-1048600",
                         "--fill", "-n", 400, "-p", 8, "-c", 3, "--mix", "get=50,set=50")
        assert report["total"]["done"] == 400
    finally:
        server.stop()


def test_a_server_that_stops_is_a_lost_connection(memcached):
    process = subprocess.Popen([LOAD, "-s", memcached.address, "-t", "20", "-c", "3",
                                "--interval", "0.1", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        poll_until(lambda: "op/s" in process.stderr.readline())
        memcached.process.kill()
        stdout, stderr = process.communicate(timeout=10 * SCALE)
    finally:
        process.kill()
    assert process.returncode == 1
    assert "lost a connection to '%s'" % memcached.address in stderr
    total = json.loads(stdout)["total"]
    assert total["lost"] == 3 and 0 < total["unanswered"] <= 3


def test_a_server_that_hangs_is_given_up(memcached):
    memcached.process.send_signal(signal.SIGSTOP)
    report, stderr = load("-s", memcached.address, "-t", 0.2, "-c", 2, "--timeout", 0.5, code=1)
    assert "no reply for 0.5 s" in stderr
    assert report["total"]["operations"] == 0


def test_a_foreign_value_is_wrong(memcached):
    common = ("-s", memcached.address, "--keys", 10, "--key-bytes", 8, "-c", 1)
    load(*common, "--fill", "-n", 0)
    flags, value = value_of(3, 32)
    cases = [
        (flags, value[:20] + b"\0" + value[21:], "byte 20 of the value's 32 is 0x00"),
        (flags, value[:-1], "value has 31 bytes instead of 32"),
        (flags ^ 1, value, "flags are 0x%08x instead of 0x%08x" % (flags ^ 1, flags)),
        (value_of(4, 32)[0], value_of(4, 32)[1], "flags are"),
    ]
    for bad_flags, bad, text in cases:
        memcached.set(key_of(3, 8), bad_flags, bad)
        for protocol in "binary", "text":
            report, stderr = load(*common, "-n", 300, "--mix", "get=1", "--zipf", 0,
                                  "--protocol", protocol, code=1)
            assert "wrong reply: tenant 'default', get of key 'k0000003'" in stderr
            if protocol == "binary" or "flags" not in text:
                assert text in stderr
            assert stderr.count("\n") == 1, "described once"
            assert 5 < report["total"]["wrong"] < 100
            assert report["total"]["operations"] == 300


def test_text_protocol(memcached):
    report, _ = load("-s", memcached.address, "--protocol", "text", "-n", 20000, "--keys", 200,
                     "--value-bytes", "0-300", "-c", 5, "-p", 16, "--mix", "get=80,set=20",
                     "--expiry", 1000)
    ops = report["total"]["by_operation"]
    assert ops["get"]["done"] == memcached.stat("get_hits") > 10000
    assert ops["get"]["missed"] == memcached.stat("get_misses")
    assert memcached.get(key_of(0)) == value_of(0, 0, 300)
    report, _ = load("-s", memcached.address, "-n", 500, "--keys", 200, "--value-bytes", "0-300",
                     "--mix", "get=1")
    assert report["total"]["wrong"] == 0, "both protocols make the same values"


def test_text_protocol_counts_server_errors(memcached):
    report, _ = load("-s", memcached.address, "--protocol", "text", "-n", 100, "--keys", 10,
                     "--value-bytes", 2000000, "--mix", "set=1", "-c", 1)
    assert report["total"]["refused"] == 100
    assert report["total"]["statuses"] == {"0x84": 100}


# Against a Redis, in its own protocol.

@pytest.fixture(scope="module")
def redis():
    with Redis() as server:
        yield server


def test_the_protocol_of_redis(redis):
    before = redis.client().info("stats")
    report, _ = load("-s", redis.where, "--protocol", "resp", "-n", 20000, "--keys", 200,
                     "--value-bytes", "0-300", "-c", 5, "-p", 16, "--mix", "get=80,set=20")
    ops, after = report["total"]["by_operation"], redis.client().info("stats")
    hits, misses = (int(after[name]) - int(before[name]) for name in ("keyspace_hits",
                                                                      "keyspace_misses"))
    assert report["protocol"] == "resp"
    assert ops["get"]["done"] == hits > 10000 and ops["get"]["missed"] == misses > 0
    assert redis.command("GET", key_of(0)) == value_of(0, 0, 300)[1]


def test_a_foreign_value_of_redis_is_wrong(redis):
    common = ("-s", redis.where, "--protocol", "resp", "--keys", 10, "--key-bytes", 8, "-c", 1)
    load(*common, "--fill", "-n", 0)
    value = value_of(3, 32)[1]
    for bad, text in ((value[:20] + b"\0" + value[21:], "byte 20 of the value's 32 is 0x00"),
                      (value[:-1], "value has 31 bytes instead of 32"),
                      (value_of(4, 32)[1], "byte 0 of")):
        redis.command("SET", key_of(3, 8), bad)
        report, stderr = load(*common, "-n", 300, "--mix", "get=1", "--zipf", 0, code=1)
        assert "wrong reply: tenant 'default', get of key 'k0000003'" in stderr and text in stderr
        assert 5 < report["total"]["wrong"] < 100 and report["total"]["operations"] == 300
    redis.command("DEL", key_of(3, 8))
    redis.command("RPUSH", key_of(3, 8), "an element")
    report, _ = load(*common, "-n", 300, "--mix", "get=1", "--zipf", 0)
    assert 5 < report["total"]["refused"] < 100
    assert report["total"]["statuses"]["0x84"] == report["total"]["refused"]


@pytest.mark.parametrize("answer,text", [
    (b":1\r\n", "answered ':1'"), (b"+OK\r\n", "answered '+OK'"), (b"nonsense\n", "no reply"),
    (b"$99999999\r\n", "cannot follow '$99999999'"), (b"$x\r\n", "cannot follow '$x'"),
    (b"$3\r\nabcde", "no line ends after the value"), (b"\r\n", "answered ''")])
def test_a_wrong_reply_of_redis_is_described(answer, text):
    server = FakeRedis(handler=lambda connection, arguments: answer)
    _, stderr = load("-s", server.where, "--protocol", "resp", "-n", 3, "--keys", 10, "-c", 1,
                     "--mix", "get=1", code=1)
    assert text in stderr
    server.stop()


@pytest.mark.alone
def test_tenants_have_their_own_results(memcached):
    report, _ = load("-s", memcached.address, "-t", 1, "--keys", 100,
                     "--tenant", "name=shop,key-prefix=s,connections=3,pipeline=2,mix=get=1,set=1",
                     "--tenant", "name=ledger,key-prefix=l,connections=2,rate=300,value-bytes=50")
    shop, ledger = report["tenants"]
    assert (shop["name"], shop["connections"], shop["pipeline"]) == ("shop", 3, 2)
    assert (ledger["name"], ledger["connections"], ledger["pipeline"]) == ("ledger", 2, 1)
    assert 250 <= ledger["operations"] <= 320, "the rate is kept"
    assert shop["operations"] > 5 * ledger["operations"]
    total = report["total"]
    for name in "operations", "done", "missed", "bytes_out":
        assert total[name] == shop[name] + ledger[name]
    assert memcached.get(key_of(0, prefix="l"))[1] == value_of(0, 50)[1]
    assert memcached.get(key_of(0, prefix="s"))[1] == value_of(0, 32)[1]


def test_threads_share_connections_and_operations(memcached):
    report, _ = load("-s", memcached.address, "-n", 10001, "--threads", 3, "-c", 7, "--keys", 1000,
                     "--fill", "--tenant", "name=a,connections=1", "--tenant", "name=b", "-p", 4)
    assert report["threads"] == 3
    assert report["total"]["operations"] == 10001
    assert [t["missed"] for t in report["tenants"]] == [0, 0]


def test_unix_socket(tmp_path):
    server = Memcached(path=str(tmp_path / "s"))
    try:
        report, _ = load("-s", server.address, "-n", 1000, "--fill", "--keys", 10)
        assert report["total"]["done"] == 1000
    finally:
        server.stop()


def test_the_seed_decides_what_is_drawn(memcached):
    def counts(seed):
        report, _ = load("-s", memcached.address, "-n", 3000, "-c", 1, "--seed", seed)
        return report["total"]["by_operation"]["set"]["done"]
    assert counts(5) == counts(5)
    assert len({counts(seed) for seed in range(6)}) > 1


def test_a_signal_ends_the_run_with_its_report(memcached):
    process = subprocess.Popen([LOAD, "-s", memcached.address, "-t", "60", "--interval", "0.1"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=10 * SCALE)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "default" in line and "op/s" in line and "p99" in line and "0x0" in line
    assert "tenant default: 50 connections, pipeline 1" in stdout
    assert "p99.9" in stdout and "status 0x01" in stdout


def test_cpu_of_another_process(memcached):
    report, _ = load("-s", memcached.address, "-t", 0.5, "--cpu-of", memcached.process.pid)
    process = report["cpu"]["processes"][0]
    assert process["pid"] == memcached.process.pid
    assert 0 < process["seconds"] < 1.5 * SCALE
    per_op = process["seconds"] * 1e6 / report["total"]["operations"]
    assert abs(process["us_per_op"] - per_op) < 0.01
    assert report["cpu"]["own_us_per_op"] > 0


# Against servers that answer wrongly, or in pieces.

WRONG = {
    "magic is 0x18": lambda r: r.reply(magic=0x18),
    "opcode is 0x0c instead of": lambda r: r.reply(opcode=0x0C),
    "opaque is 0x": lambda r: r.reply(opaque=r.opaque + 1 & 0xFFFFFFFF),
    "status is 0x81 (unknown command)": lambda r: r.reply(status=0x81, value=b"huh"),
    "status is 0x04 (invalid arguments)": lambda r: r.reply(status=0x04),
    "status is 0x7777 (unknown)": lambda r: r.reply(status=0x7777),
    "CAS of what was stored is 0": lambda r: r.reply(cas=0),
    "body of 3 bytes, not 0": lambda r: r.reply(value=b"abc"),
    "extras of 4 bytes": lambda r: r.reply(extras=b"abcd"),
    "no request waits for": lambda r: r.reply() + r.reply(),
    "a body of 4294967295 bytes": lambda r: HEADER.pack(0x81, 1, 0, 0, 0, 0, 0xFFFFFFFF, r.opaque,
                                                        1),
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_reply_is_described(fake, text):
    def answer(request, peer):
        peer["n"] = peer.get("n", 0) + 1
        return WRONG[text](request) if peer["n"] == 3 else request.reply()
    server = fake(answer)
    report, stderr = load("-s", server.address, "-n", 10, "-c", 1, "--mix", "set=1", code=1)
    assert text in stderr
    assert report["total"]["wrong"] == 1


@pytest.mark.parametrize("op,reply", [
    ("get", lambda r: r.reply()), ("gat", lambda r: r.reply(extras=b"ab")),
    ("incr", lambda r: r.reply(value=b"1")), ("delete", lambda r: r.reply(status=2)),
    ("touch", lambda r: r.reply(extras=b"abc")), ("append", lambda r: r.reply(cas=0)),
    ("get", lambda r: r.reply(status=5)), ("set", lambda r: r.reply(status=1)),
    ("incr", lambda r: r.reply(status=6)),
])
def test_each_operation_has_its_checks(fake, op, reply):
    server = fake(lambda request, peer: reply(request))
    report, stderr = load("-s", server.address, "-n", 5, "-c", 1, "--mix", op + "=1", code=1)
    assert "wrong reply" in stderr
    assert report["total"]["wrong"] == 5


@pytest.mark.parametrize("status", [0x0C, 0x08, 0x24, 0x32, 0x35, 0x82, 0x85, 0x86, 0xFF01, 0xFF06,
                                    0xFF08, 0xFFEE])
def test_refusals_are_counted_by_code(fake, status):
    def answer(request, peer):
        peer["n"] = peer.get("n", 0) + 1
        if peer["n"] % 2:
            return good_answer(request, peer)
        return request.reply(status=status, cas=0, value=b'{"error":{"context":"limit"}}')
    server = fake(answer)
    report, _ = load("-s", server.address, "-n", 100, "-c", 1)
    total = report["total"]
    assert total["statuses"] == {"0x00": 50, "0x%02x" % status: 50}
    assert (total["done"], total["refused"], total["wrong"]) == (50, 50, 0)
    assert total["refusal_us"]["p50"] > 0


def test_the_depth_is_kept_and_not_exceeded(fake):
    seen = []

    def answer(request, peer):
        """Lets four requests gather, looks whether a fifth comes, and answers them all."""
        waiting = peer.setdefault("waiting", [])
        waiting.append(good_answer(request, peer))
        if len(waiting) < 4:
            return b""
        try:
            peer["socket"].settimeout(0.02)
            seen.append(len(peer["socket"].recv(1, socket.MSG_PEEK)))
        except (BlockingIOError, TimeoutError):
            seen.append(0)
        finally:
            peer["socket"].settimeout(None)
        out, peer["waiting"] = b"".join(waiting), []
        return out
    server = fake(answer)
    report, _ = load("-s", server.address, "-n", 80, "-c", 1, "-p", 4)
    assert seen == [0] * 20
    assert report["total"]["done"] == 80


@pytest.mark.parametrize("step", [1, 5, 23, 24, 25, 40])
def test_replies_may_come_in_pieces(fake, step):
    def answer(request, peer):
        out = good_answer(request, peer)
        for i in range(0, len(out), step):
            peer["socket"].sendall(out[i:i + step])
        return b""
    server = fake(answer)
    report, _ = load("-s", server.address, "-n", 60, "-c", 2, "-p", 3)
    assert report["total"]["done"] == 60


def test_a_reader_that_does_not_read_is_waited_for(fake):
    """The server takes nothing for a while: what the socket refused is sent later, in order."""
    gate = threading.Event()

    def answer(request, peer):
        gate.wait(5)
        return request.reply()
    server = fake(answer)
    threading.Timer(0.5, gate.set).start()
    report, _ = load("-s", server.address, "-n", 64, "-c", 1, "-p", 64, "--mix", "set=1",
                     "--value-bytes", 300000)
    assert report["total"]["done"] == 64


# Sessions.

USER, PASSWORD = "shop", "se,cr=et"


def scram_answer(request, peer, digest, honest=True):
    name = request.key.decode()[6:].replace("-", "").lower()
    assert name == digest
    salt, rounds = b"salt1234", 4096
    if request.opcode == 0x21:
        bare = request.value.decode().split(",", 2)[2]
        nonce = bare.split("r=")[1] + "server"
        first = "r=%s,s=%s,i=%d" % (nonce, base64.b64encode(salt).decode(), rounds)
        peer["auth"] = (bare, first)
        return request.reply(status=0x21, value=first.encode())
    without_proof, proof = request.value.decode().rsplit(",p=", 1)
    message = ",".join([*peer["auth"], without_proof]).encode()
    salted = hashlib.pbkdf2_hmac(digest, PASSWORD.encode(), salt, rounds)
    client_key = hmac.digest(salted, b"Client Key", digest)
    stored = hashlib.new(digest, client_key).digest()
    signature = hmac.digest(stored, message, digest)
    if bytes(a ^ b for a, b in zip(client_key, signature)) != base64.b64decode(proof):
        return request.reply(status=0x20, value=b"no")
    server_key = hmac.digest(salted, b"Server Key", digest)
    final = b"v=" + base64.b64encode(hmac.digest(server_key, message, digest))
    peer["user"] = USER
    return request.reply(value=final if honest else final[:4] + b"AAAA" + final[8:])


def session_answer(offered, honest=True, granted=None):
    def answer(request, peer):
        mechanism = request.key.decode("latin-1")
        if request.opcode == 0x1F:
            return request.reply(value=request.value if granted is None else granted)
        if request.opcode == 0x20:
            return request.reply(value=offered.encode())
        if request.opcode in (0x21, 0x22) and mechanism == "PLAIN":
            fine = request.value == ("\0%s\0%s" % (USER, PASSWORD)).encode()
            peer["user"] = fine
            return request.reply(status=0 if fine else 0x20, value=b"" if fine else b"no")
        if request.opcode in (0x21, 0x22):
            digest = mechanism[6:].replace("-", "").lower()
            return scram_answer(request, peer, digest, honest)
        if request.opcode == 0x89:
            peer["bucket"] = request.key == b"crates"
            return request.reply(status=0 if peer["bucket"] else 0x24)
        if not peer.get("user"):
            return request.reply(status=0x24)
        return good_answer(request, peer)
    return answer


@pytest.mark.parametrize("offered,mechanism", [
    ("PLAIN", "auto"), ("PLAIN SCRAM-SHA-1 SCRAM-SHA-256", "auto"), ("SCRAM-SHA-1 PLAIN", "auto"),
    ("PLAIN SCRAM-SHA-256", "PLAIN"), ("SCRAM-SHA-256", "SCRAM-SHA-256"),
])
def test_login(fake, tmp_path, offered, mechanism):
    server = fake(session_answer(offered))
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    report, _ = load("-s", server.address, "-n", 50, "-c", 3, "--user", USER, "--password-file",
                     secret, "--mechanism", mechanism, "--bucket", "crates", "--hello",
                     "xerror,json,nonblocking")
    assert report["total"]["done"] == 50


def test_login_of_a_tenant(fake):
    server = fake(session_answer("SCRAM-SHA-256"))
    report, _ = load("-s", server.address, "-n", 20, "--tenant",
                     "name=a,hello=xerror,json,mix=get=9,set=1,user=shop,connections=2,"
                     "password-file=/dev/stdin", input=PASSWORD + "\n")
    assert report["tenants"][0]["done"] == 20


@pytest.mark.parametrize("change,text", [
    ({"password": "wrong"}, "login of 'shop' refused with 0x20 (authentication failed): 'no'"),
    ({"password": "wrong", "mechanism": "PLAIN"}, "login of 'shop' refused with 0x20"),
    ({"bucket": "other"}, "bucket 'other' refused with 0x24 (no access)"),
    ({"server": session_answer("CRAM-MD5 PLAINER")}, "the server offers 'CRAM-MD5 PLAINER'"),
    ({"server": session_answer("SCRAM-SHA-256", honest=False)}, "did not prove who it is"),
    ({"server": session_answer("PLAIN", granted=b"\0\7"), "hello": "xerror,nonblocking"},
     "does not grant 'nonblocking'"),
])
def test_a_session_that_is_refused(fake, change, text):
    server = fake(change.get("server", session_answer("PLAIN SCRAM-SHA-256")))
    options = {"user": USER, "password": PASSWORD}
    options.update({k: v for k, v in change.items() if k != "server"})
    args = [word for name, value in options.items() for word in ("--" + name, value)]
    done = run("-s", server.address, "-n", 5, *args)
    assert done.returncode == 1
    assert text in done.stderr
    assert done.stdout == ""


def test_hello_to_a_server_without_it(fake):
    server = fake(lambda request, peer: request.reply(status=0x81))
    done = run("-s", server.address, "-n", 5, "--hello", "xerror")
    assert done.returncode == 1
    assert "HELLO" in done.stderr and "0x81 (unknown command)" in done.stderr


def test_hello_to_a_server_that_loses_its_framing(memcached):
    """memcached 1.6.18 takes the body of an unknown request for requests and waits for more."""
    done = run("-s", memcached.address, "-n", 5, "--hello", "xerror", "--timeout", 0.5)
    assert done.returncode == 1
    assert "HELLO" in done.stderr


# Words.

@pytest.mark.parametrize("args,texts", [
    (["--foo"], ["'--foo'"]), (["-z"], ["'-z'"]), (["word"], ["'word'"]),
    (["-c", "0"], ["--connections '0'", "1 to 100000"]),
    (["-c"], ["--connections: expected a value"]),
    (["--fill=1"], ["--fill takes no value"]),
    (["--mix", "got=1"], ["--mix 'got=1'", "get", "touch"]),
    (["--zipf", "x"], ["--zipf 'x'", "0 to 10"]),
    (["--server", "here"], ["--server 'here'", "HOST:PORT"]),
    (["--keys", "1000000", "--key-bytes", "5"], ["key-bytes 5", "at least 7"]),
    (["--threads", "2", "-c", "1"], ["--threads '2'"]),
    (["--tenant", "name=a,conections=5"], ["no. 1", "'conections=5'"]),
    (["--tenant", "name=a,mix=get=1,pipelin=5"], ["no. 1", "mix 'get=1,pipelin=5'"]),
    (["--tenant", "connections=5"], ["name="]),
    (["--tenant", "name=a", "--tenant", "name=a"], ["two are named 'a'"]),
    (["--user", "x"], ["user and password"]),
    (["--protocol", "text", "--mix", "delete=1"], ["text protocol", "not delete"]),
    (["--protocol", "resp", "--mix", "incr=1"], ["resp protocol", "not incr"]),
    (["--protocol", "resp", "--expiry", "5"], ["resp protocol", "expiry"]),
    (["--protocol", "resp", "--bucket", "b"], ["resp protocol", "bucket"]),
    (["--protocol", "redis"], ["--protocol 'redis'", "binary, text or resp"]),
    (["-n", "0"], ["--operations '0'", "--fill"]),
    (["--hello", "all"], ["--hello 'all'", "xerror, json, nonblocking"]),
])
def test_wrong_words_are_named(args, texts):
    done = run(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    for text in texts:
        assert text in done.stderr


def test_a_password_is_not_repeated():
    done = run("--tenant", "name=a,password=hush,conections=3")
    assert done.returncode == 2
    assert "hush" not in done.stderr


def test_help_and_version():
    assert run("--version").stdout.startswith("headgate-load ")
    text = run("--help").stdout
    for name in "--server", "--tenant", "--zipf", "--cpu-of", "Exit status":
        assert name in text


def test_the_manual_has_every_option_and_operation():
    with open(os.path.join(ROOT, "doc", "headgate-load.1"), encoding="utf-8") as f:
        manual = f.read()
    names = re.findall(r"^ {2}(?:-\w,|   ) --([a-z-]+)", run("--help").stdout, re.M)
    assert len(names) > 25
    for name in names:
        assert "Fl -%s" % name in manual or ", -%s" % name in manual, name
    with open(os.path.join(ROOT, "src", "load", "op.def"), encoding="utf-8") as f:
        ops = re.findall(r'^LOAD_OP\(\w+, "(\w+)"', f.read(), re.M)
    assert len(ops) >= 8
    for op in ops:
        assert ".It Cm %s\n" % op in manual, op


def test_nobody_listens():
    done = run("-s", "127.0.0.1:%d" % free_port(), "-n", 1)
    assert done.returncode == 1
    assert "cannot connect" in done.stderr and "refused" in done.stderr
