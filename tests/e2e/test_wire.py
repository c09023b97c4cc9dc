"""test_wire - frames, lengths, limits and connections: the tables of the wire, row by row."""
# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import random
import socket
import struct
import threading
import time

import pytest

from flood import Flood
from mcbin import (ALL_FEATURES, ALT_REQ, ALT_RES, Client, Closed, Feature, Op, RES, St,
                   connect_socket, counter_extras, error_context, frame_info, parse_framing, poll, request, scaled,
                   set_extras, show)
from servers import Headgate, free_port, memory_factor

from conftest import store_config

# op: (legal extras lengths, key, value, CAS must be 0); key and value: "-" absent, "R" required,
# "o" optional. The value of GetErrorMap is exactly two bytes.
SHAPE = {
    Op.GET: ({0}, "R", "-", True), Op.GETQ: ({0}, "R", "-", True),
    Op.GETK: ({0}, "R", "-", True), Op.GETKQ: ({0}, "R", "-", True),
    Op.SET: ({8}, "R", "o", False), Op.SETQ: ({8}, "R", "o", False),
    Op.ADD: ({8}, "R", "o", True), Op.ADDQ: ({8}, "R", "o", True),
    Op.REPLACE: ({8}, "R", "o", False), Op.REPLACEQ: ({8}, "R", "o", False),
    Op.DELETE: ({0}, "R", "-", False), Op.DELETEQ: ({0}, "R", "-", False),
    Op.INCR: ({20}, "R", "-", False), Op.INCRQ: ({20}, "R", "-", False),
    Op.DECR: ({20}, "R", "-", False), Op.DECRQ: ({20}, "R", "-", False),
    Op.QUIT: ({0}, "-", "-", True), Op.QUITQ: ({0}, "-", "-", True),
    Op.FLUSH: ({0, 4}, "-", "-", False), Op.FLUSHQ: ({0, 4}, "-", "-", False),
    Op.NOOP: ({0}, "-", "-", True), Op.VERSION: ({0}, "-", "-", True),
    Op.APPEND: ({0}, "R", "o", False), Op.APPENDQ: ({0}, "R", "o", False),
    Op.PREPEND: ({0}, "R", "o", False), Op.PREPENDQ: ({0}, "R", "o", False),
    Op.STAT: ({0}, "o", "o", True), Op.VERBOSITY: ({4}, "-", "-", True),
    Op.TOUCH: ({4}, "R", "-", True), Op.GAT: ({4}, "R", "-", True),
    Op.GATQ: ({4}, "R", "-", True), Op.GATK: ({4}, "R", "-", True),
    Op.GATKQ: ({4}, "R", "-", True),
    Op.HELLO: ({0}, "o", "o", True), Op.SASL_LIST: ({0}, "-", "-", True),
    Op.SASL_AUTH: ({0}, "R", "o", True), Op.SASL_STEP: ({0}, "R", "o", True),
    Op.CONFIG_VALIDATE: ({0}, "-", "R", True), Op.CONFIG_RELOAD: ({0}, "-", "-", True),
    Op.SET_BUCKET_THROTTLE: ({0}, "R", "R", True),
    Op.SET_BUCKET_DATA_LIMIT: ({2}, "R", "-", True),
    Op.SET_NODE_THROTTLE: ({0}, "-", "R", True),
    Op.CREATE_BUCKET: ({0}, "R", "R", False), Op.DELETE_BUCKET: ({0}, "R", "-", False),
    Op.LIST_BUCKETS: ({0}, "-", "-", False), Op.SELECT_BUCKET: ({0}, "R", "-", False),
    Op.GET_CMD_TIMER: ({1}, "o", "-", True), Op.DROP_PRIVILEGE: ({0}, "R", "-", True),
    Op.GET_ERROR_MAP: ({0}, "-", "2", True),
}
KNOWN = set(SHAPE) | {Op.SET_PARAM, 0xE8, 0xE9, Op.BACKUP}
LENGTHS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 19, 20, 21, 24, 255)


@pytest.fixture(scope="module")
def daemon():
    with Headgate() as running:
        yield running


@pytest.fixture
def client(daemon):
    with daemon.client() as connection:
        yield connection


def right_parts(op):
    """(extras, key, value) that the opcode accepts in shape."""
    extras_lengths, key, value, _ = SHAPE[op]
    extras = bytes(max(extras_lengths))
    return extras, b"k" if key == "R" else b"", {"R": b"{}", "2": b"\0\2"}.get(value, b"")


