#!/usr/bin/python3
# seeds - writes the seed corpus of the frame fuzzer: python3 tests/fuzz/seeds.py FOLDER
# SPDX-License-Identifier: BSD-3-Clause
#
# The first byte of a file chooses limits (bits 0-1) and HELLO features (the others, from bit 2);
# the rest is what a client sends.
import os
import struct
import sys

JSON = 1 << 3  # the bit of that feature, see proto/hello.h


def frame(op, key=b"", value=b"", extras=b"", framing=None, datatype=0, cas=0, body=None):
    if body is None:
        body = len(framing or b"") + len(extras) + len(key) + len(value)
    if framing is None:
        lengths = struct.pack(">BBH", 0x80, op, len(key))
    else:
        lengths = struct.pack(">BBBB", 0x08, op, len(framing), len(key))
    head = struct.pack(">BBHI4sQ", len(extras), datatype, 0, body, b"opaq", cas)
    return lengths + head + (framing or b"") + extras + key + value


def seeds():
    item = struct.pack(">II", 0xDEADBEEF, 60)
    counter = struct.pack(">QQI", 1, 5, 0)
    expiry = struct.pack(">I", 100)
    noop = frame(0x0A)
    for op in (0x00, 0x09, 0x0C, 0x0D, 0x04, 0x14):
        yield f"key-{op:02x}", frame(op, b"key") + noop
    for op in (0x01, 0x02, 0x03, 0x11, 0x12, 0x13):
        yield f"store-{op:02x}", frame(op, b"key", b"value", item) + noop
    for op in (0x05, 0x06, 0x15, 0x16):
        yield f"counter-{op:02x}", frame(op, b"n", b"", counter, cas=3) + noop
    for op in (0x0E, 0x0F, 0x19, 0x1A):
        yield f"append-{op:02x}", frame(op, b"key", b"tail") + noop
    for op in (0x1C, 0x1D, 0x1E, 0x23, 0x24):
        yield f"touch-{op:02x}", frame(op, b"key", b"", expiry) + noop
    for op in (0x07, 0x0A, 0x0B, 0x10, 0x17, 0x20, 0x26, 0x87):
        yield f"bare-{op:02x}", frame(op) + noop
    for op in (0x08, 0x18):
        yield f"flush-{op:02x}", frame(op) + frame(op, extras=expiry)
    yield "verbosity", frame(0x1B, extras=expiry)
    yield "stat", frame(0x10, b"bucket_details", b'{"a":1}', datatype=1)
    yield "hello", frame(0x1F, b"agent", bytes.fromhex("000300070008000b000f0010001a001b"))
    yield "hello-odd", frame(0x1F, b"agent", b"\0\3\0")
    yield "sasl", frame(0x21, b"PLAIN", b"\0user\0secret") + frame(0x22, b"SCRAM-SHA-256", b"c=")
    yield "bucket", frame(0x89, b"shop") + frame(0x85, b"shop", b"{}") + frame(0x86, b"shop")
    yield "limits", frame(0x2A, b"shop", b'{"reserved":10}') + frame(0x2C, value=b"{}")
    yield "ingress", frame(0x2B, b"shop", extras=b"\0\x35")
    yield "param", frame(0x82, b"node_capacity", b"25000") + frame(0x82, b"x", extras=expiry)
    yield "config", frame(0x25, value=b"threads: 2\n")
    yield "timer", frame(0xF3, extras=b"\0") + frame(0xF3, b"shop", extras=b"\1")
    yield "errmap", frame(0xFE, value=b"\0\1") + frame(0xFE, value=b"\0\2") + frame(0xFE, value=b"\0\0")
    yield "drop", frame(0xFB, b"Unthrottled")
    yield "unknown", frame(0xDD, b"key", b"value", b"extras") + noop
    yield "alt-none", frame(0x00, b"key", framing=b"") + noop
    yield "alt-user", frame(0x00, b"key", framing=b"\x43joe") + noop
    yield "alt-external", frame(0x00, b"key", framing=b"\x44^joe\0") + noop
    yield "alt-escapes", frame(0x00, b"key", framing=b"\x4f\3" + b"u" * 18 + b"\xf0\1") + noop
    yield "alt-refused", b"".join(
        frame(0x01, b"k", b"v", item, framing=f)
        for f in (b"\x11\1", b"\x13\1\0\1", b"\x22\0\1", b"\x50", b"\x64Read", b"\x70", b"\x43jo")
    )
    yield "wrong-extras", frame(0x00, b"key", extras=b"abcd") + frame(0x01, b"key") + noop
    yield "wrong-key", frame(0x00) + frame(0x00, b"k" * 251) + frame(0x0A, b"k") + noop
    yield "wrong-value", frame(0x00, b"k", b"v") + noop
    yield "wrong-cas", frame(0x00, b"k", cas=1) + noop
    yield "wrong-type", frame(0x00, b"k", datatype=1) + frame(0x00, b"k", datatype=2) + noop
    yield "long-key", frame(0x00, b"k" * 250) + noop
    yield "body-short", frame(0x01, b"key", b"", item, body=10)
    yield "body-80000000", frame(0x01, b"key", b"", item, body=0x80000000)
    yield "body-ffffffff", frame(0x01, b"key", b"", item, body=0xFFFFFFFF)
    yield "body-over-item", frame(0x01, b"key", b"", item, body=2 << 20)
    yield "cut-header", frame(0x00, b"key")[:23]
    yield "cut-body", frame(0x01, b"key", b"value", item)[:-1]
    yield "many", b"".join(frame(op, b"k", b"", b"") for op in range(40))
    yield "text", b"get key\r\n"
    yield "tls", bytes.fromhex("160301020001fc0303")
    yield "resp", b"*1\r\n$4\r\nPING\r\n"
    yield "http", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    yield "reply", bytes.fromhex("81000003040000000000000c") + b"opaq" + b"\0" * 8 + b"flagkeyvalue"
    yield "nothing", b""


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, stream in seeds():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(b"\0" + stream)
    with open(os.path.join(folder, "json-on"), "wb") as out:
        out.write(bytes([JSON << 2]) + frame(0x00, b"key", datatype=1) + frame(0x00, b"k", b"v"))
    with open(os.path.join(folder, "small-limits-skip"), "wb") as out:
        out.write(b"\3" + frame(0x01, b"k", b"v" * 30, b"8 bytes.") + frame(0x0A))
    with open(os.path.join(folder, "small-limits-long"), "wb") as out:
        out.write(b"\3" + frame(0x01, b"k", b"v" * 100, b"8 bytes."))
    with open(os.path.join(folder, "login-limits"), "wb") as out:
        out.write(b"\1" + frame(0x21, b"PLAIN", b"", body=16385))


main()
