"""mcbin - a precise client of the memcached binary protocol, for tests.

Nothing is hidden: every field of the header can be set to a value that is wrong on purpose, and
every reply is handed back as it came. The convenience calls at the end are made of `request`,
`send` and `recv` only. All waits are bounded; built.SCALE stretches the bounds.
"""
# SPDX-License-Identifier: BSD-3-Clause

import base64
import collections
import enum
import hashlib
import hmac
import json
import os
import socket
import struct
import time

from built import SCALE

# The least bound, in seconds, of a wait for a state. It asserts nothing about time.
PATIENCE = 30.0
HEADER = struct.Struct(">BBHBBHIIQ")
ALT_HEADER = struct.Struct(">BBBBBBHIIQ")
REQ, RES, ALT_REQ, ALT_RES = 0x80, 0x81, 0x08, 0x18


def scaled(seconds):
    """A time-out in seconds, stretched for slow machines."""
    return seconds * SCALE


class Op(enum.IntEnum):
    GET = 0x00
    SET = 0x01
    ADD = 0x02
    REPLACE = 0x03
    DELETE = 0x04
    INCR = 0x05
    DECR = 0x06
    QUIT = 0x07
    FLUSH = 0x08
    GETQ = 0x09
    NOOP = 0x0A
    VERSION = 0x0B
    GETK = 0x0C
    GETKQ = 0x0D
    APPEND = 0x0E
    PREPEND = 0x0F
    STAT = 0x10
    SETQ = 0x11
    ADDQ = 0x12
    REPLACEQ = 0x13
    DELETEQ = 0x14
    INCRQ = 0x15
    DECRQ = 0x16
    QUITQ = 0x17
    FLUSHQ = 0x18
    APPENDQ = 0x19
    PREPENDQ = 0x1A
    VERBOSITY = 0x1B
    TOUCH = 0x1C
    GAT = 0x1D
    GATQ = 0x1E
    HELLO = 0x1F
    SASL_LIST = 0x20
    SASL_AUTH = 0x21
    SASL_STEP = 0x22
    GATK = 0x23
    GATKQ = 0x24
    CONFIG_VALIDATE = 0x25
    CONFIG_RELOAD = 0x26
    SET_BUCKET_THROTTLE = 0x2A
    SET_BUCKET_DATA_LIMIT = 0x2B
    SET_NODE_THROTTLE = 0x2C
    SET_PARAM = 0x82
    CREATE_BUCKET = 0x85
    DELETE_BUCKET = 0x86
    LIST_BUCKETS = 0x87
    SELECT_BUCKET = 0x89
    BACKUP = 0xEA
    GET_CMD_TIMER = 0xF3
    DROP_PRIVILEGE = 0xFB
    GET_ERROR_MAP = 0xFE


class St(enum.IntEnum):
    OK = 0x00
    ENOENT = 0x01
    EEXISTS = 0x02
    E2BIG = 0x03
    EINVAL = 0x04
    NOT_STORED = 0x05
    DELTA_BADVAL = 0x06
    NO_BUCKET = 0x08
    WOULD_THROTTLE = 0x0C
    AUTH_ERROR = 0x20
    AUTH_CONTINUE = 0x21
    EACCESS = 0x24
    BUCKET_PAUSED = 0x50
    MAX_CONNECTIONS = 0x32
    UNKNOWN_FRAME_INFO = 0x80
    UNKNOWN_COMMAND = 0x81
    ENOMEM = 0x82
    NOT_SUPPORTED = 0x83
    EINTERNAL = 0x84
    EBUSY = 0x85
    ETMPFAIL = 0x86
    HOT_KEY = 0xFF01
    BIND_THROTTLE = 0xFF02
    BIND_EVICTION = 0xFF03
    QUEUE_FULL = 0xFF04
    QUEUE_TIMEOUT = 0xFF05
    BACKEND_DOWN = 0xFF06
    BACKEND_TIMEOUT = 0xFF07
    THROTTLED_TOO_LONG = 0xFF08


class Feature(enum.IntEnum):
    TCP_NODELAY = 0x03
    XERROR = 0x07
    SELECT_BUCKET = 0x08
    JSON = 0x0B
    TRACING = 0x0F
    ALT_REQUEST = 0x10
    REPORT_UNITS = 0x1A
    NON_BLOCKING = 0x1B