def wrong_shapes(op):
    """(what is wrong, request fields) for every way in which the lengths can be wrong."""
    extras_lengths, key_rule, value_rule, zero_cas = SHAPE[op]
    extras, key, value = right_parts(op)
    for length in LENGTHS:
        if length not in extras_lengths:
            yield "extras of %d" % length, dict(extras=bytes(length), key=key, value=value)
    if key_rule == "R":
        yield "no key", dict(extras=extras, value=value)
    if key_rule in "Ro":
        for length in (251, 255, 256, 1000, 65535):
            yield "key of %d" % length, dict(extras=extras, key=b"k" * length, value=value)
    if key_rule == "-":
        for length in (1, 2, 250, 251):
            yield "key of %d" % length, dict(extras=extras, key=b"k" * length, value=value)
    if value_rule == "-":
        for length in (1, 24, 25, 5000):
            yield "value of %d" % length, dict(extras=extras, key=key, value=b"v" * length)
    if value_rule == "R":
        yield "no value", dict(extras=extras, key=key)
    if value_rule == "2":
        for length in (0, 1, 3):
            yield "value of %d" % length, dict(extras=extras, key=key, value=bytes(length))
    if zero_cas:
        yield "a CAS", dict(extras=extras, key=key, value=value, cas=1)
    for bit in (0x02, 0x04, 0x08, 0x80):
        yield "datatype 0x%02x" % bit, dict(extras=extras, key=key, value=value, datatype=bit)
    yield "datatype JSON, not negotiated", dict(extras=extras, key=key, value=value, datatype=1)


def check_error(frame, op, opaque, status, what=""):
    """The form of every error reply: opcode and opaque echoed, a body that says what is wrong,
    nothing else."""
    assert (frame.opcode, frame.opaque, frame.status) == (op, opaque, status), \
        "%s: %s" % (what, show(frame))
    assert not frame.extras and not frame.key and not frame.cas, "%s: %s" % (what, show(frame))
    assert frame.value, "an error without a text: %s: %s" % (what, show(frame))


@pytest.mark.parametrize("op", list(SHAPE), ids=lambda op: op.name)
def test_every_wrong_length(client, op):
    """Each wrong shape is answered 0x04, and the next frame of the same segment is answered."""
    for what, fields in wrong_shapes(op):
        mark = client.opaque()
        client.send(request(op, opaque=0xABCD0000, **fields) + request(Op.NOOP, opaque=mark))
        frames = client.replies_until(mark)
        assert len(frames) == 1, (op.name, what, [show(f) for f in frames])
        check_error(frames[0], op, 0xABCD0000, St.EINVAL, "%s with %s" % (op.name, what))


def test_wrong_lengths_in_one_pipeline(client):
    """All of them behind each other in one stream: no length disturbs the next frame."""
    stream, expected = [], []
    for op in SHAPE:
        for what, fields in wrong_shapes(op):
            if len(fields.get("key", b"")) < 5000 and len(fields.get("value", b"")) < 5000:
                expected.append((op, len(expected), St.EINVAL))
                stream.append(request(op, opaque=len(expected) - 1, **fields))
    sender = threading.Thread(target=client.send, args=(
        b"".join(stream) + request(Op.NOOP, opaque=0xFFFFFFFF),))
    sender.start()
    frames = client.replies_until(0xFFFFFFFF)
    sender.join()
    assert [(f.opcode, f.opaque, f.status) for f in frames] == expected


@pytest.mark.parametrize("body", ["nothing", "key", "all"])
def test_unknown_opcodes(client, body):
    """0x81 for each, whatever it carries, and a NOOP right behind it is answered. memcached
    1.6.18 reads the body as further commands."""
    parts = {"nothing": {}, "key": {"key": b"k" * 251},
             "all": {"extras": b"12345678", "key": b"key",
                     "value": request(Op.NOOP, opaque=0xBAD) + b"value"}}[body]
    unknown = [op for op in range(256) if op not in KNOWN]
    assert len(unknown) > 190
    client.send(b"".join(request(op, opaque=op, **parts) + request(Op.NOOP, opaque=1000 + op)
                         for op in unknown))
    for op in unknown:
        check_error(client.recv(), op, op, St.UNKNOWN_COMMAND)
        assert client.recv().opaque == 1000 + op


