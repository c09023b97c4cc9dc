"""test_admin - the administration opcodes: strict bodies, privileges, data ingress, buckets that
come and go, and settings that survive a restart."""
# SPDX-License-Identifier: BSD-3-Clause

import json
import struct

import pytest

from credit_tools import UNLIMITED, admin, details, enter, set_bucket, set_node, start
from mcbin import Feature, Op, St, counter_extras, error_json, request, set_extras, show
from servers import user_row

BUCKET = b"shop"


@pytest.fixture(scope="module")
def daemon():
    with start([{"name": "shop", "reserved": 100, "hard_limit": 1000}, {"name": "other"}],
               users=[user_row("manager", buckets={"shop": ["Read", "Write"]},
                               privileges=("BucketThrottleManagement",))]) as running:
        yield running


@pytest.fixture
def boss(daemon):
    client = admin(daemon, "shop")
    yield client
    client.close()


# ---- strict JSON ----

BAD_BODIES = [
    b"", b" ", b"x", b"[]", b"null", b"1", b'"unlimited"', b"{", b"}", b'{"%s":1', b'{"%s":1}x',
    b'{"%s":1}{}', b'{"%s":1} \0', b'{"%s":-1}', b'{"%s":1.0}', b'{"%s":1.5}', b'{"%s":1e3}',
    b'{"%s":"1"}', b'{"%s":"Unlimited"}', b'{"%s":""}', b'{"%s":null}', b'{"%s":true}',
    b'{"%s":[1]}', b'{"%s":{}}', b'{"%s":99999999999999999999}', b'{"%s":9223372036854775808}',
    b'{"%s":1,"%s":1}', b'{"%s":1,"%s":2}', b'{"unknown":1}', b'{"%s":1,"unknown":1}',
    b"{'%s':1}", b'{%s:1}', b'{"%s":0x10}', b'{"%s":01}', b'{"%s":1,}', b'\xef\xbb\xbf{"%s":1}',
    b'{"%s":"\xff"}', b'{"%s":1}' + b" " * 1024,
]


def bad_bodies(name):
    return [body.replace(b"%s", name) for body in BAD_BODIES]


@pytest.mark.parametrize("body", bad_bodies(b"reserved"), ids=lambda b: repr(b[:40]))
def test_bucket_properties_bad_bodies(boss, body):
    before = details(boss, "shop")
    frame = boss.call(Op.SET_BUCKET_THROTTLE, BUCKET, body)
    assert frame.status == St.EINVAL and frame.value, show(frame)
    if b'"reserved":' in body and body.count(b"{") == 1 and body.endswith(b"}"):
        assert b"reserved" in frame.value or b"unknown" in frame.value, show(frame)
    now = details(boss, "shop")
    for name in ("throttle_reserved", "throttle_hard_limit"):
        assert now[name] == before[name], "nothing changes unless all is valid"


@pytest.mark.parametrize("body", bad_bodies(b"capacity"), ids=lambda b: repr(b[:40]))
def test_node_properties_bad_bodies(boss, body):
    frame = boss.call(Op.SET_NODE_THROTTLE, b"", body)
    assert frame.status == St.EINVAL and frame.value, show(frame)


@pytest.mark.parametrize("body,key", [
    ({"reserved": 200, "hard_limit": 100}, "reserved"), ({"reserved": UNLIMITED, "hard_limit": 5},
                                                         "reserved"),
    ({"reserved": 10**13}, "reserved"), ({"hard_limit": -5}, "hard_limit"),
    ({"Reserved": 5}, "Reserved"),
], ids=str)
def test_offending_key_is_named(boss, body, key):
    frame = boss.call(Op.SET_BUCKET_THROTTLE, BUCKET, json.dumps(body))
    assert frame.status == St.EINVAL and key.encode() in frame.value, show(frame)
    boss.hello(Feature.JSON)
    frame = boss.call(Op.SET_BUCKET_THROTTLE, BUCKET, json.dumps(body), datatype=1)
    assert frame.status == St.EINVAL and key in error_json(frame)["error"]["context"], show(frame)


