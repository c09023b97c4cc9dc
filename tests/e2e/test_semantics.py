"""test_semantics - memcached's semantics, one suite for memcached itself (the model) and for
headgate over the embedded store, one memcached and three, a Redis and a Redis Cluster.

    pytest tests/e2e/test_semantics.py --target memcached     checks the expectations alone
"""
# SPDX-License-Identifier: BSD-3-Clause

import random
import struct
import time

import pytest

from mcbin import (Client, Closed, Op, QUIET_TO_LOUD, St, counter_extras, poll, request,
                   set_extras, show)

U64_MAX = (1 << 64) - 1
NO_CREATE = 0xFFFFFFFF


def counter(frame):
    assert frame.status == 0, show(frame)
    assert len(frame.value) == 8 and not frame.extras and not frame.key, show(frame)
    return struct.unpack(">Q", frame.value)[0]


def stored(client, key):
    frame = client.get(key)
    assert frame.status == 0, show(frame)
    return frame.value


# Seconds after which an item expires that is looked at before. memcached counts whole seconds of a
# clock of its own, so a second may end at once.
SOON = 3


def gone(client, key):
    return lambda: client.get(key).status == St.ENOENT


# ---- get and set ----

def test_set_then_get(client, key):
    put = client.set(key, b"value", flags=0xDEADBEEF)
    assert put.status == 0 and put.cas and not put.value and not put.extras, show(put)
    got = client.get(key)
    assert got.status == 0 and got.value == b"value" and not got.key, show(got)
    assert got.extras == struct.pack(">I", 0xDEADBEEF)
    assert got.cas == put.cas


def test_get_missing(client, key):
    frame = client.get(key)
    assert frame.status == St.ENOENT and not frame.extras and not frame.key and not frame.cas


def test_getk_has_the_key(client, key):
    client.set(key, b"value", flags=7)
    frame = client.ok(Op.GETK, key)
    assert frame.key == key and frame.value == b"value" and frame.extras == struct.pack(">I", 7)


def test_getk_miss_has_the_key(client, key):
    frame = client.call(Op.GETK, key)
    assert frame.status == St.ENOENT and frame.key == key and not frame.extras, show(frame)


def test_quiet_gets(client, key):
    hit, miss = key + b":hit", key + b":miss"
    client.set(hit, b"value", flags=3)
    frames = client.quiet(*(request(op, name, opaque=number)
                            for number, (op, name) in enumerate(
                                [(Op.GETQ, miss), (Op.GETQ, hit), (Op.GETKQ, miss),
                                 (Op.GETKQ, hit), (Op.GETKQ, miss)])))
    assert [(f.opcode, f.opaque, f.key, f.value) for f in frames] == [
        (Op.GETQ, 1, b"", b"value"), (Op.GETKQ, 3, hit, b"value")]
    assert all(f.extras == struct.pack(">I", 3) for f in frames)


def test_overwrite_changes_cas_and_flags(client, key):
    first = client.set(key, b"one", flags=1)
    second = client.set(key, b"two", flags=2)
    assert first.cas != second.cas
    got = client.get(key)
    assert (got.value, got.extras, got.cas) == (b"two", struct.pack(">I", 2), second.cas)


def test_zero_length_value(client, key):
    assert client.set(key, b"", flags=9).status == 0
    got = client.get(key)
    assert got.status == 0 and got.value == b"" and got.extras == struct.pack(">I", 9)
    frame = client.ok(Op.GETK, key)
    assert frame.key == key and frame.value == b""
    assert client.call(Op.APPEND, key, b"tail").status == 0
    assert stored(client, key) == b"tail"
    assert client.call(Op.PREPEND, key, b"").status == 0
    assert stored(client, key) == b"tail"