# ---- framing ----

@pytest.mark.parametrize("length", [0x80000000, 0xFFFFFFFF, 0x7FFFFFFF, (20 << 20) + 1])
def test_enormous_body_lengths(daemon, length):
    """0x03 with a text, closed, and nothing is allocated for it."""
    before = daemon.process.rss_bytes()
    for op, key_len, extras_len in ((Op.SET, 1, 8), (Op.GET, 250, 0), (Op.NOOP, 0, 0),
                                    (0x77, 65535, 255)):
        with daemon.client() as client:
            client.send(request(op, opaque=7, key_len=key_len, extras_len=extras_len,
                                body_len=length))
            frames = client.recv_until_closed()
            assert len(frames) == 1
            check_error(frames[0], op, 7, St.E2BIG)
    assert daemon.process.rss_bytes() < before + (16 << 20) * memory_factor()


@pytest.mark.parametrize("fields", [
    dict(key_len=1, extras_len=0, body_len=0), dict(key_len=0, extras_len=1, body_len=0),
    dict(key_len=65535, extras_len=255, body_len=65535), dict(key_len=5, extras_len=8, body_len=12),
], ids=str)
def test_lengths_that_contradict_each_other(daemon, fields):
    """0x04 with a text, then closed: nobody knows where the next frame begins."""
    for op in (Op.SET, Op.GET, Op.NOOP, 0x77):
        with daemon.client() as client:
            client.send(request(op, opaque=9, **fields) + b"x" * 100)
            frames = client.recv_until_closed()
            assert len(frames) == 1
            check_error(frames[0], op, 9, St.EINVAL)


def test_framing_extras_longer_than_the_body(daemon):
    with daemon.client() as client:
        client.send(struct.pack(">BBBBBBHIIQ", ALT_REQ, Op.GET, 200, 1, 0, 0, 0, 100, 3, 0))
        frames = client.recv_until_closed()
        assert len(frames) == 1
        check_error(frames[0], Op.GET, 3, St.EINVAL)


@pytest.mark.parametrize("first", [
    b"get foo\r\n", b"set foo 0 0 3\r\nbar\r\n", b"mg foo v\r\n", b"version\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100,
    b"*1\r\n$4\r\nPING\r\n", b"PING\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 64,
    b"\xff" * 64, b"\x81" + b"\0" * 23, b"\x18" + b"\0" * 23, b"\x82" + b"\0" * 23, b"\n",
], ids=lambda first: repr(first[:8]))
def test_first_bytes_of_other_protocols(daemon, first):
    """Closed without a byte; the others do not notice."""
    with daemon.client() as other, daemon.client() as client:
        client.send(first)
        assert client.recv_until_closed() == []
        other.noop()


def test_other_protocol_after_good_frames(daemon):
    with daemon.client() as client:
        client.send(request(Op.NOOP, opaque=1) + request(Op.VERSION, opaque=2) + b"get foo\r\n")
        assert [f.opaque for f in client.recv_until_closed()] == [1, 2]


def test_value_over_the_item_limit(client, key):
    """0x03, the body is skipped, also when it comes in pieces; the connection stays."""
    big = b"x" * ((1 << 20) + 1)
    for op, extras in ((Op.SET, set_extras()), (Op.ADDQ, set_extras()), (Op.APPEND, b"")):
        mark = client.opaque()
        client.send(request(op, key, big, extras, opaque=5) + request(Op.NOOP, opaque=mark))
        frames = client.replies_until(mark)
        assert len(frames) == 1
        check_error(frames[0], op, 5, St.E2BIG)
    huge = request(Op.SET, key, b"x" * (5 << 20), set_extras(), opaque=6)
    for at in range(0, len(huge), 1 << 20):
        client.send(huge[at:at + (1 << 20)])
    check_error(client.recv(), Op.SET, 6, St.E2BIG)
    assert client.get(key).status == St.ENOENT


# ---- segments ----