def test_bucket_properties_accepted(boss):
    """A missing key is its default; reserved = hard limit is legal; so is 0."""
    for body, reserved, hard in [
            ({"reserved": 5, "hard_limit": 5}, 5, 5), ({"reserved": 0, "hard_limit": 0}, 0, 0),
            ({"hard_limit": 100}, 0, 100), ({"reserved": 70}, 70, UNLIMITED), ({}, 0, UNLIMITED),
            ({"reserved": UNLIMITED, "hard_limit": UNLIMITED}, UNLIMITED, UNLIMITED),
            ({"reserved": UNLIMITED}, UNLIMITED, UNLIMITED),
            ({"reserved": 100, "hard_limit": 1000}, 100, 1000)]:
        set_bucket(boss, "shop", **body)
        row = details(boss, "shop")
        assert (row["throttle_reserved"], row["throttle_hard_limit"]) == (reserved, hard), body
    spaced = b' {\n "hard_limit" : 1000 ,\t"reserved" : 100 } '
    assert boss.call(Op.SET_BUCKET_THROTTLE, BUCKET, spaced).status == 0
    frame = boss.call(Op.SET_BUCKET_THROTTLE, b"nobody", b"{}")
    assert frame.status == St.ENOENT, show(frame)


def test_node_properties_accepted(boss):
    for body in ({"capacity": 0}, {"capacity": UNLIMITED}, {},
                 {"default_throttle_reserved_units": 5, "default_throttle_hard_limit": 5},
                 {"default_throttle_reserved_units": 0, "default_throttle_hard_limit": UNLIMITED}):
        set_node(boss, **body)
    frame = boss.call(Op.SET_NODE_THROTTLE, b"", json.dumps(
        {"default_throttle_reserved_units": 10, "default_throttle_hard_limit": 5}))
    assert frame.status == St.EINVAL, show(frame)


@pytest.mark.parametrize("body", bad_bodies(b"reserved")[1:] + [
    b'{"upstream":"nowhere"}', b'{"upstream":1}', b'{"reserved":10,"hard_limit":5}',
    b'{"reject_status":"nothing"}', b'{"credit_mode":1}', b'{"name":"x"}',
    b'{"reserved":1}' + b" " * 16384], ids=lambda b: repr(b[:40]))
def test_create_bucket_bad_bodies(boss, body):
    if len(body) == len(b'{"reserved":1}') + 1024:
        return      # 85 takes 16 KiB
    frame = boss.call(Op.CREATE_BUCKET, b"new", body)
    made = boss.call(Op.DELETE_BUCKET, b"new").status == 0
    assert frame.status == St.EINVAL and frame.value, show(frame)
    assert not made, "refused, and made all the same"


@pytest.mark.parametrize("name", [b"a b", b"a\0b", b"a/b", b"\xff", b"x" * 101])
def test_create_bucket_bad_names(boss, name):
    assert boss.call(Op.CREATE_BUCKET, name, b"{}").status == St.EINVAL


def test_create_and_delete_bucket(boss):
    frame = boss.call(Op.CREATE_BUCKET, b"fresh", b'{"reserved":7,"hard_limit":70}')
    assert frame.status == 0, show(frame)
    row = details(boss, "fresh")
    assert (row["throttle_reserved"], row["throttle_hard_limit"]) == (7, 70)
    for counter in ("ru", "wu", "num_throttled", "num_rejected", "throttle_wait_time"):
        assert row[counter] == 0, row
    assert boss.call(Op.CREATE_BUCKET, b"fresh", b"{}").status == St.EEXISTS
    assert b"fresh" in boss.ok(Op.LIST_BUCKETS).value.split()
    assert boss.select("fresh").status == 0
    assert boss.set(b"k", b"v").status == 0
    assert boss.call(Op.DELETE_BUCKET, b"fresh").status == 0
    assert boss.get(b"k").status == St.NO_BUCKET, "its connections have no bucket now"
    assert boss.call(Op.DELETE_BUCKET, b"fresh").status == St.ENOENT
    assert boss.stat_frames("bucket_details fresh")[1].status == St.ENOENT
    assert boss.select("shop").status == 0


# ---- privileges ----