@pytest.mark.parametrize("flags", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_flags_are_opaque(client, key, flags):
    client.set(key, b"v", flags=flags)
    assert client.get(key).extras == struct.pack(">I", flags)


def test_binary_keys(client, key):
    names = [key + tail for tail in (b"\x00", b"\x00\x00", b" space", b"\r\n", b"\xff\xfe", b"\x80",
                                     b"get x\r\n", bytes(range(1, 128)))]
    names += [b"\x00" + key, b"\xff" + key]
    for number, name in enumerate(names):
        assert client.set(name, b"%d" % number).status == 0
    for number, name in enumerate(names):
        frame = client.ok(Op.GETK, name)
        assert frame.key == name and frame.value == b"%d" % number
    for name in names:
        assert client.delete(name).status == 0
        assert client.get(name).status == St.ENOENT


@pytest.mark.parametrize("length", [1, 2, 249, 250])
def test_key_lengths(client, key, length):
    name = (key * 30)[-length:] if length > 2 else b"\x01\x02"[:length]
    assert client.set(name, b"x" * length).status == 0
    assert client.ok(Op.GETK, name).key == name
    assert client.delete(name).status == 0


def test_values_of_any_bytes(client, key):
    value = bytes(range(256)) * 16 + b"\r\nEND\r\n\x80\x00" * 10
    client.set(key, value)
    assert stored(client, key) == value


@pytest.mark.parametrize("size", [1 << 16, 1 << 19, (1 << 20) - 512])
def test_big_values(client, key, size):
    value = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    assert client.set(key, value, flags=5).status == 0
    got = client.get(key)
    assert got.value == value and got.extras == struct.pack(">I", 5)
    assert client.call(Op.APPEND, key, b"tail").status == 0
    assert stored(client, key) == value + b"tail"
    assert client.delete(key).status == 0


# ---- add, replace, append, prepend ----

def test_add(client, key):
    assert client.add(key, b"one", flags=4).status == 0
    frame = client.add(key, b"two")
    assert frame.status == St.EEXISTS and frame.cas == 0, show(frame)
    assert stored(client, key) == b"one"
    client.delete(key)
    assert client.add(key, b"three").status == 0


def test_replace(client, key):
    frame = client.replace(key, b"one")
    assert frame.status == St.ENOENT and frame.cas == 0, show(frame)
    client.set(key, b"one")
    frame = client.replace(key, b"two", flags=8)
    assert frame.status == 0 and frame.cas
    got = client.get(key)
    assert got.value == b"two" and got.cas == frame.cas and got.extras == struct.pack(">I", 8)


@pytest.mark.parametrize("op", [Op.APPEND, Op.PREPEND])
def test_append_to_missing(client, key, op):
    frame = client.call(op, key, b"more")
    assert frame.status == St.NOT_STORED and not frame.cas, show(frame)
    assert client.get(key).status == St.ENOENT


def test_append_and_prepend(client, key):
    before = client.set(key, b"b", flags=0x01020304)
    after = client.call(Op.APPEND, key, b"c")
    assert after.status == 0 and after.cas and after.cas != before.cas
    assert client.call(Op.PREPEND, key, b"a").status == 0
    got = client.get(key)
    assert got.value == b"abc" and got.extras == struct.pack(">I", 0x01020304), "flags stay"


def test_append_keeps_the_expiry(client, key):
    client.set(key, b"a", expiry=SOON)
    assert client.call(Op.APPEND, key, b"b").status == 0
    poll(gone(client, key), within=SOON + 3, what="expiry after append")


# ---- delete ----

def test_delete(client, key):
    frame = client.delete(key)
    assert frame.status == St.ENOENT, show(frame)
    client.set(key, b"v")
    frame = client.delete(key)
    assert frame.status == 0 and not frame.value and not frame.extras, show(frame)
    assert client.get(key).status == St.ENOENT


def test_delete_with_cas(client, key):
    cas = client.set(key, b"v").cas
    assert client.delete(key, cas=cas + 1000).status == St.EEXISTS
    assert stored(client, key) == b"v"
    assert client.delete(key, cas=cas).status == 0
    assert client.delete(key, cas=cas).status == St.ENOENT


# ---- compare and swap ----

@pytest.mark.parametrize("op", [Op.SET, Op.REPLACE])
def test_store_with_cas(client, key, op):
    extras = set_extras(1, 0)
    assert client.call(op, key, b"new", extras, cas=12345).status == St.ENOENT
    cas = client.set(key, b"old").cas
    frame = client.call(op, key, b"new", extras, cas=cas + 999)
    assert frame.status == St.EEXISTS and frame.cas == 0, show(frame)
    assert stored(client, key) == b"old"
    frame = client.call(op, key, b"new", extras, cas=cas)
    assert frame.status == 0 and frame.cas not in (0, cas), show(frame)
    assert client.call(op, key, b"newer", extras, cas=cas).status == St.EEXISTS
    assert stored(client, key) == b"new"


@pytest.mark.parametrize("op", [Op.APPEND, Op.PREPEND])
def test_append_with_cas(client, key, op):
    cas = client.set(key, b"base").cas
    assert client.call(op, key, b"+", cas=cas + 999).status == St.EEXISTS
    assert stored(client, key) == b"base"
    frame = client.call(op, key, b"+", cas=cas)
    assert frame.status == 0 and frame.cas not in (0, cas), show(frame)


@pytest.mark.parametrize("op", [Op.INCR, Op.DECR])
def test_counter_with_cas(client, key, op):
    cas = client.set(key, b"10").cas
    frame = client.call(op, key, b"", counter_extras(1), cas=cas + 999)
    assert frame.status == St.EEXISTS, show(frame)
    assert stored(client, key) == b"10"
    frame = client.call(op, key, b"", counter_extras(1), cas=cas)
    assert counter(frame) == (11 if op == Op.INCR else 9)
    assert frame.cas not in (0, cas)


def test_cas_of_every_mutation_is_what_get_says(client, key):
    steps = [(Op.SET, b"1", set_extras()), (Op.REPLACE, b"2", set_extras()),
             (Op.APPEND, b"3", b""), (Op.PREPEND, b"4", b""),
             (Op.INCR, b"", counter_extras(1)), (Op.DECR, b"", counter_extras(1))]
    seen = set()
    for op, value, extras in steps:
        frame = client.ok(op, key, value, extras)
        assert frame.cas and frame.cas not in seen, show(frame)
        assert client.get(key).cas == frame.cas, op.name
        seen.add(frame.cas)


# ---- counters ----

def test_counter_does_not_create(client, key):
    frame = client.incr(key, 5, 100, NO_CREATE)
    assert frame.status == St.ENOENT and not frame.cas, show(frame)
    assert client.decr(key, 5, 100, NO_CREATE).status == St.ENOENT
    assert client.get(key).status == St.ENOENT


@pytest.mark.parametrize("op", [Op.INCR, Op.DECR])
def test_counter_creates_with_initial(client, key, op):
    frame = client.call(op, key, b"", counter_extras(5, 1234567890123, 0))
    assert counter(frame) == 1234567890123 and frame.cas
    got = client.get(key)
    assert got.value == b"1234567890123" and got.extras == b"\0\0\0\0"
    assert got.cas == frame.cas


def test_counter_adds_and_subtracts(client, key):
    assert counter(client.incr(key, 1, 10)) == 10
    assert counter(client.incr(key, 7)) == 17
    assert counter(client.decr(key, 8)) == 9
    assert counter(client.incr(key, 0)) == 9
    assert stored(client, key).rstrip(b" ") == b"9"


def test_counter_wraps_at_two_to_the_64(client, key):
    client.set(key, b"%d" % U64_MAX)
    assert counter(client.incr(key, 1)) == 0
    client.set(key, b"%d" % (U64_MAX - 1))
    assert counter(client.incr(key, 3)) == 1
    client.set(key, b"5")
    assert counter(client.incr(key, U64_MAX)) == 4


def test_counter_stops_at_zero(client, key):
    client.set(key, b"5")
    assert counter(client.decr(key, 6)) == 0
    assert counter(client.decr(key, U64_MAX)) == 0
    assert stored(client, key).rstrip(b" ") == b"0"


def test_counter_initial_of_any_size(client, key):
    assert counter(client.incr(key, 1, U64_MAX)) == U64_MAX
    assert stored(client, key) == b"18446744073709551615"
    assert counter(client.incr(key, 2)) == 1


@pytest.mark.parametrize("text", [b"", b"x", b"12x", b"-1", b"1.5", b"18446744073709551616",
                                  b"999999999999999999999999", b"\0" * 8])
def test_counter_on_what_is_no_number(client, key, text):
    client.set(key, text)
    for op in (Op.INCR, Op.DECR):
        frame = client.call(op, key, b"", counter_extras(1))
        assert frame.status == St.DELTA_BADVAL and not frame.cas, show(frame)
    assert stored(client, key) == text


def test_counter_changes_its_length(client, key):
    client.set(key, b"99")
    assert counter(client.incr(key, 1)) == 100
    assert stored(client, key) == b"100"
    assert counter(client.decr(key, 1)) == 99
    assert stored(client, key).rstrip(b" ") == b"99"
    assert counter(client.incr(key, 1)) == 100
    client.set(key, b"007")
    assert counter(client.incr(key, 1)) == 8


def test_counter_keeps_the_flags(client, key):
    client.set(key, b"1", flags=0xABCD)
    client.incr(key, 1)
    assert client.get(key).extras == struct.pack(">I", 0xABCD)
    client.incr(key, 1000000)
    assert client.get(key).extras == struct.pack(">I", 0xABCD)


def test_counter_created_with_expiry(client, key):
    counter(client.incr(key, 1, 5, expiry=1))
    poll(gone(client, key), within=4, what="expiry of a counter")


# ---- expiry ----

def test_expiry_relative_absolute_and_none(client, key):
    now = int(time.time())
    # There is no negative expiry in this protocol: the field is unsigned, 0xffffffff is in 2106.
    lives = {b":none": 0, b":long": 3600, b":30d": 60 * 60 * 24 * 30, b":future": now + 3600,
             b":2038": 0x80000000, b":2106": 0xFFFFFFFF}
    dies = {b":1": 1, b":2": 2, b":at": now + 2}
    dead = {b":past": now - 1000, b":30d+1": 60 * 60 * 24 * 30 + 1}
    for tail, expiry in {**lives, **dies, **dead}.items():
        assert client.set(key + tail, b"v", expiry=expiry).status == 0, tail
    assert client.get(key + b":2").status == 0 or time.time() > now + 1
    for tail in dead:
        assert client.get(key + tail).status == St.ENOENT, tail
    for tail in dies:
        poll(gone(client, key + tail), within=5, what="expiry %s" % tail.decode())
    for tail in lives:
        assert client.get(key + tail).status == 0, tail


def test_expired_items_are_missing_for_everything(client, key):
    for tail in (b"add", b"rep", b"app", b"inc", b"tch", b"gat", b"del", b"cas"):
        client.set(key + tail, b"1", expiry=int(time.time()) - 1000)
    assert client.add(key + b"add", b"2").status == 0
    assert client.replace(key + b"rep", b"2").status == St.ENOENT
    assert client.call(Op.APPEND, key + b"app", b"2").status == St.NOT_STORED
    assert client.incr(key + b"inc", 1, 0, NO_CREATE).status == St.ENOENT
    assert client.touch(key + b"tch", 100).status == St.ENOENT
    assert client.gat(key + b"gat", 100).status == St.ENOENT
    assert client.delete(key + b"del").status == St.ENOENT
    assert client.set(key + b"cas", b"2", cas=77).status == St.ENOENT


# ---- touch, get and touch ----

def test_touch(client, key):
    assert client.touch(key, 100).status == St.ENOENT
    client.set(key, b"v", flags=6, expiry=SOON)
    frame = client.touch(key, 3600)
    assert frame.status == 0, show(frame)
    client.set(key + b":2", b"v", expiry=3600)
    assert client.touch(key + b":2", SOON).status == 0
    poll(gone(client, key + b":2"), within=SOON + 3, what="the touched expiry")
    got = client.get(key)
    assert got.status == 0 and got.value == b"v" and got.extras == struct.pack(">I", 6)


def test_touch_to_zero_means_never(client, key):
    client.set(key, b"v", expiry=SOON)
    client.set(key + b":1", b"v", expiry=SOON)
    assert client.touch(key, 0).status == 0
    poll(gone(client, key + b":1"), within=SOON + 3, what="expiry")
    assert client.get(key).status == 0


@pytest.mark.parametrize("op,has_key", [(Op.GAT, False), (Op.GATK, True)])
def test_gat(client, key, op, has_key):
    frame = client.gat(key, 100, op)
    assert frame.status == St.ENOENT and frame.key == (key if has_key else b""), show(frame)
    put = client.set(key, b"value", flags=11)
    frame = client.gat(key, 1, op)
    assert frame.status == 0 and frame.value == b"value", show(frame)
    assert frame.extras == struct.pack(">I", 11) and frame.key == (key if has_key else b"")
    assert frame.cas == put.cas or frame.cas
    poll(gone(client, key), within=4, what="the expiry of a get and touch")


def test_quiet_gat(client, key):
    hit, miss = key + b":hit", key + b":miss"
    client.set(hit, b"value", flags=3)
    life = struct.pack(">I", 100)
    frames = client.quiet(*(request(op, name, extras=life, opaque=number)
                            for number, (op, name) in enumerate(
                                [(Op.GATQ, miss), (Op.GATQ, hit), (Op.GATKQ, miss),
                                 (Op.GATKQ, hit)])))
    assert [(f.opcode, f.opaque, f.key, f.value) for f in frames] == [
        (Op.GATQ, 1, b"", b"value"), (Op.GATKQ, 3, hit, b"value")]


# ---- quiet mutations ----

QUIET_MUTATIONS = [
    (Op.SETQ, b"1", set_extras()), (Op.ADDQ, b"1", set_extras()),
    (Op.REPLACEQ, b"1", set_extras()), (Op.APPENDQ, b"1", b""), (Op.PREPENDQ, b"1", b""),
    (Op.INCRQ, b"", counter_extras(1, 1)), (Op.DECRQ, b"", counter_extras(1, 1)),
    (Op.DELETEQ, b"", b""),
]


@pytest.mark.parametrize("op,value,extras", QUIET_MUTATIONS,
                         ids=[m[0].name for m in QUIET_MUTATIONS])
def test_quiet_mutation_is_silent_and_done(client, key, op, value, extras):
    if op not in (Op.ADDQ,):
        client.set(key, b"5")
    assert client.quiet(request(op, key, value, extras)) == []
    expected = {Op.SETQ: b"1", Op.ADDQ: b"1", Op.REPLACEQ: b"1", Op.APPENDQ: b"51",
                Op.PREPENDQ: b"15", Op.INCRQ: b"6", Op.DECRQ: b"4"}
    if op == Op.DELETEQ:
        assert client.get(key).status == St.ENOENT
    else:
        assert stored(client, key) == expected[op]


def test_errors_of_quiet_mutations_are_sent(client, key):
    there, text, missing = key + b":there", key + b":text", key + b":missing"
    client.set(there, b"1")
    client.set(text, b"text")
    cases = [
        (Op.SETQ, there, b"2", set_extras(), 99, St.EEXISTS),
        (Op.ADDQ, there, b"2", set_extras(), 0, St.EEXISTS),
        (Op.REPLACEQ, missing, b"2", set_extras(), 0, St.ENOENT),
        (Op.APPENDQ, missing, b"2", b"", 0, St.NOT_STORED),
        (Op.PREPENDQ, missing, b"2", b"", 0, St.NOT_STORED),
        (Op.INCRQ, text, b"", counter_extras(1), 0, St.DELTA_BADVAL),
        (Op.DECRQ, text, b"", counter_extras(1), 0, St.DELTA_BADVAL),
        (Op.INCRQ, missing, b"", counter_extras(1, 0, NO_CREATE), 0, St.ENOENT),
        (Op.DELETEQ, missing, b"", b"", 0, St.ENOENT),
        (Op.DELETEQ, there, b"", b"", 99, St.EEXISTS),
    ]
    frames = client.quiet(*(request(op, name, value, extras, opaque=number, cas=cas)
                            for number, (op, name, value, extras, cas, _) in enumerate(cases)))
    assert [(f.opcode, f.opaque, f.status) for f in frames] == [
        (case[0], number, case[5]) for number, case in enumerate(cases)]


def test_quiet_and_loud_keep_their_order_on_one_key(client, key):
    frames = client.quiet(
        request(Op.SETQ, key, b"1", set_extras()), request(Op.GET, key, opaque=1),
        request(Op.INCRQ, key, extras=counter_extras(4)), request(Op.GETQ, key, opaque=2),
        request(Op.DELETEQ, key), request(Op.GETQ, key, opaque=3),
        request(Op.ADDQ, key, b"9", set_extras()), request(Op.GETK, key, opaque=4),
        request(Op.APPENDQ, key, b"8"), request(Op.GETKQ, key, opaque=5))
    assert [(f.opaque, f.value) for f in frames] == [(1, b"1"), (2, b"5"), (4, b"9"), (5, b"98")]


def test_replies_in_the_order_of_the_requests(client, key):
    names = [key + b":%d" % number for number in range(200)]
    client.quiet(*(request(Op.SETQ, name, name, set_extras()) for name in names[::2]))
    client.send(b"".join(request(Op.GETK if number % 3 else Op.GET, name, opaque=number)
                         for number, name in enumerate(names)))
    for number, name in enumerate(names):
        frame = client.recv()
        assert frame.opaque == number, show(frame)
        assert frame.status == (St.ENOENT if number % 2 else 0)
        assert number % 2 or frame.value == name


# ---- flush ----

def lasting(client, names):
    """Sets that are there afterwards: memcached's flush takes those of its running second along.
    Keys for all servers, so that the next test begins after it on each."""
    return lambda: all(client.set(name, b"new").status == 0 for name in names) and all(
        client.get(name).status == 0 for name in names)


def test_flush(client, key):
    names = [key + b":%d" % number for number in range(30)]
    for name in names:
        client.set(name, b"v")
    assert client.call(Op.FLUSH).status == 0
    assert [client.get(name).status for name in names] == [St.ENOENT] * 30
    poll(lasting(client, names), within=3, what="sets after the flush that last")


def test_quiet_flush(client, key):
    client.set(key, b"v")
    assert client.quiet(request(Op.FLUSHQ), request(Op.GETQ, key)) == []
    names = [key + b":%d" % number for number in range(30)]
    poll(lasting(client, names), within=3, what="sets after the flush that last")


def test_flush_with_delay(target, client, key):
    client.set(key, b"v")
    frame = client.call(Op.FLUSH, extras=struct.pack(">I", 2))
    if target.kind in ("redis", "redis2", "cluster"):     # FLUSHDB knows no delay: refused, nothing is done
        assert frame.status == St.NOT_SUPPORTED and b"delay" in frame.value, show(frame)
        assert client.get(key).status == 0
        return
    assert frame.status == 0, show(frame)
    assert client.get(key).status == 0, "a delayed flush acts later"
    poll(gone(client, key), within=5, what="the delayed flush")
    names = [key + b":%d" % number for number in range(30)]
    poll(lasting(client, names), within=4, what="sets after the delayed flush that last")


# ---- the rest ----

def test_noop_version_verbosity(target, client):
    client.noop()
    text = client.version()
    parts = text.split(".")
    assert len(parts) == 3 and all(part.isdigit() for part in parts), text
    assert int(parts[0]) >= 1, "libmemcached cannot read a version that begins with 0: " + text
    if not target.is_model:     # memcached 1.6.18 does not know it and loses its framing
        assert client.call(Op.VERBOSITY, extras=struct.pack(">I", 0)).status == 0


@pytest.mark.parametrize("op,replies", [(Op.QUIT, 1), (Op.QUITQ, 0)])
def test_quit_closes(client, op, replies):
    client.send(request(op, opaque=5) + request(Op.NOOP, opaque=6))
    frames = client.recv_until_closed()
    assert [(f.opcode, f.opaque, f.status) for f in frames] == [(op, 5, 0)] * replies


def test_stat_general(client):
    rows = client.stat()
    for name in ("pid", "uptime", "time", "version", "curr_connections", "cmd_get", "cmd_set",
                 "get_hits", "get_misses", "threads"):
        assert name in rows, "%s missing: %s" % (name, sorted(rows))
    assert int(rows["curr_connections"]) >= 1


def test_every_quiet_opcode_has_a_loud_twin_here():
    """Guards the table that the suites use."""
    assert len(QUIET_TO_LOUD) == 14
    assert all(quiet.name in (loud.name + "Q", loud.name[:-1] + "KQ")
               for quiet, loud in QUIET_TO_LOUD.items())


def test_two_connections_see_each_other(target, key):
    with target.client() as one, target.client() as two:
        one.set(key, b"1")
        assert stored(two, key) == b"1"
        counter(two.incr(key, 1))
        assert stored(one, key) == b"2"
        assert two.delete(key).status == 0
        assert one.get(key).status == St.ENOENT


def test_connection_closed_in_the_middle_of_a_request(target, client, key):
    other = target.client()
    other.send(request(Op.SET, key, b"x" * 1000, set_extras())[:500])
    other.close()
    assert client.get(key).status == St.ENOENT


# ---- a random walk, side by side with the model ----

class Walk:
    """Random operations on a few keys, in pipelined batches, the same for two servers. CAS values
    differ between servers, so each has its own idea of the last one."""

    def __init__(self, seed, prefix, clients):
        self.random = random.Random(seed)
        self.clients = clients
        self.counters = [prefix + b":c%d" % n for n in range(3)]
        self.texts = [prefix + b":t%d" % n for n in range(3)]
        self.cas = [{} for _ in clients]

    def operation(self):
        """(opcode, key, value, extras, kind of CAS)"""
        rand = self.random
        counter = rand.random() < 0.4
        key = rand.choice(self.counters if counter else self.texts)
        expiry = rand.choice([0, 0, 1000, 86400 * 40])
        cas = rand.choice(["none", "none", "none", "last", "wrong"])
        kind = rand.randrange(12)
        # Below 2^63: memcached takes a larger one for negative when a "-" happens to lie in the
        # memory behind it. And nothing is appended to a counter: memcached pads a number that got
        # shorter with spaces, or does not, depending on who else is reading it.
        number = rand.choice([0, 1, 2, 9, 99, 1 << 40, 1000])
        value = rand.choice([b"%d" % number, b"%d" % number, b"no number"]) if counter else \
            rand.choice([b"", b"x", b"abc" * 7, b"12", b"\0\1\2", b"y" * 3000])
        if kind <= 2:
            op = rand.choice([Op.SET, Op.SETQ, Op.REPLACE, Op.REPLACEQ])
            return op, key, value, set_extras(rand.randrange(4), expiry), cas
        if kind == 3:
            return rand.choice([Op.ADD, Op.ADDQ]), key, value, set_extras(7, expiry), "none"
        if kind == 4 and not counter:
            op = rand.choice([Op.APPEND, Op.APPENDQ, Op.PREPEND, Op.PREPENDQ])
            return op, key, value[:100], b"", cas
        if kind <= 6 and counter:
            op = rand.choice([Op.INCR, Op.INCRQ, Op.DECR, Op.DECRQ])
            return op, key, b"", counter_extras(number, rand.choice([0, 5, 10 ** 12]),
                                                rand.choice([0, 1000, NO_CREATE])), "none"
        if kind == 7:
            return rand.choice([Op.DELETE, Op.DELETEQ]), key, b"", b"", cas
        if kind == 8:
            op = rand.choice([Op.TOUCH, Op.GAT, Op.GATQ, Op.GATK, Op.GATKQ])
            return op, key, b"", struct.pack(">I", expiry), "none"
        return rand.choice([Op.GET, Op.GETQ, Op.GETK, Op.GETKQ]), key, b"", b"", "none"

    def batch(self, size):
        operations = [self.operation() for _ in range(size)]
        answers = []
        for cas, client in zip(self.cas, self.clients):
            stream = []
            for number, (op, key, value, extras, kind) in enumerate(operations):
                wanted = {"none": 0, "last": cas.get(key, 12345), "wrong": 1 << 62}[kind]
                stream.append(request(op, key, value, extras, opaque=number, cas=wanted))
            frames = client.quiet(*stream)
            told = []
            for frame in frames:
                op, key = operations[frame.opaque][:2]
                if frame.cas:
                    cas[key] = frame.cas
                value = frame.value.rstrip(b" ") if frame.status == 0 else b""
                # memcached's reply to Touch carries the flags; it says nothing of that anywhere.
                flags = b"" if op == Op.TOUCH else frame.extras
                told.append((frame.opaque, frame.opcode, frame.status, flags, frame.key, value,
                             bool(frame.cas)))
            answers.append(told)
        return operations, answers


@pytest.mark.parametrize("seed", range(4))
def test_random_walk_beside_memcached(target, farm, key, seed):
    with target.client() as one, Client(farm.servers(4)[3].address) as model:
        walk = Walk(seed, key, (model, one))
        for _ in range(60):
            operations, (expected, got) = walk.batch(walk.random.choice([1, 5, 40, 200]))
            if got != expected:
                at = next((n for n, pair in enumerate(zip(expected, got)) if pair[0] != pair[1]),
                          min(len(expected), len(got)))
                first = [told[at] if at < len(told) else None for told in (expected, got)]
                opaque = min(told[0] for told in first if told)
                assert got == expected, "memcached says %s, this says %s; operations: %s" % (
                    first[0], first[1], operations[max(0, opaque - 6):opaque + 1])


def test_closed_is_an_exception():
    """The library tells an end of the stream apart from a reply that is late."""
    assert issubclass(Closed, Exception) and not issubclass(Closed, OSError)
