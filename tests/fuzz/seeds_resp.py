#!/usr/bin/python3
# seeds_resp - writes the seed corpus of the fuzzer of Redis' replies: python3 tests/fuzz/seeds_resp.py FOLDER
# SPDX-License-Identifier: BSD-3-Clause
#
# A file is a byte that chooses the limit (bits 0-1: 64, 1024, 65536 bytes, none), the plain layout
# (bit 2), a login (bit 3), that nothing was asked (bit 4); a byte that says what was asked (enum
# hg_redis_tag); then what the server says.
import os
import struct
import sys

VALUE, STORED, ADDED, REPLACED, DELETED, CODE, JOINED, COUNTED, TOUCHED, RANGE = range(10)
PLAIN, LOGIN, NOBODY = 4, 8, 16


def seed(tag, stream, flags=2):
    return bytes([flags, tag]) + stream


def bulk(data):
    return b"$%d\r\n%s\r\n" % (len(data), data)


def array(*parts):
    return b"*%d\r\n" % len(parts) + b"".join(parts)


def item(value, flags=7, cas=5):
    return bulk(struct.pack(">IQ", flags, cas) + value)


def part(data):
    return struct.pack(">I", len(data)) + data


def rows(more, last, *pairs):
    head = (b"1" if more else b"0") + part(last)
    return bulk(head + b"".join(part(row) + part(b"\0" * 12 + value) for row, value in pairs))


def answers():
    yield "value", seed(VALUE, item(b"hello") + b"$-1\r\n" + item(b"") + bulk(b"short"))
    yield "value-plain", seed(VALUE, bulk(b"hello") + bulk(b""), PLAIN | 2)
    yield "value-large", seed(VALUE, item(b"x" * 900) + item(b"y" * 2000))
    yield "stored", seed(STORED, b"+OK\r\n+OK\r\n+QUEUED\r\n")
    yield "added", seed(ADDED, b"+OK\r\n$-1\r\n")
    yield "replaced", seed(REPLACED, b"$-1\r\n+OK\r\n")
    yield "deleted", seed(DELETED, b":1\r\n:0\r\n")
    yield "code", seed(CODE, b":0\r\n:-1\r\n:-2\r\n:-3\r\n:-4\r\n:-5\r\n:-6\r\n")
    yield "joined", seed(JOINED, b":1000\r\n:-3\r\n:4294967295\r\n")
    yield "counted", seed(COUNTED, bulk(b"18446744073709551615") + b":-4\r\n" + bulk(b"0"))
    yield "touched", seed(TOUCHED, bulk(b"ABCDEFGH") + bulk(b"") + b":-1\r\n")
    yield "range", seed(RANGE, rows(True, b"b", (b"a", b"1"), (b"b", b"2")) + rows(False, b""))
    yield "array", seed(VALUE, item(b"hello") + array(bulk(b"a"), b":1\r\n"))
    yield "login", seed(0, b"+OK\r\n" + bulk(b"0" * 40) + b"+PONG\r\n", LOGIN | 2)
    yield "login-refused", seed(0, b"-WRONGPASS no\r\n-LOADING wait\r\n", LOGIN | 2)


def errors():
    said = [
        b"-ERR unknown command 'x'\r\n",
        b"-LOADING Redis is loading the dataset in memory\r\n",
        b"-MOVED 3999 127.0.0.1:6381\r\n",
        b"-ASK 1 [::1]:6381\r\n",
        b"-NOSCRIPT No matching script\r\n",
        b"-ERR Error running script (call to f_0): @user_script:1: -OOM command not allowed\r\n",
        b"-" + b"x\xff" * 300 + b"\r\n",
    ]
    yield "errors", seed(VALUE, b"".join(said))


def mistakes():
    yield "nobody-asked", seed(VALUE, b"+OK\r\n", NOBODY | 2)
    yield "http", seed(VALUE, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    yield "wrong-kind", seed(STORED, bulk(b"OK"))
    yield "deep", seed(VALUE, b"*1\r\n" * 12 + b":1\r\n")
    yield "wide", seed(VALUE, b"*2147483647\r\n:1\r\n")
    yield "huge", seed(VALUE, b"$9223372036854775807\r\nx")
    yield "huge-in-array", seed(VALUE, b"*1\r\n$9223372036854775807\r\n" + b"x" * 100)
    yield "too-large", seed(VALUE, item(b"x" * 100), 0)
    yield "line-too-long", seed(VALUE, b"-" + b"x" * 100 + b"\r\n", 0)
    yield "no-end", seed(VALUE, b"$3\r\nabcd\r\n")
    yield "bare-feed", seed(STORED, b"+OK\n+OK\r\n")
    yield "negative", seed(VALUE, b"$-2\r\n")
    yield "rows-damaged", seed(RANGE, bulk(b"1" + part(b"a") + b"\0\0\0\xff"))
    yield "number-too-large", seed(COUNTED, bulk(b"18446744073709551616"))
    yield "resp3", seed(VALUE, b"%1\r\n+a\r\n_\r\n")


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for maker in (answers, errors, mistakes):
        for name, content in maker():
            with open(os.path.join(folder, name), "wb") as out:
                out.write(content)


main()
