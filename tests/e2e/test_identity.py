"""test_identity - logins, who may do what where, and names that do not exist."""
# SPDX-License-Identifier: BSD-3-Clause

import base64
import hashlib
import hmac
import threading
import time

import pytest

from mcbin import (Feature, Op, ScramClient, St, frame_info, poll, request, scaled,
                   scram_secret, set_extras, show)
from servers import Headgate, user_row

pytestmark = pytest.mark.threaded

BOTH = ("SCRAM-SHA-256", "SCRAM-SHA-1")
USERS = {
    "users": [
        user_row("shop", mechanisms=BOTH),
        user_row("ann", "s3cret, with=odd\u00e4 signs",
                 buckets={"shop": ["Read", "Write"], "default": ["Read"]}, mechanisms=BOTH),
        user_row("reader", buckets={"shop": ["Read"]}),
        user_row("writer", buckets={"shop": ["Write"]}),
        user_row("watcher", buckets={"*": ["Stats"]}),
        user_row("all", buckets={"*": ["Read", "Write", "Stats"]},
                 privileges=("Impersonate", "NodeSupervisor", "BucketThrottleManagement")),
        user_row("plain", buckets={"shop": ["Read", "Write"]}),
    ],
    "anonymous": {"bucket": "default", "privileges": ["Read", "Write"]},
}
CONFIG = {"upstreams": [{"name": "store", "kind": "embedded"}],
          "tenants": [{"name": "default"}, {"name": "shop"}, {"name": "other"}]}


def start(users=None, **options):
    return Headgate(dict(CONFIG, **options), users=users or USERS)


@pytest.fixture(scope="module")
def daemon():
    with start() as running:
        yield running


@pytest.fixture
def strict():
    """No anonymous section: nothing but a login before the login. Fresh, so that failures of one
    test do not slow down the next."""
    with start(users={"users": USERS["users"]}) as running:
        yield running


def logged_in(daemon, user, bucket=None, password="pw"):
    client = daemon.client()
    client.login(user, password)
    if bucket:
        frame = client.select(bucket)
        assert frame.status == 0, show(frame)
    return client


# ---- logins ----

@pytest.mark.parametrize("mechanism", ("PLAIN",) + BOTH)
def test_login(daemon, mechanism):
    with daemon.client() as client:
        names = client.ok(Op.SASL_LIST).value.split()
        assert mechanism.encode() in names, names
        client.login("ann", "s3cret, with=odd\u00e4 signs", mechanism)
        assert client.select("shop").status == 0
        assert client.set(b"k", b"v").status == 0


def test_listed_mechanisms_are_those_served(daemon):
    with daemon.client() as client:
        names = client.ok(Op.SASL_LIST).value.decode().split()
        assert set(names) == {"PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"}, names
        frame = client.call(Op.SASL_AUTH, b"CRAM-MD5", b"")
        assert frame.status in (St.AUTH_ERROR, St.EINVAL, St.NOT_SUPPORTED), show(frame)
        frame = client.call(Op.SASL_AUTH, b"SCRAM-SHA-256-PLUS", b"p=tls-unique,,n=ann,r=x")
        assert frame.status in (St.AUTH_ERROR, St.EINVAL, St.NOT_SUPPORTED), show(frame)
        client.noop()


def test_own_bucket_is_selected_at_login(daemon):
    with logged_in(daemon, "shop") as client:
        assert client.set(b"own", b"v").status == 0
    with logged_in(daemon, "reader", "shop") as client:
        assert client.get(b"own").value == b"v"
    with logged_in(daemon, "reader") as client:
        assert client.get(b"own").status == St.NO_BUCKET, "no bucket of that name, none selected"


@pytest.mark.parametrize("mechanism", ("PLAIN",) + BOTH)
def test_wrong_password(strict, mechanism):
    with strict.client() as client:
        frame = client.sasl_plain("ann", "wrong") if mechanism == "PLAIN" else \
            client.sasl_scram("ann", "wrong", mechanism)
        assert frame.status == St.AUTH_ERROR, show(frame)
        assert client.call(Op.GET, b"k").status == St.EACCESS
        client.login("shop", "pw")      # a second attempt on the same connection
        assert client.set(b"k", b"v").status == 0


