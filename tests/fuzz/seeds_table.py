#!/usr/bin/python3
# seeds_table - writes the seed corpus of the fuzzer of tables: python3 tests/fuzz/seeds_table.py FOLDER
# SPDX-License-Identifier: BSD-3-Clause
#
# A file is one byte that chooses the API (bit 0: HBase) and the arena's limit (bits 1-2), the
# extras, the key's length, the key and a message of proto/table.proto, written field by field here.
import os
import struct
import sys


def varint(n):
    n &= 0xFFFFFFFFFFFFFFFF
    out = b""
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def f(number, value):
    """A field: an integer, bytes (also of a message), or a real."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fixed(number, value):
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def seed(hbase, op, body=b"", row=b"", table=b"orders", limit=0, extras=None):
    key = table + row
    head = extras or struct.pack(">BBHI", op, 0, len(table), 0)
    return bytes([hbase | limit << 1]) + head + bytes([len(key)]) + key + body


def column(name, value):
    return f(1, f(1, name) + f(2, value))


def node(kind, *fields):
    return f(1, f(1, kind) + b"".join(fields))


COLUMNS = (
    column(b"a", f(1, -5)) + column(b"b", f(2, 2.5)) + column(b"c", f(3, b"bytes")) + column(b"d", b"")
)
CELL = f(1, b"d") + f(2, b"q")
CELLS = f(1, CELL + f(3, 1000) + f(4, b"new")) + f(1, CELL + f(3, 999) + f(4, b"old"))
BYTES = f(6, f(3, b"v"))
FILTER = (
    node(2, f(7, b"r"))
    + node(3, f(7, b"c"))
    + node(4, f(7, b"a"), f(8, b"z"), f(9, 1))
    + node(1, f(2, 2))
    + node(5, f(3, 2), BYTES)
    + node(6, f(3, 1), BYTES)
    + node(8, f(12, 3))
    + node(9)
    + node(10)
    + node(12, f(7, b"a"), f(10, 1))
    + node(0, f(2, 8))
)
TABLE_FILTER = node(7, f(5, b"n"), f(3, 4), f(6, f(1, 7)), f(11, 1)) + node(2) + node(0, f(2, 2))
HBASE_FILTER = (
    node(7, f(4, b"d"), f(5, b"q"), BYTES) + node(11, f(13, b"\x01\xe8\x07")) + node(1, f(2, 2))
)


def tables():
    entity = f(1, COLUMNS)
    for op in (1, 3, 4, 5):
        yield f"table-{op}", seed(0, op, entity, b"row")
    yield "table-get", seed(0, 0, f(2, b"b") + f(2, b"a"), b"row")
    yield "table-delete", seed(0, 2, b"", b"row")
    yield "table-increment", seed(0, 6, f(1, column(b"n", f(1, 3))) + f(3, 1), b"row")
    yield "table-append", seed(0, 7, f(1, column(b"n", f(3, b"tail"))), b"row")
    rows = f(1, f(1, b"a") + f(2, b"b") + f(3, 1) + f(4, 1))
    query = rows + f(2, b"n") + f(3, FILTER) + f(4, 10) + f(5, 2) + f(6, 1)
    yield "query", seed(0, 8, f(4, query))
    yield "query-point", seed(0, 8, f(4, f(1, f(1, b"a") + f(2, b"a"))))
    yield "query-start", seed(0, 10, f(4, f(3, TABLE_FILTER) + f(7, 50)))
    yield "query-next", seed(0, 11, fixed(7, 77))
    yield "query-end", seed(0, 12, fixed(7, 77))
    items = f(5, f(1, 1) + f(2, b"r") + f(3, COLUMNS)) + f(5, f(2, b"r") + f(4, b"a"))
    yield "batch", seed(0, 9, items + f(5, f(1, 2) + f(2, b"s")))
    yield "batch-atomic", seed(0, 9, items + f(6, 1))
    yield "row-table", seed(0, 1, COLUMNS, b"row")
    yield "row-table-unsorted", seed(0, 1, column(b"b", b"") + column(b"a", b""), b"row")
    yield "row-empty", seed(0, 1, b"", b"row")


def hbase():
    put = f(1, CELL + f(4, b"value")) + f(1, CELL + f(3, 7))
    check = f(6, f(1, b"d") + f(2, b"q") + f(3, 2) + f(4, b"v"))
    deletions = b"".join(
        f(3, body)
        for body in (
            f(4, 9),
            f(1, 1) + f(2, b"d"),
            f(1, 2) + f(2, b"d") + f(3, b"q"),
            f(1, 3) + f(2, b"d"),
            f(1, 4) + f(2, b"d") + f(4, 8),
        )
    )
    counters = f(2, CELL + f(3, -1)) + f(2, f(1, b"e") + f(3, 5))
    read = f(1, f(1, b"d") + f(2, b"q") + f(2, b"")) + f(2, 0) + f(3, 9000) + f(4, 3)
    yield "put", seed(1, 1, put, b"row")
    yield "delete", seed(1, 3, deletions, b"row")
    yield "delete-row", seed(1, 3, b"", b"row")
    yield "get", seed(1, 5, f(4, read + f(5, HBASE_FILTER)), b"row")
    yield "check-and-put", seed(1, 12, put + check, b"row")
    yield "check-and-delete", seed(1, 13, deletions + check, b"row")
    yield "check-absent", seed(1, 13, f(6, f(1, b"d") + f(3, 1)), b"row")
    yield "append", seed(1, 15, f(1, CELL + f(4, b"tail")), b"row")
    yield "increment", seed(1, 16, counters, b"row")
    bounds = f(1, b"a") + f(2, b"z") + f(3, 1) + f(4, 1) + f(5, 1) + f(6, 5) + f(7, 2) + f(8, 20)
    yield "scan", seed(1, 11, f(5, bounds) + f(4, read + f(5, FILTER)))
    yield "scan-point", seed(1, 11, f(5, f(1, b"a") + f(2, b"a")))
    yield "scan-next", seed(1, 18, fixed(8, 77))
    yield "scan-end", seed(1, 19, fixed(8, 77))
    items = f(7, f(1, 1) + f(2, b"r") + f(3, CELL)) + f(7, f(1, 5) + f(2, b"r") + f(6, read))
    items += f(7, f(1, 16) + f(2, b"r") + f(4, CELL + f(3, 2)))
    items += f(7, f(1, 3) + f(2, b"r") + f(5, f(4, 9))) + f(7, f(1, 15) + f(2, b"r") + f(3, CELL))
    yield "hybrid", seed(1, 9, items)
    # The cells of a row document are field 2 where those of a request are field 1.
    document = b"".join(f(2, CELL + f(3, at) + f(4, b"value")) for at in (9, 8, -1))
    yield "row-hbase", seed(1, 1, document, b"row")
    yield "row-hbase-unsorted", seed(1, 1, document + document, b"row")


def mistakes():
    yield "empty-fields", seed(0, 1, b"\x0a\0" * 600, b"row", limit=1)
    yield "empty-columns", seed(0, 1, f(1, b"\x0a\0" * 600), b"row", limit=1)
    yield "empty-items", seed(1, 9, b"\x3a\0" * 600, limit=2)
    yield "deep-filter", seed(0, 8, f(4, f(3, node(2) * 9 + node(0, f(2, 9)))))
    yield "long-filter", seed(0, 8, f(4, f(3, node(2) + node(0, f(2, 1)) * 64)))
    yield "unknown-kind", seed(0, 8, f(4, f(3, node(13))))
    yield "unknown-fields", seed(0, 11, f(99, 5) + fixed(7, 1) + f(100, b"hi") + varint(101 << 3 | 5) + b"4444")
    yield "twice", seed(0, 8, f(4, f(3, node(2))) + f(4, f(3, node(9)) + f(1, f(1, b"a"))))
    yield "oneof-twice", seed(0, 1, f(1, f(1, f(1, b"a") + f(2, f(1, 5) + f(3, b"x") + f(2, 1.0)))), b"r")
    yield "other-type", seed(0, 1, f(1, 5), b"row")
    yield "cut", seed(0, 1, f(1, COLUMNS)[:-3], b"row")
    yield "long-varint", seed(0, 8, b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
    yield "group", seed(0, 1, b"\x0b\x0c", b"row")
    yield "head-operation", seed(1, 2, b"", b"row")
    yield "head-flags", seed(0, 0, b"", b"row", extras=b"\0\1\0\6\0\0\0\0")
    yield "head-table", seed(0, 0, b"", b"row", extras=b"\0\0\0\x63\0\0\0\0")
    yield "head-zero", seed(0, 0, b"", b"row", table=b"or\0ers")
    yield "head-long", seed(0, 0, b"", b"r" * 149, table=b"t" * 100)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for maker in (tables, hbase, mistakes):
        for name, content in maker():
            with open(os.path.join(folder, name), "wb") as out:
                out.write(content)


main()
