"""respbin - a small client of Redis' protocol (RESP2) for tests: it reads and writes what a server
behind headgate holds, and knows enough of the framing to stand between the two.

Replies: bytes for a bulk string, str for a status, int, None, list; an error is a RespError, which
`command` raises and `pipeline` returns in its place.
"""
# SPDX-License-Identifier: BSD-3-Clause

import time

from mcbin import PATIENCE, Closed, connect_socket, scaled


class RespError(Exception):
    """An error reply; `code` is its first word."""

    @property
    def code(self):
        return str(self).split(" ", 1)[0]


def _b(argument):
    if isinstance(argument, (int, float)):
        return str(argument).encode()
    return argument.encode() if isinstance(argument, str) else bytes(argument)


def encode(*arguments):
    """The bytes of one command."""
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in map(_b, arguments):
        parts.append(b"$%d\r\n%s\r\n" % (len(argument), argument))
    return b"".join(parts)


# ---- replies, as a fake server writes them ----

def status(text):
    return b"+" + _b(text) + b"\r\n"


def error(text):
    return b"-" + _b(text) + b"\r\n"


def integer(number):
    return b":%d\r\n" % number


def bulk(value):
    return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(_b(value)), _b(value))


def array(*encoded):
    return b"*%d\r\n" % len(encoded) + b"".join(encoded)


# ---- reading ----

def cut(data, at=0):
    """(value, end) of the value that begins at `at`, or (None, None) while it is not whole."""
    feed = data.find(b"\r\n", at)
    if feed < 0:
        return None, None
    kind, line, at = data[at:at + 1], bytes(data[at + 1:feed]), feed + 2
    if kind == b"+":
        return line.decode("utf-8", "backslashreplace"), at
    if kind == b"-":
        return RespError(line.decode("utf-8", "backslashreplace")), at
    if kind == b":":
        return int(line), at
    if kind == b"$":
        length = int(line)
        if length < 0:
            return None, at
        if len(data) < at + length + 2:
            return None, None
        assert data[at + length:at + length + 2] == b"\r\n", "no end after a bulk string"
        return bytes(data[at:at + length]), at + length + 2
    assert kind == b"*", "no RESP: %r" % bytes(data[at:at + 40])
    count, values = int(line), []
    if count < 0:
        return None, at
    for _ in range(count):
        value, at = cut(data, at)
        if at is None:
            return None, None
        values.append(value)
    return values, at


class Resp:
    """One connection to a Redis server."""

    def __init__(self, address, timeout=PATIENCE, user=None, password=None, database=0, tls=None):
        self.timeout = timeout
        self.sock = connect_socket(address, timeout, tls)
        self.buffer = bytearray()
        if password is not None:
            self.command("AUTH", *([user] if user else []), password)
        if database:
            self.command("SELECT", database)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, data):
        self.sock.settimeout(scaled(self.timeout))
        self.sock.sendall(data)

    def recv(self, timeout=None):
        """The next reply; an error reply is returned."""
        return self.recv_raw(timeout)[0]

    def recv_raw(self, timeout=None):
        """(value, bytes) of the next reply."""
        deadline = time.monotonic() + scaled(self.timeout if timeout is None else timeout)
        while True:
            value, end = cut(self.buffer)
            if end is not None:
                raw = bytes(self.buffer[:end])
                del self.buffer[:end]
                return value, raw
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no reply in time; %d bytes of one" % len(self.buffer))
            self.sock.settimeout(left)
            try:
                data = self.sock.recv(1 << 18)
            except ConnectionResetError:
                raise Closed("connection reset") from None
            if not data:
                raise Closed("closed by the peer, %d bytes left over" % len(self.buffer))
            self.buffer += data

    def command(self, *arguments, timeout=None):
        """One command; raises RespError."""
        self.send(encode(*arguments))
        value = self.recv(timeout)
        if isinstance(value, RespError):
            raise value
        return value

    def pipeline(self, commands, timeout=None):
        """The replies of many commands, sent in one go."""
        commands = list(commands)
        self.send(b"".join(encode(*command) for command in commands))
        return [self.recv(timeout) for _ in commands]

    def info(self, section="all"):
        """{name: value} of INFO."""
        text = self.command("INFO", section).decode("utf-8", "replace")
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def clients(self):
        """[{field: value}] of CLIENT LIST, without this connection."""
        mine = self.command("CLIENT", "ID")
        rows = [dict(word.split("=", 1) for word in line.split(" "))
                for line in self.command("CLIENT", "LIST").decode().splitlines()]
        return [row for row in rows if row["id"] != str(mine)]


# ---- slots of a cluster ----

def _crc16_table():
    table = []
    for byte in range(256):
        crc = byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
        table.append(crc & 0xFFFF)
    return table


_CRC16 = _crc16_table()
SLOTS = 16384


def slot_of(key):
    """The slot of a key: CRC16 (XMODEM) of it, or of what is between its first braces."""
    key = _b(key)
    open_at = key.find(b"{")
    if open_at >= 0:
        close_at = key.find(b"}", open_at + 1)
        if close_at > open_at + 1:
            key = key[open_at + 1:close_at]
    crc = 0
    for byte in key:
        crc = ((crc << 8) & 0xFFFF) ^ _CRC16[(crc >> 8) ^ byte]
    return crc % SLOTS
