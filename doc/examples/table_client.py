#!/usr/bin/env python3
"""table_client - TableAPI and HBase requests to headgate from Python

Needs google.protobuf (Debian: python3-protobuf) and the messages, made by

    protoc --proto_path=proto --python_out=. table.proto

and is run as: table_client.py [HOST:PORT] [BUCKET]
"""
# SPDX-License-Identifier: BSD-3-Clause

import socket
import struct
import sys

import table_pb2 as pb

TABLE, HBASE = 0xE8, 0xE9                                      # opcodes
GET, INSERT, DELETE, INCREMENT, QUERY = 0, 1, 2, 6, 8          # operations of TABLE
HBASE_PUT, HBASE_GET, HBASE_CHECK_AND_PUT, HBASE_INCREMENT = 1, 5, 12, 16
SELECT_BUCKET = 0x89


class Refused(Exception):
    """The server answered with a status that is no success."""


class Client:
    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=10)

    def request(self, opcode, key=b"", extras=b"", value=b""):
        """One request of the memcached binary protocol: extras and value of the reply."""
        body = extras + key + value
        self.socket.sendall(struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0,
                                        len(body), 1, 0) + body)
        header = struct.unpack(">BBHBBHIIQ", self.receive(24))
        body = self.receive(header[6])
        extras, value = body[:header[3]], body[header[3] + header[2]:]
        if header[5] != 0:
            raise Refused("status 0x%02x: %s" % (header[5], value.decode(errors="replace")))
        return extras, value

    def receive(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("closed by the server")
            data += more
        return data

    def rows(self, opcode, operation, table, row, message):
        """One operation on rows: how many were affected, and the reply's message."""
        extras = struct.pack(">BBHI", operation, 0, len(table), 0)
        extras, value = self.request(opcode, table + row, extras, message.SerializeToString())
        reply = pb.TableReply if opcode == TABLE else pb.HBaseReply
        return struct.unpack(">BBHI", extras)[2], reply.FromString(value)


def column(name, **kind):
    """A column: integer=, real= or bytes=; null without any of them."""
    return pb.Column(name=name, value=pb.Value(**kind))


def show(entity):
    return ", ".join("%s=%r" % (c.name.decode(), getattr(c.value, c.value.WhichOneof("kind")))
                     for c in entity.columns)


def table_api(client):
    users = b"users"
    client.rows(TABLE, DELETE, users, b"alice", pb.TableRequest())

    row = pb.Entity(columns=[column(b"name", bytes=b"Alice"), column(b"visits", integer=1)])
    affected, _ = client.rows(TABLE, INSERT, users, b"alice", pb.TableRequest(entity=row))
    print("inserted:", affected)

    try:
        client.rows(TABLE, INSERT, users, b"alice", pb.TableRequest(entity=row))
    except Refused as refused:
        print("inserted again:", str(refused)[:12])

    add = pb.Entity(columns=[column(b"visits", integer=41)])
    _, reply = client.rows(TABLE, INCREMENT, users, b"alice",
                           pb.TableRequest(entity=add, return_entity=True))
    print("incremented:", show(reply.entity))

    _, reply = client.rows(TABLE, GET, users, b"alice", pb.TableRequest(select=[b"name"]))
    print("got:", show(reply.entity))

    _, reply = client.rows(TABLE, GET, users, b"nobody", pb.TableRequest())
    print("got nobody:", reply.HasField("entity"))

    # A range of one row needs no order of keys, so it works on every store.
    query = pb.Query(range=pb.Range(start=b"alice", end=b"alice"),
                     filter=pb.Filter(nodes=[pb.FilterNode(
                         kind=pb.FilterNode.SINGLE_COLUMN_VALUE, qualifier=b"visits",
                         op=pb.GREATER_OR_EQUAL, value=pb.Value(integer=40))]))
    _, reply = client.rows(TABLE, QUERY, users, b"", pb.TableRequest(query=query))
    for found in reply.rows:
        print("found:", found.row.decode(), show(found.entity))


def hbase(client):
    events = b"events"
    put = pb.HBaseRequest(cells=[pb.Cell(family=b"cf", qualifier=b"state", value=b"new")])
    client.rows(HBASE, HBASE_PUT, events, b"e1", put)

    change = pb.HBaseRequest(
        check=pb.Check(family=b"cf", qualifier=b"state", op=pb.EQUAL, value=b"new"),
        cells=[pb.Cell(family=b"cf", qualifier=b"state", value=b"done")])
    for _ in range(2):
        _, reply = client.rows(HBASE, HBASE_CHECK_AND_PUT, events, b"e1", change)
        print("checked and put:", reply.processed)

    count = pb.HBaseRequest(counters=[pb.Counter(family=b"cf", qualifier=b"n", amount=5)])
    _, reply = client.rows(HBASE, HBASE_INCREMENT, events, b"e1", count)
    print("counted by 5:", struct.unpack(">q", reply.cells[0].value)[0] >= 5)

    read = pb.HBaseRequest(read=pb.Read(columns=[pb.FamilyColumns(family=b"cf",
                                                                  qualifiers=[b"state"])]))
    _, reply = client.rows(HBASE, HBASE_GET, events, b"e1", read)
    for cell in reply.cells:
        print("cell: %s:%s = %s" % (cell.family.decode(), cell.qualifier.decode(),
                                    cell.value.decode()))


def main():
    host, _, port = (sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:11211").rpartition(":")
    client = Client(host, int(port))
    if len(sys.argv) > 2:
        client.request(SELECT_BUCKET, sys.argv[2].encode())
    table_api(client)
    hbase(client)


if __name__ == "__main__":
    main()
