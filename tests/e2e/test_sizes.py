"""test_sizes - values of every size around every buffer boundary come back byte for byte.

Boundaries: the powers of two up to the item limit, and multiples of 16 KiB, each with 32 bytes to
both sides: of the value alone, and of the whole frame (header, extras and key counted), because
buffers hold frames.
"""
# SPDX-License-Identifier: BSD-3-Clause

import hashlib
import threading

import pytest

from mcbin import Op, St, request, set_extras, show

LIMIT = 1 << 20
CHUNK = 16 << 10
AROUND = range(-32, 33)
KEY = b"size"
# What stands in front of the value: a set request has 24 + 8 + key, a reply 24 + 4.
HEADS = (24 + 8 + len(KEY) + 8, 24 + 4)


def boundaries():
    marks = {1 << power for power in range(5, 21)}
    marks |= {CHUNK * number for number in (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 33, 48,
                                            63, 64)}
    return sorted(mark for mark in marks if mark <= LIMIT)


def sizes_around(mark):
    """Every size within 32 bytes of the mark, and around it with the frame's head taken off (at
    the exact edge and one to each side), never above the limit."""
    wanted = {mark + delta for delta in AROUND}
    for head in HEADS:
        wanted |= {mark - head + delta for delta in (-1, 0, 1)}
    return sorted(size for size in wanted if 0 <= size <= LIMIT)


_pattern = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(1 << 15))
assert len(_pattern) == LIMIT


def pattern(size):
    """Bytes that differ everywhere, and from one size to the next."""
    shift = size * 7919 % 4096
    return (_pattern[shift:] + _pattern[:shift])[:size]


def same(got, size):
    """Compares without printing a megabyte."""
    want = pattern(size)
    if got == want:
        return True
    at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))
    raise AssertionError("size %d: %d bytes came back, first difference at %d" % (
        size, len(got), at))


@pytest.mark.parametrize("mark", boundaries())
def test_one_at_a_time(client, mark):
    for size in sizes_around(mark):
        name = KEY + b"%08d" % size
        put = client.set(name, pattern(size), flags=size)
        assert put.status == 0, "size %d: %s" % (size, show(put))
        got = client.get(name)
        assert got.status == 0 and got.extras == size.to_bytes(4, "big"), show(got)
        same(got.value, size)
        assert client.delete(name).status == 0


@pytest.mark.parametrize("mark", [m for m in boundaries() if m <= 256 << 10 or m == LIMIT])
def test_pipelined(client, mark):
    """All sizes of a boundary in one go: sets, gets and deletes, while the replies are read."""
    sizes = sizes_around(mark)
    if mark > 64 << 10:
        sizes = [size for size in sizes if abs(size - mark) in (0, 1, 2, 28, 31, 32)]
    stream = [request(Op.SETQ, KEY + b"%08d" % size, pattern(size), set_extras(size), opaque=size)
              for size in sizes]
    for size in sizes:
        stream.append(request(Op.GETKQ, KEY + b"%08d" % size, opaque=size))
        stream.append(request(Op.DELETEQ, KEY + b"%08d" % size, opaque=size))
    stream.append(request(Op.NOOP, opaque=0xFFFFFFFF))
    sender = threading.Thread(target=client.send, args=(b"".join(stream),))
    sender.start()
    frames = client.replies_until(0xFFFFFFFF, timeout=20)
    sender.join()
    assert [(f.opcode, f.opaque, f.status) for f in frames] == [
        (Op.GETKQ, size, 0) for size in sizes]
    for frame, size in zip(frames, sizes):
        assert frame.key == KEY + b"%08d" % size
        same(frame.value, size)


def test_growing_by_append(client, key):
    """A value that grows over the boundaries of its buffers one append at a time."""
    client.set(key, b"")
    size = 0
    while size < 40000:
        step = min(997, 40000 - size)
        assert client.call(Op.APPEND, key, pattern(40000)[size:size + step]).status == 0
        size += step
    same(client.get(key).value, 40000)


def test_over_the_limit(target, client, key):
    """One byte over the item limit: 0x03, the body is skipped, the connection stays."""
    if target.is_model:
        size = (2 << 20) + 1    # the model runs with -I 2m
    else:
        size = LIMIT + 1
    frame = client.set(key, b"x" * size)
    assert frame.status == St.E2BIG, show(frame)
    client.noop()
    assert client.get(key).status == St.ENOENT