def session(key):
    """A stream of many kinds of frames, and what it is answered."""
    return b"".join([
        request(Op.SET, key, b"10", set_extras(7), opaque=1),
        request(Op.GET, key, opaque=2),
        request(Op.GETKQ, key + b"?", opaque=3),
        request(Op.INCR, key, extras=counter_extras(5), opaque=4),
        request(Op.SET, key, opaque=5),
        request(0x77, b"key", b"value", b"extras", opaque=6),
        request(Op.APPENDQ, key, b"0", opaque=7),
        request(Op.GETK, key, opaque=8),
        request(Op.GET, key, opaque=9, framing=frame_info(0, b"")),
        request(Op.DELETEQ, key, opaque=10),
        request(Op.GETK, key, opaque=11),
        request(Op.NOOP, opaque=12)])


SESSION_REPLIES = [(1, 0, b""), (2, 0, b"10"), (4, 0, struct.pack(">Q", 15)), (5, 4, None),
                   (6, 0x81, None), (8, 0, b"150"), (9, 0, b"150"), (11, 1, None), (12, 0, b"")]


def check_session(client):
    for opaque, status, value in SESSION_REPLIES:
        frame = client.recv()
        assert (frame.opaque, frame.status) == (opaque, status), show(frame)
        assert value is None or frame.value == value, show(frame)


def test_one_byte_at_a_time(client, key):
    client.send_bytewise(session(key))
    check_session(client)


@pytest.mark.parametrize("chunk", [2, 3, 7, 23, 24, 25, 100])
def test_in_chunks(client, key, chunk):
    client.send_bytewise(session(key), chunk)
    check_session(client)


def test_split_at_every_byte(client, key):
    stream = session(key)
    for at in range(1, len(stream)):
        client.send(stream[:at])
        client.send(stream[at:])
        check_session(client)


def test_many_frames_in_one_segment(client, key):
    """More than a turn handles, in one write: all are answered without another byte from us."""
    client.set(key, b"v")
    count = 5000
    client.send(b"".join(request(Op.GET, key, opaque=number) for number in range(count)))
    for number in range(count):
        frame = client.recv()
        assert frame.opaque == number and frame.value == b"v", show(frame)


def test_eight_thousand_errors_keep_their_opaques(client, key):
    kinds = [(Op.GET, dict(key=key), St.ENOENT), (0x77, dict(key=b"k"), St.UNKNOWN_COMMAND),
             (Op.SETQ, dict(key=key), St.EINVAL), (Op.DELETE, dict(key=key), St.ENOENT),
             (Op.SELECT_BUCKET, dict(key=b"no such bucket"), None)]
    count = 8000
    stream = b"".join(request(kinds[n % 5][0], opaque=0x9000000 + n, **kinds[n % 5][1])
                      for n in range(count))
    sender = threading.Thread(target=client.send, args=(stream,))
    sender.start()
    for number in range(count):
        op, _, status = kinds[number % 5]
        frame = client.recv()
        assert frame.opaque == 0x9000000 + number and frame.opcode == op, show(frame)
        assert frame.status == status or status is None and frame.status, show(frame)
    sender.join()


# ---- HELLO, frame infos, error contexts ----

def test_hello_grants_what_it_knows(client):
    assert client.hello(*ALL_FEATURES) == [int(f) for f in ALL_FEATURES]
    assert client.hello(0x02, 0x0A, 0x06, 0x0C, 0x77, Feature.XERROR) == [Feature.XERROR]
    assert client.hello() == []
    assert client.call(Op.HELLO, b"agent", b"\0").status == St.EINVAL, "half a feature"
    assert client.hello(Feature.JSON, Feature.JSON) == [Feature.JSON], "each once"


def test_second_hello_resets_the_first(client):
    client.hello(Feature.JSON, Feature.XERROR, Feature.REPORT_UNITS)
    assert error_context(client.call(Op.GET))
    client.hello()
    frame = client.call(Op.GET)
    with pytest.raises(ValueError):
        json.loads(frame.value)
    assert frame.magic == RES


def test_error_is_text_or_json(client):
    plain = client.call(Op.SET, b"k")
    assert plain.status == St.EINVAL and b"extras" in plain.value.lower(), show(plain)
    client.hello(Feature.JSON)
    frame = client.call(Op.SET, b"k")
    assert "extras" in error_context(frame).lower()
    frame = client.call(0x77)
    assert frame.status == St.UNKNOWN_COMMAND and error_context(frame)


def test_json_datatype_needs_json(client):
    value = json.dumps({"reserved": 0, "hard_limit": "unlimited"})
    call = lambda: client.call(Op.SET_BUCKET_THROTTLE, b"default", value, datatype=1)
    assert call().status == St.EINVAL
    client.hello(Feature.JSON)
    assert call().status == 0