def test_failed_login_takes_the_old_identity_away(strict):
    with logged_in(strict, "shop") as client:
        assert client.set(b"k", b"v").status == 0
        assert client.sasl_plain("shop", "wrong").status == St.AUTH_ERROR
        assert client.call(Op.SET, b"k", b"v", set_extras()).status in (St.EACCESS, St.NO_BUCKET)


@pytest.mark.parametrize("payload", [
    b"", b"\0", b"\0\0", b"\0shop", b"shop\0pw", b"\0shop\0", b"\0\0pw", b"other\0shop\0pw",
    b"\0shop\0pw\0", b"\0shop\0pw\0extra", b"\0" * 50, b"\xff" * 50, b"\0" + b"x" * 5000 + b"\0pw",
], ids=lambda p: repr(p[:20]))
def test_malformed_plain(payload):
    with start() as daemon, daemon.client() as client:
        frame = client.call(Op.SASL_AUTH, b"PLAIN", payload)
        assert frame.status == St.AUTH_ERROR, show(frame)
        assert client.login("shop", "pw")


def test_plain_with_equal_authzid(daemon):
    with daemon.client() as client:
        assert client.sasl_plain("shop", "pw", authzid="shop").status == 0


@pytest.mark.parametrize("messages", [
    [b""], [b"n,,"], [b"n,,n=ann"], [b"n,,r=x"], [b"y,,n=ann,r=abc", b"garbage"],
    [b"n,,n=ann,r=abcdef", b""], [b"n,,n=ann,r=abcdef", b"c=biws,r=wrong,p=AAAA"],
    [b"p=tls-unique,,n=ann,r=abcdef"], [b"n,a=shop,n=ann,r=abcdef", b"c=biws,r=abcdef,p=AAAA"],
    [b"\0" * 100], [b"n,,m=ext,n=ann,r=abc"],
], ids=lambda m: repr(m[0][:16]))
def test_malformed_scram(messages):
    with start() as daemon, daemon.client() as client:
        frame = client.call(Op.SASL_AUTH, b"SCRAM-SHA-256", messages[0])
        for message in messages[1:]:
            if frame.status == St.AUTH_CONTINUE:
                frame = client.call(Op.SASL_STEP, b"SCRAM-SHA-256", message)
        assert frame.status == St.AUTH_ERROR, show(frame)
        client.login("shop", "pw", "SCRAM-SHA-256")


def test_step_without_a_beginning(daemon):
    with daemon.client() as client:
        frame = client.call(Op.SASL_STEP, b"SCRAM-SHA-256", b"c=biws,r=x,p=AAAA")
        assert frame.status == St.AUTH_ERROR, show(frame)
        scram = ScramClient("shop", "pw")
        assert client.call(Op.SASL_AUTH, b"SCRAM-SHA-256", scram.first()).status \
            == St.AUTH_CONTINUE
        frame = client.call(Op.SASL_STEP, b"PLAIN", b"\0shop\0pw")
        assert frame.status == St.AUTH_ERROR, "another mechanism in the middle: " + show(frame)
    with daemon.client() as client:
        client.login("shop", "pw")


# ---- names that do not exist ----

@pytest.mark.parametrize("mechanism", BOTH)
def test_unknown_name_cannot_be_told_from_a_wrong_password(mechanism):
    """Same flow, same iterations, a salt that stays the same, of the usual length; another name has
    another salt; after a restart too the shape is the same."""
    with start() as daemon:
        def probe(name):
            with daemon.client() as client:
                scram = ScramClient(name, "wrong", mechanism)
                first = client.call(Op.SASL_AUTH, mechanism, scram.first())
                assert first.status == St.AUTH_CONTINUE, show(first)
                last = client.call(Op.SASL_STEP, mechanism, scram.final(first.value))
                return scram.salt, scram.iterations, last.status, last.value, last.datatype
        known = probe("ann")
        ghosts = [probe("nobody"), probe("nobody"), probe("somebody")]
        assert known[2] == St.AUTH_ERROR
        for ghost in ghosts:
            assert ghost[1:] == known[1:], (ghost, known)
            assert len(ghost[0]) == len(known[0])
        assert ghosts[0][0] == ghosts[1][0] != ghosts[2][0]
        reader = probe("reader")    # has no secret for SHA-1: as if it did not exist
        assert reader[1:] == known[1:]