def test_who_may_administrate(daemon):
    cases = [(Op.SET_BUCKET_THROTTLE, BUCKET, b'{"reserved":100,"hard_limit":1000}', b""),
             (Op.SET_BUCKET_DATA_LIMIT, BUCKET, b"", b"\0\0"),
             (Op.SET_NODE_THROTTLE, b"", b"{}", b""),
             (Op.CREATE_BUCKET, b"new", b"{}", b""), (Op.DELETE_BUCKET, b"other", b"", b""),
             (Op.CONFIG_VALIDATE, b"", b"threads: 1\n", b""), (Op.CONFIG_RELOAD, b"", b"", b""),
             (Op.VERBOSITY, b"", b"", b"\0\0\0\0"), (Op.STAT, b"reset", b"", b"")]
    with enter(daemon, "shop") as client:
        for op, key, value, extras in cases:
            frame = client.call(op, key, value, extras)
            assert frame.status == St.EACCESS, show(frame)
            assert frame.value, "the text says which privilege"
    with daemon.client() as client:
        client.login("manager", "pw")
        for op, key, value, extras in cases:
            frame = client.call(op, key, value, extras)
            throttle = op in (Op.SET_BUCKET_THROTTLE, Op.SET_BUCKET_DATA_LIMIT,
                              Op.SET_NODE_THROTTLE)
            assert frame.status == (0 if throttle else St.EACCESS), show(frame)


# ---- data ingress ----

@pytest.mark.parametrize("status", [0x35, 0x36, 0x37, 0x38])
def test_data_ingress(daemon, boss, status):
    with enter(daemon, "shop") as client, enter(daemon, "other") as other:
        client.set(b"there", b"1")
        frame = boss.call(Op.SET_BUCKET_DATA_LIMIT, BUCKET, extras=struct.pack(">H", status))
        assert frame.status == 0, show(frame)
        try:
            for op, value, extras in [(Op.SET, b"2", set_extras()), (Op.ADD, b"2", set_extras()),
                                      (Op.REPLACE, b"2", set_extras()), (Op.APPEND, b"2", b""),
                                      (Op.PREPEND, b"2", b""), (Op.INCR, b"", counter_extras(1)),
                                      (Op.SETQ, b"2", set_extras())]:
                frame = client.call(op, b"there", value, extras)
                assert frame.status == status, show(frame)
            assert client.get(b"there").value == b"1"
            assert other.set(b"k", b"v").status == 0
            assert client.delete(b"there").status == 0, "deleting is what helps"
            assert details(boss, "shop")["data_ingress_status"]
        finally:
            boss.call(Op.SET_BUCKET_DATA_LIMIT, BUCKET, extras=b"\0\0")
        assert client.set(b"there", b"1").status == 0


@pytest.mark.parametrize("status", [1, 0x24, 0x34, 0x39, 0x3500, 0xFFFF])
def test_data_ingress_other_statuses(boss, status):
    frame = boss.call(Op.SET_BUCKET_DATA_LIMIT, BUCKET, extras=struct.pack(">H", status))
    assert frame.status == St.EINVAL, show(frame)
    assert boss.call(Op.SET_BUCKET_DATA_LIMIT, b"nobody", extras=b"\0\0").status == St.ENOENT


# ---- defaults and restarts ----

def test_new_buckets_have_the_defaults_of_now():
    """Defaults changed by 2c hold for buckets made later."""
    with start([], default_throttle_reserved_units=1666) as daemon, admin(daemon) as boss:
        limits = lambda: tuple(details(boss, "made")[name] for name in
                               ("throttle_reserved", "throttle_hard_limit"))
        assert boss.call(Op.CREATE_BUCKET, b"made", b"{}").status == 0
        assert limits() == (1666, UNLIMITED)
        assert boss.call(Op.DELETE_BUCKET, b"made").status == 0
        set_node(boss, default_throttle_reserved_units=100, default_throttle_hard_limit=1000)
        assert boss.call(Op.CREATE_BUCKET, b"made", b"{}").status == 0
        assert limits() == (100, 1000)


def test_settings_survive_a_restart():
    with start([{"name": "shop", "hard_limit": 10}, {"name": "doomed"}]) as daemon:
        with admin(daemon) as boss:
            set_bucket(boss, "shop", reserved=11, hard_limit=111)
            set_node(boss, capacity=12345)
            assert boss.call(Op.CREATE_BUCKET, b"made", b'{"hard_limit":77}').status == 0
            assert boss.call(Op.DELETE_BUCKET, b"doomed").status == 0
            assert boss.call(Op.SET_BUCKET_DATA_LIMIT, b"shop", extras=b"\0\x36").status == 0
            assert boss.select("made").status == 0 and boss.set(b"k", b"kept").status == 0
        daemon.restart()
        with admin(daemon, "shop") as boss:
            row = details(boss, "shop")
            assert (row["throttle_reserved"], row["throttle_hard_limit"]) == (11, 111)
            assert details(boss, "made")["throttle_hard_limit"] == 77
            assert boss.set(b"k", b"v").status == 0x36
            names = boss.ok(Op.LIST_BUCKETS).value.split()
            assert b"made" in names and b"doomed" not in names, "deleted by opcode stays deleted"
            assert "12345" in json.dumps(boss.stat("settings")), "capacity"
            assert boss.select("made").status == 0 and boss.get(b"k").value == b"kept"
        assert "shop" in daemon.stderr(), "a warning names the lines that are overridden"