@pytest.mark.parametrize("info,status", [
    (frame_info(0, b""), 0), (frame_info(1, b"\1"), St.NOT_SUPPORTED),
    (frame_info(1, b"\1\0\5"), St.NOT_SUPPORTED), (frame_info(2, b"\0\1"), St.NOT_SUPPORTED),
    (frame_info(5, b""), St.NOT_SUPPORTED), (frame_info(3, b"x"), St.UNKNOWN_FRAME_INFO),
    (frame_info(7, b"xx"), None), (frame_info(9, b""), St.UNKNOWN_FRAME_INFO),
    (frame_info(15, b"x"), St.UNKNOWN_FRAME_INFO), (frame_info(200, b"x"), St.UNKNOWN_FRAME_INFO),
    (frame_info(9, b"x" * 20), St.UNKNOWN_FRAME_INFO), (b"\x05", St.EINVAL),
    (b"\x0f", St.EINVAL), (b"\xf0", St.EINVAL), (frame_info(0, b"") * 20, 0),
], ids=lambda item: item.hex() if isinstance(item, bytes) else str(item))
def test_frame_infos(client, key, info, status):
    client.set(key, b"v")
    frame = client.call(Op.GET, key, framing=info)
    if status is None:
        assert frame.status in (St.UNKNOWN_FRAME_INFO, St.NOT_SUPPORTED), show(frame)
    else:
        assert frame.status == status, show(frame)
    if status == 0:
        assert frame.value == b"v"
    elif status is not None:
        check_error(frame, Op.GET, frame.opaque, status)
    client.noop()


def test_alternative_magic_with_no_framing(client, key):
    client.set(key, b"v")
    frame = client.call(Op.GET, key, magic=ALT_REQ)
    assert frame.status == 0 and frame.value == b"v" and frame.magic == RES


def test_error_map(client):
    frame = client.ok(Op.GET_ERROR_MAP, value=b"\0\2")
    errors = json.loads(frame.value)["errors"]
    for code, attr in ((0x0C, "retry-later"), (0x86, "temp"), (0xFF08, "rate-limit"), (0x24, None),
                       (0xFF06, "retry-later"), (0x32, "rate-limit")):
        row = next((value for name, value in errors.items() if int(name, 16) == code), None)
        assert row, "0x%x is not in the map: %s" % (code, sorted(errors))
        assert row["name"] and row["desc"]
        assert attr is None or attr in row["attrs"], row
    assert json.loads(client.ok(Op.GET_ERROR_MAP, value=b"\0\x09").value)["version"] <= 9


def test_command_timer(client, key):
    client.set(key, b"v")
    json.loads(client.ok(Op.GET_CMD_TIMER, extras=bytes([Op.SET])).value)


def test_vbucket_is_no_obstacle(client, key):
    assert client.set(key, b"v", vbucket=1023).status == 0
    assert client.get(key, vbucket=7).value == b"v"


def test_tracing_reports_the_time(client, key):
    """With Tracing each reply carries the server's duration, and without it none does."""
    client.hello(Feature.TRACING)
    frame = client.set(key, b"v")
    took = parse_framing(frame.framing)[0]
    assert frame.magic == ALT_RES and len(took) == 2, show(frame)
    assert (int.from_bytes(took, "big") ** 1.74) / 2 < 2e6, "microseconds, compressed"
    assert client.get(b"missing").magic == ALT_RES
    client.hello()
    assert client.get(key).magic == RES


# ---- garbage ----