def test_plain_takes_as_long_for_an_unknown_name():
    """Both derive a key: medians of interleaved attempts on daemons of their own (failures of one
    address are slowed down, so each attempt has a success behind it, which forgives). What counts
    is the processor time of the daemon, which nothing beside it changes."""
    def attempt(daemon, name):
        with daemon.client() as client:
            before = daemon.process.cpu_ns()
            assert client.sasl_plain(name, "wrong").status == St.AUTH_ERROR
            took = (daemon.process.cpu_ns() - before) / 1e9
            client.login("shop", "pw")
            return took
    iterations = 60000      # long enough to be told from noise
    users = [dict(user_row("shop")), {"name": "slow", "secrets": [scram_secret(
        "pw", iterations=iterations)], "buckets": {"shop": ["Read"]}}]
    with start(users={"users": users}) as daemon, start() as usual:
        assert attempt(daemon, "slow") > attempt(usual, "ann"), "the iterations are what takes time"
        known, ghost = [], []
        for number in range(15):
            known.append(attempt(usual, "ann"))
            ghost.append(attempt(usual, "nobody%d" % number))
        known.sort()
        ghost.sort()
        ratio = ghost[7] / known[7]
        assert 0.5 < ratio < 2, "unknown %.2f ms, known %.2f ms" % (ghost[7] * 1e3, known[7] * 1e3)


# ---- before login ----

def test_before_login(strict):
    with strict.client() as client:
        client.hello(Feature.JSON, Feature.XERROR)
        client.ok(Op.SASL_LIST)
        client.version()
        client.noop()
        client.ok(Op.GET_ERROR_MAP, value=b"\0\2")
        for op, key, value, extras in [
                (Op.GET, b"k", b"", b""), (Op.GETQ, b"k", b"", b""), (Op.SET, b"k", b"v", bytes(8)),
                (Op.FLUSH, b"", b"", b""), (Op.STAT, b"", b"", b""),
                (Op.SELECT_BUCKET, b"shop", b"", b""), (Op.LIST_BUCKETS, b"", b"", b""),
                (Op.SET_NODE_THROTTLE, b"", b"{}", b""), (Op.VERBOSITY, b"", b"", bytes(4)),
                (Op.GET_CMD_TIMER, b"", b"", b"\0"), (Op.DROP_PRIVILEGE, b"Read", b"", b"")]:
            frame = client.call(op, key, value, extras)
            assert frame.status == St.EACCESS, show(frame)
            assert frame.value and not frame.key and not frame.cas
        client.ok(Op.QUIT)


def test_frames_over_16_kib_before_login(strict):
    with strict.client() as client:
        client.send(request(Op.SET, b"k", extras=bytes(8), opaque=3, body_len=16385))
        frames = client.recv_until_closed()
        assert [(f.status, f.opaque) for f in frames] == [(St.E2BIG, 3)]
    with strict.client() as client:
        frame = client.call(Op.SET, b"k", b"v" * 16000, bytes(8))
        assert frame.status == St.EACCESS, show(frame)
        client.login("shop", "pw")
        assert client.set(b"k", b"v" * 100000).status == 0, "after the login more is allowed"


def test_anonymous_has_its_bucket_and_nothing_more(daemon):
    with daemon.client() as client:
        assert client.set(b"k", b"v").status == 0
        assert client.ok(Op.LIST_BUCKETS).value.split() == [b"default"]
        assert client.select("shop").status == St.EACCESS
        assert client.get(b"k").value == b"v", "a refused selection changes nothing"
        assert client.call(Op.SET_NODE_THROTTLE, b"", b"{}").status == St.EACCESS


# ---- buckets and privileges ----

