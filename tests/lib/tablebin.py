"""tablebin - a client of TableAPI (0xe8) and HBase (0xe9) operations, for tests.

On top of mcbin: extras, keys and bodies are made here, and every field can be wrong on purpose. The
messages are those of proto/table.proto, compiled for the time of the test. A call returns a Reply:
the status, and the decoded body when it is 0.
"""
# SPDX-License-Identifier: BSD-3-Clause

import atexit
import enum
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import mcbin

PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "proto")
EXTRAS = struct.Struct(">BBHI")
TABLE, HBASE = 0xE8, 0xE9


class T(enum.IntEnum):
    GET = 0
    INSERT = 1
    DELETE = 2
    UPDATE = 3
    INSERT_OR_UPDATE = 4
    REPLACE = 5
    INCREMENT = 6
    APPEND = 7
    QUERY = 8
    BATCH = 9
    QUERY_START = 10
    QUERY_NEXT = 11
    QUERY_END = 12


class H(enum.IntEnum):
    PUT = 1
    DELETE = 3
    GET = 5
    HYBRID = 9
    SCAN = 11
    CHECK_AND_PUT = 12
    CHECK_AND_DELETE = 13
    APPEND = 15
    INCREMENT = 16
    SCAN_NEXT = 18
    SCAN_END = 19


def _compile():
    """table_pb2, made by protoc in a directory that is gone when the tests end."""
    where = tempfile.mkdtemp(prefix="hg-pb-")
    atexit.register(shutil.rmtree, where, ignore_errors=True)
    subprocess.run(["protoc", "--proto_path=" + PROTO, "--python_out=" + where, "table.proto"],
                   check=True)
    sys.path.insert(0, where)
    import table_pb2
    return table_pb2


pb = _compile()


class Reply:
    """status, body (None unless status is 0), affected rows and the frame as it came."""

    def __init__(self, frame, message):
        self.frame, self.status = frame, frame.status
        self.text = frame.value.decode("utf-8", "replace") if frame.status else ""
        self.body = self.affected = self.operation = None
        if frame.status == 0:
            assert len(frame.extras) == 8 and not frame.key, mcbin.show(frame)
            self.operation, zero, self.affected, reserved = EXTRAS.unpack(frame.extras)
            assert zero == 0 and reserved == 0, mcbin.show(frame)
            self.body = message.FromString(frame.value)

    def __repr__(self):
        return "<status 0x%x %s>" % (self.status, self.text or self.body)


# ---- values ----

def value_of(x):
    """None, int, float, or bytes (text is UTF-8) as a Value."""
    value = pb.Value()
    if isinstance(x, bool):
        raise TypeError("no such kind")
    if isinstance(x, int):
        value.integer = x
    elif isinstance(x, float):
        value.real = x
    elif x is not None:
        value.bytes = mcbin._b(x)
    return value


def plain(value):
    kind = value.WhichOneof("kind")
    return None if kind is None else getattr(value, kind)


def entity_of(columns):
    return pb.Entity(columns=[pb.Column(name=mcbin._b(name), value=value_of(x))
                              for name, x in columns.items()])


def columns_of(entity):
    """{name: value}, in the order of the reply."""
    found = {}
    for column in entity.columns:
        assert column.name not in found, entity
        found[column.name.decode()] = plain(column.value)
    return found


def cell(column, value=b"", ts=None):
    """A cell of "family:qualifier"."""
    family, qualifier = mcbin._b(column).split(b":", 1)
    made = pb.Cell(family=family, qualifier=qualifier, value=mcbin._b(value))
    if ts is not None:
        made.timestamp = ts
    return made


def cells_of(cells):
    """[(family:qualifier, timestamp, value)]"""
    return [((c.family + b":" + c.qualifier).decode(), c.timestamp, c.value) for c in cells]


def values_of(cells):
    """{family:qualifier: [values, newest first]}"""
    found = {}
    for name, _, value in cells_of(cells):
        found.setdefault(name, []).append(value)
    return found


