#!/usr/bin/python3
# seeds_cluster - writes the seed corpus of the cluster fuzzer: python3 seeds_cluster.py FOLDER
# SPDX-License-Identifier: BSD-3-Clause
#
# The first byte of a file: bits 0-1 replies of a login before CLUSTER SLOTS; bit 2: a redirect or
# key instead.
import os
import sys


def node(host, port, *more):
    parts = [f"${len(host)}\r\n{host}\r\n" if host is not None else "$-1\r\n", f":{port}\r\n", *more]
    return f"*{len(parts)}\r\n" + "".join(parts)


def stretch(first, last, *nodes):
    return f"*{2 + len(nodes)}\r\n:{first}\r\n:{last}\r\n" + "".join(nodes)


def array(*parts):
    return f"*{len(parts)}\r\n" + "".join(parts)


ID = "$2\r\nid\r\n"


def seeds():
    three = array(
        stretch(0, 5460, node("10.0.0.1", 7000, ID), node("10.0.0.2", 7001, ID)),
        stretch(5461, 10922, node("10.0.0.3", 7002, ID)),
        stretch(10923, 16383, node("10.0.0.4", 7003, ID, "*2\r\n$8\r\nhostname\r\n$1\r\na\r\n")))
    yield "three", 0, three
    yield "login", 2, "+OK\r\n+PONG\r\n" + three
    yield "refused", 1, "-WRONGPASS no\r\n" + three
    yield "hosts", 0, array(stretch(0, 1, node("", 1)), stretch(2, 3, node(None, 2)),
                            stretch(4, 5, node("::1", 3)), stretch(6, 7, node("?", 4)))
    yield "same", 0, array(stretch(0, 1, node("a", 1)), stretch(5, 9, node("a", 1)))
    yield "twice", 0, array(stretch(0, 5, node("a", 1)), stretch(5, 9, node("b", 1)))
    yield "beyond", 0, array(stretch(0, 16384, node("a", 1)))
    yield "back", 0, array(stretch(9, 1, node("a", 1)))
    yield "huge", 0, "*2147483647\r\n"
    yield "deep", 0, "*1\r\n" * 12
    yield "error", 0, "-ERR This instance has cluster support disabled\r\n"
    yield "empty", 0, "*0\r\n"
    yield "moved", 4, "MOVED 3999 127.0.0.1:6381"
    yield "ask", 4, "ASK 16383 ::1:6381"
    yield "same-host", 4, "MOVED 1 :7000"
    yield "bracket", 4, "MOVED 1 [fe80::1%eth0]:7000"
    yield "tag", 4, "a{b}c{d}"
    yield "no-tag", 4, "{}{a"


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, choice, text in seeds():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes([choice]) + text.encode())


main()