def test_select_bucket(daemon):
    with logged_in(daemon, "ann", password="s3cret, with=odd\u00e4 signs") as client:
        assert client.call(Op.GET, b"k").status == St.NO_BUCKET
        assert client.select("shop").status == 0
        assert client.select("other").status == St.EACCESS
        frame = client.select("no such bucket")
        assert frame.status in (St.ENOENT, St.EACCESS), show(frame)
        assert client.set(b"k", b"v").status == 0, "still in shop"
        assert client.select("default").status == 0
        assert client.call(Op.SET, b"k", b"v", set_extras()).status == St.EACCESS, "Read only there"
    with logged_in(daemon, "all") as client:
        assert client.select("no_such_bucket").status == St.ENOENT


def test_list_buckets(daemon):
    for user, password, names in [("all", "pw", {"default", "shop", "other"}),
                                  ("watcher", "pw", {"default", "shop", "other"}),
                                  ("ann", "s3cret, with=odd\u00e4 signs", {"default", "shop"}),
                                  ("reader", "pw", {"shop"})]:
        with logged_in(daemon, user, password=password) as client:
            assert set(client.ok(Op.LIST_BUCKETS).value.decode().split()) == names, user


@pytest.mark.parametrize("user,may_read,may_write", [
    ("reader", True, False), ("writer", False, True), ("watcher", False, False),
    ("shop", True, True)])
def test_read_and_write(daemon, user, may_read, may_write):
    status = lambda allowed, good: good if allowed else {St.EACCESS}
    with logged_in(daemon, "shop") as owner, logged_in(daemon, user, "shop") as client:
        owner.set(b"rw", b"5")
        assert client.get(b"rw").status in status(may_read, {0})
        assert client.call(Op.GETQ, b"rw").status in status(may_read, {0})
        for op, value, extras in [(Op.SET, b"5", bytes(8)), (Op.APPEND, b"", b""),
                                  (Op.TOUCH, b"", bytes(4)), (Op.DELETE, b"", b"")]:
            assert client.call(op, b"rw", value, extras).status in status(may_write, {0}), op.name
        owner.set(b"rw", b"5")
        for op, extras in [(Op.GAT, bytes(4)), (Op.INCR, bytes(20))]:
            assert client.call(op, b"rw", b"", extras).status in status(
                may_read and may_write, {0}), op.name


def test_drop_privilege(daemon):
    with logged_in(daemon, "shop") as client:
        assert client.set(b"k", b"v").status == 0
        assert client.call(Op.DROP_PRIVILEGE, b"Write").status == 0
        assert client.call(Op.SET, b"k", b"v", set_extras()).status == St.EACCESS
        assert client.get(b"k").value == b"v"
        assert client.call(Op.DROP_PRIVILEGE, b"Nonsense").status in (St.EINVAL, St.ENOENT)
        assert client.call(Op.DROP_PRIVILEGE, b"Read").status == 0
        assert client.get(b"k").status == St.EACCESS
    with logged_in(daemon, "shop") as client:
        assert client.get(b"k").status == 0, "another connection keeps them"


def test_impersonation(daemon):
    act = lambda client, name, op=Op.GET, **more: client.call(
        op, b"k", framing=frame_info(4, name), **more)
    with logged_in(daemon, "shop") as owner:
        owner.set(b"k", b"v")
        assert act(owner, b"shop").status == St.EACCESS, "needs the privilege"
    with logged_in(daemon, "all", "shop") as client:
        assert act(client, b"reader").value == b"v"
        assert act(client, b"^reader").status in (0, St.EACCESS)
        assert act(client, b"reader", Op.SET, value=b"x", extras=bytes(8)).status == St.EACCESS, \
            "rights are the intersection"
        assert act(client, b"shop", Op.SET, value=b"x", extras=bytes(8)).status == 0
        assert act(client, b"nobody").status == St.EACCESS
        assert act(client, b"x" * 200).status == St.EACCESS
        assert client.select("other").status == 0
        assert act(client, b"reader").status == St.EACCESS, "reader has no access to this bucket"
        assert client.get(b"k").status == St.ENOENT, "the connection itself is as before"
        frames = client.quiet(request(Op.GETQ, b"k", framing=frame_info(4, b"reader"), opaque=9))
        assert [(f.opaque, f.status) for f in frames] == [(9, St.EACCESS)]