def mutated(rand, names):
    """A stream of frames of which some are damaged: lengths, magics, opcodes, cut or random bytes."""
    stream = bytearray()
    for _ in range(rand.randrange(1, 12)):
        op = rand.choice(list(SHAPE)) if rand.random() < 0.8 else rand.randrange(256)
        frame = bytearray(request(
            op, rand.choice(names) if rand.random() < 0.8 else b"", rand.randbytes(rand.choice(
                [0, 0, 1, 20, 300])), rand.randbytes(rand.choice([0, 0, 2, 4, 8, 20])),
            opaque=rand.randrange(1 << 32), cas=rand.choice([0, 0, 1, 1 << 63]),
            framing=rand.choice([b"", b"", b"", b"\x00", b"\x44shop", b"\xff\xff\xff"])))
        damage = rand.random()
        if damage < 0.3:
            frame[rand.randrange(min(24, len(frame)))] = rand.randrange(256)
        elif damage < 0.35:
            del frame[rand.randrange(len(frame)):]
        elif damage < 0.4:
            frame += rand.randbytes(rand.randrange(50))
        stream += frame
    return bytes(stream)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_streams(daemon, seed):
    """Whatever comes in, the server answers with whole frames or closes, and goes on."""
    rand = random.Random(seed)
    # Not the opcodes that would take the bucket or the settings away from the other tests.
    names = [b"k", b"key:%d" % seed, b"no such bucket", b"PLAIN", b"settings"]
    with daemon.client() as other:
        other.set(b"steady", b"value")
        for _ in range(150):
            with daemon.client() as client:
                try:
                    client.send_bytewise(mutated(rand, names), rand.choice([1 << 20, 64, 7]))
                    client.sock.shutdown(socket.SHUT_WR)
                    client.recv_until_closed()
                except (BrokenPipeError, ConnectionResetError, OSError) as wrong:
                    assert not isinstance(wrong, TimeoutError), "neither answered nor closed"
        assert other.get(b"steady").value == b"value" or other.set(b"steady", b"v").status == 0
    assert daemon.process.alive()


# ---- connections ----

def test_half_closed_client_gets_its_answers(daemon, key):
    with daemon.client() as client:
        names = [key + b":%d" % n for n in range(300)]
        client.send(b"".join(request(Op.SET, n, n * 20, set_extras(), opaque=i)
                             + request(Op.GET, n, opaque=i) for i, n in enumerate(names)))
        client.sock.shutdown(socket.SHUT_WR)
        frames = client.recv_until_closed()
        assert [f.opaque for f in frames] == [i for i in range(300) for _ in range(2)]
        assert all(f.status == 0 for f in frames)
        assert [f.value for f in frames[1::2]] == [n * 20 for n in names]


@pytest.mark.parametrize("store", ["embedded", "mc1", "redis"])
def test_slow_reader_does_not_fill_the_memory(farm, store):
    """A client asks for 500 MB and reads nothing: the server stops reading and keeps little."""
    with Headgate(store_config(store, farm)) as daemon:
        with daemon.client(timeout=60) as client, daemon.client() as other:
            size, count = 512 << 10, 1000
            value = os.urandom(size)
            assert client.set(b"big", value).status == 0
            assert client.get(b"big").value == value
            before = daemon.process.rss_bytes()
            client.send(b"".join(request(Op.GET, b"big", opaque=n) for n in range(count)))
            deadline = time.monotonic() + 1.5
            highest = 0
            while time.monotonic() < deadline:
                highest = max(highest, daemon.process.rss_bytes() - before)
                other.noop()
                time.sleep(0.02)
            assert highest < (64 << 20) * memory_factor(), "%d MiB for one slow reader" % (highest >> 20)
            assert other.set(b"other", b"v").status == 0, "the others do not wait for it"
            for number in range(count):
                frame = client.recv()
                assert frame.opaque == number and frame.value == value, show(frame)
            assert daemon.process.rss_bytes() - before < (64 << 20) * memory_factor()


def test_client_that_never_reads_and_goes(daemon):
    """Its replies are dropped with it."""
    for _ in range(5):
        with daemon.client() as client:
            client.set(b"big", b"x" * (1 << 20))
            client.send(b"".join(request(Op.GET, b"big") for _ in range(100)))
    with daemon.client() as client:
        poll(lambda: int(client.stat()["curr_connections"]) < 10, what="connections gone")


@pytest.mark.alone
def test_a_deep_pipeline_does_not_starve_the_others(daemon):
    """A worker serves some frames of a connection, then the others: one that asks for one key at a
    time is not behind thousands of somebody else's."""
    clients = [daemon.client(timeout=30) for _ in range(4)]
    with daemon.client() as light:
        light.set(b"k", b"v" * 100)
        alone = sorted(timed(lambda: light.get(b"k")) for _ in range(50))[45]
        make = lambda n: request(Op.GET, b"k", opaque=n)
        with Flood(clients, make, 3000) as flood:
            poll(lambda: len(flood.events) > 5000, what="the flood")
            waits = sorted(timed(lambda: light.get(b"k")) for _ in range(60))
        # Four connections with 64 frames a turn each are in front of it, not 12,000 requests.
        assert waits[54] < scaled(0.1) + 20 * alone, "%.1f ms, alone %.2f ms" % (
            waits[54] * 1e3, alone * 1e3)
    for client in clients:
        client.close()