def node(kind, low=None, high=None, op=None, value=None, column=None, family=None, **fields):
    """A FilterNode; `column` is a column's name, or "family:qualifier" with family=True."""
    made = pb.FilterNode(kind=getattr(pb.FilterNode, kind), **fields)
    if low is not None:
        made.low = mcbin._b(low)
    if high is not None:
        made.high = mcbin._b(high)
    if op is not None:
        made.op = getattr(pb, op)
    if value is not None:
        made.value.CopyFrom(value_of(value))
    if column is not None:
        column = mcbin._b(column)
        if family:
            made.family, column = column.split(b":", 1)
        made.qualifier = column
    return made


def filter_of(*nodes):
    return pb.Filter(nodes=nodes)


def all_of(*nodes):
    return pb.Filter(nodes=[*nodes, pb.FilterNode(kind=pb.FilterNode.ALL, operands=len(nodes))])


def any_of(*nodes):
    return pb.Filter(nodes=[*nodes, pb.FilterNode(kind=pb.FilterNode.ANY, operands=len(nodes))])


def item(operation, row, columns=None, select=(), want=False):
    """A TableItem of a batch."""
    made = pb.TableItem(operation=operation, row=mcbin._b(row), return_entity=want,
                        select=[mcbin._b(s) for s in select])
    if columns is not None:
        made.entity.CopyFrom(entity_of(columns))
    return made


def deletion(kind="ROW", column=None, ts=None):
    made = pb.Deletion(kind=getattr(pb.Deletion, kind))
    if column is not None:
        family, colon, qualifier = mcbin._b(column).partition(b":")
        made.family = family
        made.qualifier = qualifier
    if ts is not None:
        made.timestamp = ts
    return made


def counters(amounts):
    made = []
    for column, amount in amounts.items():
        family, qualifier = mcbin._b(column).split(b":", 1)
        made.append(pb.Counter(family=family, qualifier=qualifier, amount=amount))
    return made


def read_of(columns=(), versions=0, lower=None, upper=None, filter=None):
    """A Read of "family" and "family:qualifier"."""
    made, families = pb.Read(max_versions=versions), {}
    for column in columns:
        family, colon, qualifier = mcbin._b(column).partition(b":")
        names = families.setdefault(family, [])
        if colon:
            names.append(qualifier)
    for family, names in families.items():
        made.columns.add(family=family, qualifiers=names)
    if lower is not None:
        made.min_timestamp = lower
    if upper is not None:
        made.max_timestamp = upper
    if filter is not None:
        made.filter.CopyFrom(filter)
    return made


# ---- calls ----

def frame_of(opcode, operation, table, row=b"", body=b"", flags=0, reserved=0, table_len=None,
             **fields):
    """The bytes of a request; every part may be wrong on purpose."""
    table, row = mcbin._b(table), mcbin._b(row)
    extras = EXTRAS.pack(operation, flags, len(table) if table_len is None else table_len, reserved)
    if not isinstance(body, bytes):
        body = body.SerializeToString()
    return mcbin.request(opcode, table + row, body, extras, **fields)