def test_impersonation_is_not_more_than_the_caller(daemon):
    users = {"users": [user_row("proxy", buckets={"shop": ["Read"]}, privileges=("Impersonate",)),
                       user_row("shop")]}
    with start(users=users) as other, logged_in(other, "proxy", "shop") as client:
        frame = client.call(Op.SET, b"k", b"v", bytes(8), framing=frame_info(4, b"shop"))
        assert frame.status == St.EACCESS, show(frame)


# ---- logins do not disturb ----

@pytest.mark.alone
def test_logins_do_not_stall_a_worker():
    """200 logins at once, each a key derivation of 5 ms or so: other clients' operations stay
    quick meanwhile, and every login is answered."""
    iterations = 12000
    users = {"users": [{"name": "heavy", "secrets": [scram_secret("pw", iterations=iterations)],
                        "buckets": {"shop": ["Read"]}}, user_row("shop")]}
    with start(users=users, login_queue=1000) as daemon:
        data = logged_in(daemon, "shop")
        clients = [daemon.client(timeout=60) for _ in range(200)]
        begun = time.monotonic()
        for client in clients:
            client.send(request(Op.SASL_AUTH, b"PLAIN", b"\0heavy\0pw", opaque=1))
        results = []

        def collect():
            for client in clients:
                results.append(client.recv().status)
        thread = threading.Thread(target=collect)
        thread.start()
        waits = []
        while thread.is_alive():
            before = time.monotonic()
            data.set(b"k", b"v")
            waits.append(time.monotonic() - before)
            time.sleep(0.002)
        thread.join()
        took = time.monotonic() - begun
        waits.sort()
        assert results.count(0) == 200, results
        assert len(waits) > 20 and took > 0.2
        # With two cores and two helpers busy an operation waits for a time slice, not for a login.
        assert waits[len(waits) // 2] < scaled(0.02), "median %.1f ms" % (waits[len(waits) // 2] * 1e3)
        assert waits[int(len(waits) * 0.95)] < scaled(0.1), waits[-5:]
        for client in clients:
            client.close()
        data.close()


def test_login_queue_is_bounded():
    users = {"users": [{"name": "heavy", "secrets": [scram_secret("pw", iterations=200000)],
                        "buckets": {"shop": ["Read"]}}, user_row("shop")]}
    with start(users=users, login_queue=4, max_login_helpers=1) as daemon:
        clients = [daemon.client(timeout=60) for _ in range(30)]
        for client in clients:
            client.send(request(Op.SASL_AUTH, b"PLAIN", b"\0heavy\0pw", opaque=1))
        statuses = [client.recv().status for client in clients]
        assert set(statuses) == {0, St.EBUSY}, statuses
        assert 1 <= statuses.count(0) <= 12, statuses
        for client in clients:
            client.close()


@pytest.mark.alone
def test_failed_logins_are_slowed_per_address():
    """After a few free failures each one takes longer; a success forgives."""
    with start() as daemon:
        waits = []
        for _ in range(7):
            with daemon.client() as client:
                begun = time.monotonic()
                assert client.sasl_plain("ann", "wrong").status == St.AUTH_ERROR
                waits.append(time.monotonic() - begun)
        assert max(waits[:3]) < scaled(0.1), waits
        assert min(waits[5:]) > 0.09, waits
        with daemon.client() as client:
            client.login("shop", "pw")
        with daemon.client() as client:
            begun = time.monotonic()
            assert client.sasl_plain("ann", "wrong").status == St.AUTH_ERROR
            assert time.monotonic() - begun < scaled(0.1)


def test_connection_gone_during_its_login():
    with start() as daemon:
        for _ in range(50):
            with daemon.client() as client:
                client.send(request(Op.SASL_AUTH, b"PLAIN", b"\0shop\0pw"))
        with logged_in(daemon, "all") as client:
            poll(lambda: int(client.stat()["curr_connections"]) <= 2, what="connections gone")


def test_requests_pipelined_behind_a_login(daemon):
    """They run as the user who logged in, not before."""
    with daemon.client() as client:
        client.send(request(Op.SASL_AUTH, b"PLAIN", b"\0shop\0pw", opaque=1)
                    + request(Op.SET, b"piped", b"v", set_extras(), opaque=2)
                    + request(Op.GET, b"piped", opaque=3))
        assert [(client.recv().status) for _ in range(3)] == [0, 0, 0]
    with logged_in(daemon, "reader", "shop") as client:
        assert client.get(b"piped").value == b"v", "it went to the user's bucket"


def test_secrets_of_the_test_library():
    """RFC 7677's example, so that the suite itself computes what others compute."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    scram = ScramClient("user", "pencil", nonce="rOprNGfwEbeRWgbNEkqO")
    final = scram.final(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
                        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert final.endswith(b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    scram.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    stored = base64.b64decode(scram_secret("pencil", salt=salt).split("$")[2].split(":")[0])
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    assert hashlib.sha256(hmac.new(salted, b"Client Key", "sha256").digest()).digest() == stored


# ---- rights in a bucket are rights in that bucket ----

def test_rights_do_not_reach_other_buckets():
    """Administration and statistics look at the bucket they speak of, not at the one selected."""
    users = dict(USERS, users=USERS["users"] + [
        user_row("tuner", buckets={"shop": ["Read", "BucketThrottleManagement", "Stats"]}),
        user_row("keeper", buckets={"shop": ["Read", "NodeSupervisor"]}),
        user_row("chief", buckets={"*": ["BucketThrottleManagement", "NodeSupervisor", "Stats"]}),
    ])
    limits = b'{"reserved":1,"hard_limit":2000}'
    with start(users=users) as daemon:
        tuner = logged_in(daemon, "tuner", "shop")
        assert tuner.call(Op.SET_BUCKET_THROTTLE, b"shop", limits).status == 0
        for bucket in (b"other", b"default", b"nobody"):
            assert tuner.call(Op.SET_BUCKET_THROTTLE, bucket, limits).status == St.EACCESS
            frame = tuner.call(Op.SET_BUCKET_DATA_LIMIT, bucket, extras=b"\0\x35")
            assert frame.status == St.EACCESS, show(frame)
        assert tuner.call(Op.SET_NODE_THROTTLE, b"", b'{"capacity":5}').status == St.EACCESS
        assert tuner.call(Op.SET_PARAM, b"tenant.shop.reserved", b"2").status == 0
        assert tuner.call(Op.SET_PARAM, b"tenant.other.reserved", b"2").status == St.EACCESS
        assert tuner.call(Op.SET_PARAM, b"node_capacity", b"2").status == St.EACCESS
        assert set(tuner.stat("buckets")) == {"shop"}
        for group in ("settings", "threads", "ops", "upstreams", "reset"):
            assert tuner.stat_frames(group)[1].status == St.EACCESS, group
        assert tuner.call(Op.GET_CMD_TIMER, extras=b"\0").status == St.EACCESS

        keeper = logged_in(daemon, "keeper", "shop")
        assert keeper.call(Op.DELETE_BUCKET, b"shop").status == St.EACCESS
        assert keeper.call(Op.CREATE_BUCKET, b"new", b"{}").status == St.EACCESS
        assert keeper.stat_frames("reset")[1].status == St.EACCESS

        chief = logged_in(daemon, "chief")
        assert chief.call(Op.SET_BUCKET_THROTTLE, b"other", limits).status == 0
        assert chief.call(Op.SET_NODE_THROTTLE, b"", b'{"capacity":50000}').status == 0
        assert {"shop", "other", "default"} <= set(chief.stat("buckets"))
        assert chief.stat("settings")["node_capacity"] == "50000"
        chief.call(Op.DROP_PRIVILEGE, b"NodeSupervisor")
        assert chief.call(Op.DELETE_BUCKET, b"shop").status == St.EACCESS