def timed(action):
    begun = time.monotonic()
    frame = action()
    assert frame.status == 0, show(frame)
    return time.monotonic() - begun


def test_keepalive_is_on(daemon):
    """The kernel runs a keepalive timer for an idle client (column tr of /proc/net/tcp is 02)."""
    with daemon.client() as client:
        client.noop()
        mine = client.sock.getsockname()[1]
        with open("/proc/net/tcp") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        row = next(r for r in rows if int(r[1].split(":")[1], 16) == daemon.port
                   and int(r[2].split(":")[1], 16) == mine)
        assert row[5].startswith("02:"), row


def test_idle_connections_are_closed():
    with Headgate({"idle_timeout_s": 1}) as daemon:
        with daemon.client() as idle, daemon.client() as busy:
            idle.noop()
            start = time.monotonic()
            end = start + scaled(4)
            closed_after = None
            while time.monotonic() < end and closed_after is None:
                busy.noop()
                try:
                    idle.recv(0.1)
                except TimeoutError:
                    continue
                except Closed:
                    closed_after = time.monotonic() - start
            assert closed_after and closed_after > 0.8, closed_after
            busy.noop()


def test_connection_limit():
    """One too many is accepted, told 0x85 in reply to its first request, and closed."""
    with Headgate({"max_connections": 5}) as daemon:
        clients = [daemon.client()]
        poll(lambda: clients[0].stat()["curr_connections"] == "1", what="nobody else")
        clients += [daemon.client() for _ in range(4)]
        for client in clients:
            client.noop()
        with Client(daemon.address) as extra:
            extra.send(request(Op.GET, b"k", opaque=77) + request(Op.NOOP, opaque=78))
            frames = extra.recv_until_closed()
            assert len(frames) == 1
            check_error(frames[0], Op.GET, 77, St.EBUSY)
        for client in clients:
            client.noop()
        clients.pop().close()

        def admitted():
            with Client(daemon.address) as again:
                return again.call(Op.NOOP).status == 0
        poll(admitted, what="a free place")
        for client in clients:
            client.close()


@pytest.mark.parametrize("features,status", [((Feature.XERROR,), St.MAX_CONNECTIONS),
                                             ((), St.EBUSY)], ids=["xerror", "plain"])
def test_connection_limit_of_a_bucket(features, status):
    config = {"upstreams": [{"name": "store", "kind": "embedded"}],
              "tenants": [{"name": "default"}, {"name": "small", "max_connections": 2}]}
    with Headgate(config) as daemon:
        held = [daemon.client(bucket="small") for _ in range(2)]
        with daemon.client() as client:
            client.hello(*features)
            frame = client.select("small")
            check_error(frame, Op.SELECT_BUCKET, frame.opaque, status)
            assert client.set(b"k", b"v").status == 0, "it stays in the bucket it had"
            held.pop().close()
            poll(lambda: client.select("small").status == 0, what="a free place")
        for other in held:
            other.close()


def test_unix_socket_and_ipv6(key):
    with Headgate(wait=False) as daemon:
        path = os.path.join(daemon.directory, "sock")
        port6 = free_port("::1")
        daemon.write_config(listen=[{"address": daemon.where}, {"address": "unix:" + path},
                                    {"address": "[::1]:%d" % port6}])
        daemon.start()
        with daemon.client() as tcp, Client(path) as unix, Client(("::1", port6)) as six:
            assert tcp.set(key, b"v").status == 0
            assert unix.get(key).value == b"v"
            assert six.get(key).value == b"v"
        assert os.stat(path).st_mode & 0o077 == 0, "only its owner may use it"
        daemon.terminate()
        assert not os.path.exists(path), "the socket's file goes with the server"


def test_connections_that_come_and_go(daemon):
    for number in range(300):
        sock = connect_socket(daemon.address)
        if number % 3 == 0:
            sock.sendall(request(Op.GET, b"k")[:number % 24])
        if number % 3 == 1:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(request(Op.GET, b"k") * 10)
        sock.close()
    with daemon.client() as client:
        poll(lambda: int(client.stat()["curr_connections"]) < 10, what="connections gone")