class Rows:
    """Row operations over an mcbin client."""

    def __init__(self, client, table="t"):
        self.client, self.name = client, table

    def raw(self, opcode, operation, row=b"", body=b"", timeout=None, **fields):
        """One request with everything given; the frame of the reply."""
        opaque = self.client.opaque()
        table = fields.pop("table", self.name)
        self.client.send(frame_of(opcode, operation, table, row, body, opaque=opaque, **fields))
        frame = self.client.recv(timeout)
        assert frame.opcode == opcode and frame.opaque == opaque, mcbin.show(frame)
        return frame

    def table(self, operation, row=b"", body=None, **fields):
        reply = Reply(self.raw(TABLE, operation, row, body or pb.TableRequest(), **fields),
                      pb.TableReply)
        assert reply.status or reply.operation == operation, reply
        return reply

    def hbase(self, operation, row=b"", body=None, **fields):
        reply = Reply(self.raw(HBASE, operation, row, body or pb.HBaseRequest(), **fields),
                      pb.HBaseReply)
        assert reply.status or reply.operation == operation, reply
        return reply

    # -- TableAPI --

    def change(self, operation, row, columns, want=False):
        return self.table(operation, row, pb.TableRequest(entity=entity_of(columns),
                                                          return_entity=want))

    def insert(self, row, **columns):
        return self.change(T.INSERT, row, columns)

    def update(self, row, **columns):
        return self.change(T.UPDATE, row, columns)

    def put(self, row, **columns):
        return self.change(T.INSERT_OR_UPDATE, row, columns)

    def replace(self, row, **columns):
        return self.change(T.REPLACE, row, columns)

    def increment(self, row, want=True, **columns):
        return self.change(T.INCREMENT, row, columns, want)

    def append(self, row, want=True, **columns):
        return self.change(T.APPEND, row, columns, want)

    def delete(self, row):
        return self.table(T.DELETE, row)

    def get(self, row, *select):
        """{column: value}, or None when there is no row; fails on any error."""
        reply = self.table(T.GET, row, pb.TableRequest(select=[mcbin._b(s) for s in select]))
        assert reply.status == 0 and reply.affected == 0, reply
        return columns_of(reply.body.entity) if reply.body.HasField("entity") else None

    def batch(self, *items, atomic=False):
        return self.table(T.BATCH, b"", pb.TableRequest(items=items, atomic=atomic))

    @staticmethod
    def query_of(start=b"", end=b"", select=(), filter=None, **fields):
        query = pb.Query(select=[mcbin._b(s) for s in select],
                         **{k: v for k, v in fields.items() if not k.endswith("_exclusive")})
        query.range.start, query.range.end = mcbin._b(start), mcbin._b(end)
        query.range.start_exclusive = fields.get("start_exclusive", False)
        query.range.end_exclusive = fields.get("end_exclusive", False)
        if filter is not None:
            query.filter.CopyFrom(filter)
        return query

    def ask(self, *args, operation=T.QUERY, **fields):
        return self.table(operation, b"", pb.TableRequest(query=self.query_of(*args, **fields)))

    def query(self, *args, **fields):
        """[(row, {column: value})]; fails on any error."""
        reply = self.ask(*args, **fields)
        assert reply.status == 0, reply
        return rows_of(reply.body)

    def start(self, *args, **fields):
        return self.ask(*args, operation=T.QUERY_START, **fields)

    def next(self, session):
        return self.table(T.QUERY_NEXT, b"", pb.TableRequest(session=session))

    def end(self, session):
        return self.table(T.QUERY_END, b"", pb.TableRequest(session=session))

    # -- HBase --

    def hput(self, row, *cells):
        return self.hbase(H.PUT, row, pb.HBaseRequest(cells=cells))

    def hget(self, row, *columns, **fields):
        """[(column, timestamp, value)]; fails on any error."""
        reply = self.hbase(H.GET, row, pb.HBaseRequest(read=read_of(columns, **fields)))
        assert reply.status == 0, reply
        return cells_of(reply.body.cells)

    def hdelete(self, row, *deletions):
        return self.hbase(H.DELETE, row, pb.HBaseRequest(deletions=deletions))

    def hincrement(self, row, amounts):
        return self.hbase(H.INCREMENT, row, pb.HBaseRequest(counters=counters(amounts)))

    def happend(self, row, *cells):
        return self.hbase(H.APPEND, row, pb.HBaseRequest(cells=cells))

    def check(self, operation, row, column, op="EQUAL", expected=None, cells=(), deletions=()):
        family, qualifier = mcbin._b(column).split(b":", 1)
        request = pb.HBaseRequest(cells=cells, deletions=deletions)
        request.check.family, request.check.qualifier = family, qualifier
        request.check.op = getattr(pb, op)
        if expected is not None:
            request.check.value = mcbin._b(expected)
        return self.hbase(operation, row, request)

    def scan(self, start=b"", stop=b"", columns=(), read=None, **fields):
        request = pb.HBaseRequest(read=read_of(columns, **(read or {})))
        request.scan.CopyFrom(pb.Scan(start=mcbin._b(start), stop=mcbin._b(stop), **fields))
        return self.hbase(H.SCAN, b"", request)

    def scan_next(self, session):
        return self.hbase(H.SCAN_NEXT, b"", pb.HBaseRequest(session=session))

    def scan_end(self, session):
        return self.hbase(H.SCAN_END, b"", pb.HBaseRequest(session=session))


def rows_of(body):
    return [(row.row.decode(), columns_of(row.entity)) for row in body.rows]


def hrows_of(body):
    """[(row, {column: [values]})]"""
    return [(row.row.decode(), values_of(row.cells)) for row in body.rows]