ALL_FEATURES = tuple(Feature)
QUIET_TO_LOUD = {
    Op.GETQ: Op.GET, Op.GETKQ: Op.GETK, Op.SETQ: Op.SET, Op.ADDQ: Op.ADD,
    Op.REPLACEQ: Op.REPLACE, Op.DELETEQ: Op.DELETE, Op.INCRQ: Op.INCR, Op.DECRQ: Op.DECR,
    Op.QUITQ: Op.QUIT, Op.FLUSHQ: Op.FLUSH, Op.APPENDQ: Op.APPEND, Op.PREPENDQ: Op.PREPEND,
    Op.GATQ: Op.GAT, Op.GATKQ: Op.GATK,
}

Frame = collections.namedtuple(
    "Frame", "magic opcode datatype status opaque cas framing extras key value")


class Closed(Exception):
    """The peer closed the connection where a frame was expected."""


def op_name(opcode):
    try:
        return Op(opcode).name
    except ValueError:
        return "0x%02x" % opcode


def show(frame):
    """A frame on one line, for assertion messages."""
    return "<%s status=0x%x opaque=0x%x cas=%d extras=%s key=%r value=%r>" % (
        op_name(frame.opcode), frame.status, frame.opaque, frame.cas, frame.extras.hex(),
        frame.key[:60], frame.value[:200])


def request(opcode, key=b"", value=b"", extras=b"", opaque=0, cas=0, vbucket=0, datatype=0,
            framing=b"", magic=None, key_len=None, extras_len=None, body_len=None):
    """The bytes of one request. *_len override what the header says, to tell lies."""
    key, value = _b(key), _b(value)
    if magic is None:
        magic = ALT_REQ if framing else REQ
    key_len = len(key) if key_len is None else key_len
    extras_len = len(extras) if extras_len is None else extras_len
    if body_len is None:
        body_len = len(framing) + len(extras) + len(key) + len(value)
    if magic in (ALT_REQ, ALT_RES):
        head = ALT_HEADER.pack(magic, opcode, len(framing), key_len, extras_len, datatype, vbucket,
                               body_len, opaque, cas)
    else:
        head = HEADER.pack(magic, opcode, key_len, extras_len, datatype, vbucket, body_len,
                           opaque, cas)
    return head + framing + extras + key + value


def response(opcode, status=0, key=b"", value=b"", extras=b"", opaque=0, cas=0):
    """The bytes of one reply: what a fake server sends."""
    key, value = _b(key), _b(value)
    return HEADER.pack(RES, opcode, len(key), len(extras), 0, status,
                       len(extras) + len(key) + len(value), opaque, cas) + extras + key + value


def parse(data):
    """(frame, rest) cut from the front of data, or (None, data) when it is not whole yet."""
    if len(data) < 24:
        return None, data
    magic = data[0]
    if magic in (ALT_REQ, ALT_RES):
        (_, opcode, framing_len, key_len, extras_len, datatype, status, body_len, opaque,
         cas) = ALT_HEADER.unpack_from(data)
    elif magic in (REQ, RES):
        (_, opcode, key_len, extras_len, datatype, status, body_len, opaque,
         cas) = HEADER.unpack_from(data)
        framing_len = 0
    else:
        raise AssertionError("not a frame: first bytes %s" % bytes(data[:24]).hex())
    if framing_len + key_len + extras_len > body_len:
        raise AssertionError("lengths of the reply contradict each other: %s"
                             % bytes(data[:24]).hex())
    if len(data) < 24 + body_len:
        return None, data
    at = 24
    parts = []
    for length in (framing_len, extras_len, key_len):
        parts.append(bytes(data[at:at + length]))
        at += length
    value = bytes(data[at:24 + body_len])
    return Frame(magic, opcode, datatype, status, opaque, cas, *parts, value), \
        data[24 + body_len:]


def frame_info(info_id, data):
    """One frame-info object, with the escapes of ids and lengths over 14."""
    head = bytearray([(min(info_id, 15) << 4) | min(len(data), 15)])
    if info_id >= 15:
        head.append(info_id - 15)
    if len(data) >= 15:
        head.append(len(data) - 15)
    return bytes(head) + data