def test_state_that_cannot_be_written_changes_nothing():
    with start([{"name": "shop", "hard_limit": 10}], state_file="/proc/nowhere/state.json") \
            as daemon, admin(daemon) as boss:
        frame = boss.call(Op.SET_BUCKET_THROTTLE, b"shop", b'{"hard_limit":20}')
        assert frame.status == St.EINTERNAL, show(frame)
        assert details(boss, "shop")["throttle_hard_limit"] == 10


def test_flush_on_a_shared_upstream(farm):
    """Refused: it would empty other tenants' items; allowed where the file says so."""
    one = farm.servers(1)[0]
    config = {"upstreams": [{"name": "store", "kind": "memcached",
                             "servers": [{"address": one.where}]}]}
    with start([{"name": "a"}, {"name": "b"}], store=config) as daemon, enter(daemon, "a") as client:
        frame = client.call(Op.FLUSH)
        assert frame.status == St.NOT_SUPPORTED and frame.value, show(frame)
        client.noop()
    config["upstreams"][0]["allow_flush"] = True
    with start([{"name": "a"}, {"name": "b"}], store=config) as daemon, enter(daemon, "a") as client:
        assert client.call(Op.FLUSH).status == 0


def test_tenants_that_share_memcached_have_prefixes(farm):
    one = farm.servers(1)[0]
    config = {"upstreams": [{"name": "store", "kind": "memcached",
                             "servers": [{"address": one.where}]}]}
    with start([{"name": "a"}, {"name": "b", "key_prefix": "zz-"}], store=config) as daemon:
        with enter(daemon, "a") as a, enter(daemon, "b") as b, \
                type(a)(one.address) as direct:
            a.set(b"shared", b"of a")
            b.set(b"shared", b"of b")
            assert a.get(b"shared").value == b"of a" and b.get(b"shared").value == b"of b"
            assert a.call(Op.GETK, b"shared").key == b"shared", "no prefix in a reply"
            assert direct.get(b"a:shared").value == b"of a"
            assert direct.get(b"zz-shared").value == b"of b"
            frame = a.set(b"k" * 249, b"v")
            assert frame.status == St.EINVAL and b"250" in frame.value, show(frame)
            assert a.set(b"k" * 248, b"v").status == 0


def test_tenants_of_the_embedded_store_are_apart(daemon):
    with enter(daemon, "shop") as one, enter(daemon, "other") as two:
        one.set(b"same", b"1")
        two.set(b"same", b"2")
        assert one.get(b"same").value == b"1" and two.get(b"same").value == b"2"
        assert two.call(Op.FLUSH).status in (0, St.NOT_SUPPORTED)
        assert one.get(b"same").value == b"1", "a flush is one tenant's"


def test_config_validate_and_reload(daemon, boss):
    with open(daemon.config_path, "rb") as config:
        good = config.read()
    assert boss.call(Op.CONFIG_VALIDATE, value=good).status == 0
    frame = boss.call(Op.CONFIG_VALIDATE, value=b"threads: lots\n")
    assert frame.status == St.EINVAL and b"threads" in frame.value, show(frame)
    frame = boss.call(Op.CONFIG_VALIDATE, value=b"no_such_option: 1\n")
    assert frame.status == St.EINVAL and b"no_such_option" in frame.value, show(frame)
    assert boss.call(Op.CONFIG_RELOAD).status == 0


def test_quiet_requests_of_a_bucket_that_was_deleted(daemon, boss):
    assert boss.call(Op.CREATE_BUCKET, b"brief", b"{}").status == 0
    with admin(daemon, "brief") as client:
        assert boss.call(Op.DELETE_BUCKET, b"brief").status == 0
        frames = client.quiet(request(Op.SETQ, b"k", b"v", set_extras(), opaque=1),
                              request(Op.GETQ, b"k", opaque=2))
        assert [(f.opaque, f.status) for f in frames] == [(1, St.NO_BUCKET), (2, St.NO_BUCKET)]