def parse_framing(framing):
    """{id: bytes} of a reply's framing extras."""
    found, at = {}, 0
    while at < len(framing):
        info_id, length = framing[at] >> 4, framing[at] & 15
        at += 1
        if info_id == 15:
            info_id += framing[at]
            at += 1
        if length == 15:
            length += framing[at]
            at += 1
        found[info_id] = framing[at:at + length]
        at += length
    return found


def set_extras(flags=0, expiry=0):
    return struct.pack(">II", flags, expiry)


def counter_extras(delta, initial=0, expiry=0):
    return struct.pack(">QQI", delta, initial, expiry)


def _b(text):
    return text.encode() if isinstance(text, str) else bytes(text)


# ---- SCRAM (RFC 5802, RFC 7677), client side and the stored secrets ----

def scram_secret(password, mechanism="SCRAM-SHA-256", iterations=4096, salt=None):
    """A line for the users file: MECH$iterations:salt$stored_key:server_key."""
    name = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}[mechanism]
    salt = os.urandom(16) if salt is None else salt
    salted = hashlib.pbkdf2_hmac(name, _b(password), salt, iterations)
    client_key = hmac.new(salted, b"Client Key", name).digest()
    stored = hashlib.new(name, client_key).digest()
    server = hmac.new(salted, b"Server Key", name).digest()
    enc = lambda blob: base64.b64encode(blob).decode()
    return "%s$%d:%s$%s:%s" % (mechanism, iterations, enc(salt), enc(stored), enc(server))


class ScramClient:
    """One SCRAM conversation; `server_first` keeps what the server told about the user."""

    def __init__(self, user, password, mechanism="SCRAM-SHA-256", nonce=None):
        self.hash = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}[mechanism]
        self.user = user.replace("=", "=3D").replace(",", "=2C")
        self.password = password
        self.nonce = nonce or base64.b64encode(os.urandom(18)).decode()
        self.bare = "n=%s,r=%s" % (self.user, self.nonce)
        self.server_first = None
        self.salt = self.iterations = None
        self.server_signature = None

    def first(self):
        return ("n,," + self.bare).encode()

    def final(self, server_first):
        self.server_first = server_first.decode()
        fields = dict(part.split("=", 1) for part in self.server_first.split(","))
        assert fields["r"].startswith(self.nonce) and len(fields["r"]) > len(self.nonce), \
            "the server's nonce does not extend ours"
        self.salt = base64.b64decode(fields["s"])
        self.iterations = int(fields["i"])
        salted = hashlib.pbkdf2_hmac(self.hash, _b(self.password), self.salt, self.iterations)
        client_key = hmac.new(salted, b"Client Key", self.hash).digest()
        stored = hashlib.new(self.hash, client_key).digest()
        without_proof = "c=biws,r=" + fields["r"]
        auth = ",".join((self.bare, self.server_first, without_proof)).encode()
        signature = hmac.new(stored, auth, self.hash).digest()
        proof = bytes(a ^ b for a, b in zip(client_key, signature))
        server_key = hmac.new(salted, b"Server Key", self.hash).digest()
        self.server_signature = hmac.new(server_key, auth, self.hash).digest()
        return ("%s,p=%s" % (without_proof, base64.b64encode(proof).decode())).encode()

    def check(self, server_final):
        assert server_final.startswith(b"v="), "no server signature: %r" % server_final
        assert base64.b64decode(server_final[2:]) == self.server_signature, \
            "the server does not know the password"


# ---- connections ----

def connect_socket(address, timeout=PATIENCE, tls=None):
    """address: (host, port), or the path of a unix socket. tls: an SSLContext; then the peer must
    be called as the address has it."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(scaled(timeout))
        sock.connect(address)
    else:
        sock = socket.create_connection(address, timeout=scaled(timeout))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls is None:
        return sock
    try:
        return tls.wrap_socket(sock, server_hostname=address[0])
    except BaseException:
        sock.close()
        raise


class Client:
    """One connection. Opaques count up, so a reply that belongs to another request is noticed."""

    def __init__(self, address, timeout=PATIENCE, tls=None):
        self.address = address
        self.timeout = timeout
        self.sock = connect_socket(address, timeout, tls)
        self.buffer = bytearray()
        self.next_opaque = 0x10000

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        self.sock.close()

    def opaque(self):
        self.next_opaque = (self.next_opaque + 1) & 0xFFFFFFFF
        return self.next_opaque

    # -- bytes --

    def send(self, data):
        self.sock.settimeout(scaled(self.timeout))
        self.sock.sendall(data)

    def send_bytewise(self, data, chunk=1):
        """The same bytes in as many segments as there are chunks (TCP_NODELAY is on)."""
        for at in range(0, len(data), chunk):
            self.sock.sendall(data[at:at + chunk])

    def recv(self, timeout=None):
        """The next reply. Closed when the peer closed, TimeoutError when nothing came."""
        return self._recv(scaled(self.timeout if timeout is None else timeout))

    def _recv(self, seconds):
        deadline = time.monotonic() + seconds
        while True:
            frame, rest = self._cut()
            if frame is not None:
                return frame
            self._fill(deadline)

    def _cut(self):
        if len(self.buffer) < 24:
            return None, None
        body_len = struct.unpack_from(">I", self.buffer, 8)[0]
        if len(self.buffer) < 24 + body_len and self.buffer[0] in (RES, ALT_RES, REQ, ALT_REQ):
            return None, None
        frame, _ = parse(bytes(self.buffer[:24 + body_len]))
        del self.buffer[:24 + body_len]
        return frame, None

    def _fill(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no reply in time; %d bytes of one: %s"
                               % (len(self.buffer), bytes(self.buffer[:64]).hex()))
        self.sock.settimeout(left)
        try:
            data = self.sock.recv(1 << 18)
        except socket.timeout:
            raise TimeoutError("no reply in time; %d bytes of one: %s"
                               % (len(self.buffer), bytes(self.buffer[:64]).hex())) from None
        except ConnectionResetError:
            raise Closed("connection reset") from None
        if not data:
            raise Closed("closed by the peer, %d bytes left over" % len(self.buffer))
        self.buffer += data

    def recv_until_closed(self, timeout=None):
        """All replies up to the end of the stream; fails when the peer keeps it open."""
        frames = []
        try:
            while True:
                frames.append(self.recv(timeout))
        except Closed:
            assert not self.buffer, "half a reply before the end: %s" % bytes(self.buffer).hex()
            return frames

    def silent(self, seconds=0.1):
        """True when nothing arrives for so long, by the clock: nothing stretches it."""
        try:
            frame = self._recv(seconds)
        except TimeoutError:
            return True
        raise AssertionError("unexpected reply " + show(frame))

    # -- one request, one reply --

    def call(self, opcode, key=b"", value=b"", extras=b"", timeout=None, **fields):
        opaque = fields.pop("opaque", None)
        opaque = self.opaque() if opaque is None else opaque
        self.send(request(opcode, key, value, extras, opaque=opaque, **fields))
        frame = self.recv(timeout)
        assert frame.opcode == opcode and frame.opaque == opaque, \
            "asked %s opaque 0x%x, got %s" % (op_name(opcode), opaque, show(frame))
        return frame

    def ok(self, opcode, *args, **fields):
        frame = self.call(opcode, *args, **fields)
        assert frame.status == 0, show(frame)
        return frame

    def quiet(self, *requests):
        """Send requests followed by a NOOP in one go; the replies before the NOOP's."""
        mark = self.opaque()
        self.send(b"".join(requests) + request(Op.NOOP, opaque=mark))
        return self.replies_until(mark)

    def replies_until(self, mark, timeout=None):
        frames = []
        while True:
            frame = self.recv(timeout)
            if frame.opcode == Op.NOOP and frame.opaque == mark:
                assert frame.status == 0 and not frame.value, show(frame)
                return frames
            frames.append(frame)

    # -- the usual operations --

    def get(self, key, **fields):
        return self.call(Op.GET, key, **fields)

    def set(self, key, value, flags=0, expiry=0, **fields):
        return self.call(Op.SET, key, value, set_extras(flags, expiry), **fields)

    def add(self, key, value, flags=0, expiry=0, **fields):
        return self.call(Op.ADD, key, value, set_extras(flags, expiry), **fields)

    def replace(self, key, value, flags=0, expiry=0, **fields):
        return self.call(Op.REPLACE, key, value, set_extras(flags, expiry), **fields)

    def delete(self, key, **fields):
        return self.call(Op.DELETE, key, **fields)

    def incr(self, key, delta=1, initial=0, expiry=0, **fields):
        return self.call(Op.INCR, key, b"", counter_extras(delta, initial, expiry), **fields)

    def decr(self, key, delta=1, initial=0, expiry=0, **fields):
        return self.call(Op.DECR, key, b"", counter_extras(delta, initial, expiry), **fields)

    def touch(self, key, expiry, **fields):
        return self.call(Op.TOUCH, key, b"", struct.pack(">I", expiry), **fields)

    def gat(self, key, expiry, opcode=Op.GAT, **fields):
        return self.call(opcode, key, b"", struct.pack(">I", expiry), **fields)

    def noop(self, **fields):
        return self.ok(Op.NOOP, **fields)

    def version(self):
        return self.ok(Op.VERSION).value.decode()

    def stat(self, group="", timeout=None):
        """{name: value} of a group; fails unless exactly one empty packet ends it."""
        frames, frame = self.stat_frames(group, timeout)
        assert frame.status == 0, show(frame)
        return {f.key.decode("utf-8", "backslashreplace"): f.value.decode("utf-8", "backslashreplace")
                for f in frames}

    def stat_frames(self, group="", timeout=None):
        """(packets, last): last is the empty packet, or the error."""
        opaque = self.opaque()
        self.send(request(Op.STAT, group, opaque=opaque))
        frames = []
        while True:
            frame = self.recv(timeout)
            assert frame.opcode == Op.STAT and frame.opaque == opaque, show(frame)
            if frame.status or not frame.key:
                assert frame.status or not frame.value, show(frame)
                return frames, frame
            frames.append(frame)

    # -- identity --

    def hello(self, *features, agent=b"mcbin"):
        """The list of features granted."""
        wanted = struct.pack(">%dH" % len(features), *features)
        frame = self.ok(Op.HELLO, agent, wanted)
        return list(struct.unpack(">%dH" % (len(frame.value) // 2), frame.value))

    def sasl_plain(self, user, password, authzid=""):
        payload = b"\0".join((_b(authzid), _b(user), _b(password)))
        return self.call(Op.SASL_AUTH, b"PLAIN", payload)

    def sasl_scram(self, user, password, mechanism="SCRAM-SHA-256", scram=None):
        """The last frame; status 0 only when the server proved itself too."""
        scram = scram or ScramClient(user, password, mechanism)
        frame = self.call(Op.SASL_AUTH, mechanism, scram.first())
        if frame.status != St.AUTH_CONTINUE:
            return frame
        frame = self.call(Op.SASL_STEP, mechanism, scram.final(frame.value))
        if frame.status == St.AUTH_CONTINUE:
            scram.check(frame.value)
            return self.call(Op.SASL_STEP, mechanism, b"")
        if frame.status == 0:
            scram.check(frame.value)
        return frame

    def login(self, user, password, mechanism="PLAIN"):
        frame = self.sasl_plain(user, password) if mechanism == "PLAIN" \
            else self.sasl_scram(user, password, mechanism)
        assert frame.status == 0, show(frame)
        return self

    def select(self, bucket):
        return self.call(Op.SELECT_BUCKET, bucket)


def error_json(frame):
    """The JSON of an error reply."""
    try:
        return json.loads(frame.value)
    except ValueError:
        raise AssertionError("not JSON: " + show(frame)) from None


def error_context(frame):
    return error_json(frame)["error"]["context"]


def poll(question, timeout=PATIENCE, step=0.01, what="state", within=None):
    """Ask until the answer is truthy and return it; fail after the (scaled) time-out.

    timeout: a bound of the wait, and no less than PATIENCE. within: the time is what is tested, so
    it is taken as it is."""
    limit = scaled(max(timeout, PATIENCE) if within is None else within)
    deadline = time.monotonic() + limit
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, "%s was not reached within %.1f s" % (what, limit)
        time.sleep(step)
