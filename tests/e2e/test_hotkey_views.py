"""test_hotkey_views - hot keys as users see them: rows, rights, and settings made at run time."""
# SPDX-License-Identifier: BSD-3-Clause

import json

import pytest

from credit_tools import admin, details, enter, start
from mcbin import Feature, Op, St, poll, request, show
from servers import Headgate, user_row

COLUMNS = {"TENANT", "TABLE", "SVR_IP", "SVR_PORT", "HOTKEY", "HOTKEY_TYPE", "HOTKEY_FREQ", "ERROR",
           "THROTTLE_PERCENT", "REJECTED"}
EPOCH_MS = 300


def begin(tenants, **options):
    return start(tenants, hotkey_epoch_ms=EPOCH_MS, **options)


def rows(client, group="hotkeys"):
    return [json.loads(value) for value in client.stat(group).values()]


def find(client, key, kind="ALL", group="hotkeys"):
    return next((row for row in rows(client, group) if row["HOTKEY"] == key and
                 row["HOTKEY_TYPE"] == "TABLE_HOTKEY_" + kind), None)


def flood(client, key, n):
    """How many of n gets had which status."""
    mark = client.opaque()
    client.send(b"".join(request(Op.GET, key, opaque=i) for i in range(n)) +
                request(Op.NOOP, opaque=mark))
    seen = {}
    for frame in client.replies_until(mark):
        seen[frame.status] = seen.get(frame.status, 0) + 1
    return seen


def make_hot(daemon, bucket, key, n=200):
    """Asks until the key is listed; the row."""
    with enter(daemon, bucket) as client:
        def listed():
            flood(client, key, n)
            row = find(client, key)
            return row if row and row["THROTTLE_PERCENT"] > 0 else None
        return poll(listed, what="%r is throttled" % key)


def test_rows():
    with begin([{"name": "shop"}], threads=2) as daemon, enter(daemon, "shop") as client:
        odd = b"a b\\\x01\xff\""
        for i in range(7):
            client.call(Op.GET, odd)
        client.set("plain", "v")

        def both():
            got = rows(client, "hotkeys history")
            freq = sum(row["HOTKEY_FREQ"] for row in got
                       if row["HOTKEY"] == "a b\\\\\\x01\\xff\"" and row["HOTKEY_TYPE"].endswith("QUERY"))
            return got if freq == 7 and any(row["HOTKEY"] == "plain" for row in got) else None
        got = poll(both, what="both keys in the history")
        for row in got:
            assert set(row) == COLUMNS | {"EPOCH", "END"}
            assert (row["TENANT"], row["TABLE"]) == ("shop", "")
            assert (row["SVR_IP"], row["SVR_PORT"]) == daemon.address
        assert {row["HOTKEY_TYPE"] for row in got if row["HOTKEY"] == "plain"} == {
            "TABLE_HOTKEY_ALL", "TABLE_HOTKEY_INSERT"}
        epochs = [row["EPOCH"] for row in got]
        assert epochs == sorted(epochs)


def test_a_listed_key_is_shown_until_it_is_released_and_reading_changes_nothing():
    with begin([{"name": "shop", "kv_hotkey_throttle_threshold": 20}]) as daemon:
        make_hot(daemon, "shop", "hot")
        with enter(daemon, "shop") as client:
            percents = []

            def released():
                row = find(client, "hot", group="hotkeys global shop")
                if row is None:
                    return True
                assert set(row) == COLUMNS
                percents.append(row["THROTTLE_PERCENT"])
                return False
            poll(released, what="the key has left the list")
            down = percents[percents.index(max(percents)):]
            assert down == sorted(down, reverse=True) and 10 in down


def test_own_tenant_only():
    people = [user_row("watch", buckets={"shop": ["Read", "Stats"]})]
    with begin([{"name": "shop", "kv_hotkey_throttle_threshold": 20},
                {"name": "other", "kv_hotkey_throttle_threshold": 20}], users=people) as daemon:
        make_hot(daemon, "shop", "mine")
        make_hot(daemon, "other", "theirs")
        with enter(daemon, "shop") as client, enter(daemon, "watch") as watch, \
                admin(daemon) as boss:
            for group in ("hotkeys", "hotkeys global", "hotkeys history"):
                assert {row["TENANT"] for row in rows(client, group)} <= {"shop"}
                assert {row["TENANT"] for row in rows(watch, group)} <= {"shop"}
            both = {row["TENANT"] for row in rows(boss, "hotkeys history")}
            assert both == {"shop", "other"}
            assert {row["TENANT"] for row in rows(boss, "hotkeys history other")} == {"other"}
            for who, name, status in ((client, "other", St.EACCESS), (client, "none", St.EACCESS),
                                      (watch, "other", St.EACCESS), (boss, "none", St.ENOENT)):
                for group in ("hotkeys ", "hotkeys global ", "hotkeys history "):
                    frames, last = who.stat_frames(group + name)
                    assert (frames, last.status) == ([], status), show(last)
            frames, last = client.stat_frames("hotkey_engine")
            assert last.status == St.EACCESS
            assert int(boss.stat("hotkey_engine")["epochs"]) > 0


def test_threshold_changed_at_run_time():
    with begin([{"name": "shop"}, {"name": "default"}]) as daemon, admin(daemon) as boss:
        with enter(daemon, "shop") as client:
            client.hello(Feature.XERROR)
            set_to = lambda text: boss.ok(Op.SET_PARAM, b"tenant.shop.kv_hotkey_throttle_threshold",
                                          text)
            assert flood(client, "hot", 500) == {St.ENOENT: 500}
            set_to(b"10")
            poll(lambda: 0xff01 in flood(client, "hot", 200), what="the first refusal")
            set_to(b"0")
            assert flood(client, "hot", 300) == {St.ENOENT: 300}, "at once, not with the epoch"
            poll(lambda: not any(row["THROTTLE_PERCENT"] for row in rows(client)), what="no throttle")
            # observe: all pass, and it is counted what would not have
            set_to(b"10")
            boss.ok(Op.SET_PARAM, b"tenant.shop.hotkey_mode", b"observe")

            def observed():
                assert flood(client, "hot", 200) == {St.ENOENT: 200}
                return details(boss, "shop")["hotkey_would_reject"] > 0
            poll(observed, what="something would have been refused")
            # it is kept over a restart
            assert details(boss, "shop")["hotkey_mode"] == "observe"
        daemon.restart()
        with admin(daemon) as again:
            got = details(again, "shop")
            assert (got["kv_hotkey_throttle_threshold"], got["hotkey_mode"]) == (10, "observe")
            settings = again.stat("settings")
            assert settings["tenant.shop.hotkey_mode"] == "observe", sorted(settings)
            again.ok(Op.SET_PARAM, b"tenant.shop.hotkey_mode", b"")
            assert details(again, "shop")["hotkey_mode"] == "enforce"


@pytest.mark.parametrize("option,value,says", [
    (b"hotkey_mode", b"on", b"(accepted: off, observe, enforce)"),
    (b"hotkey_control", b"dice", b"(accepted: step, proportional)"),
    (b"hotkey_tracking", b"1", b"(accepted: true, false)"),
    (b"kv_hotkey_throttle_threshold", b"-5", b"(accepted: 0 to 1000000000000000000"),
    (b"kv_hotkey_throttle_threshold", b"1" * 300, b"too long"),
    (b"hotkey_mode", b"off\0", b"zero byte"),
    (b"allow_flush", b"true", b"(accepted: reserved, hard_limit, state, credit_mode,"),
])
def test_bad_values(option, value, says):
    with begin([{"name": "shop"}]) as daemon, admin(daemon) as boss:
        frame = boss.call(Op.SET_PARAM, b"tenant.shop." + option, value)
        assert frame.status == St.EINVAL and says in frame.value, show(frame)
        frame = boss.call(Op.SET_PARAM, b"tenant.nobody." + option, value)
        assert frame.status == St.ENOENT, show(frame)


def test_who_may_set_it():
    people = [user_row("tuner", buckets={"shop": ["BucketThrottleManagement"]})]
    with begin([{"name": "shop"}, {"name": "other"}], users=people) as daemon:
        with daemon.client() as tuner, enter(daemon, "shop") as client:
            tuner.login("tuner", "pw")
            assert tuner.call(Op.SET_PARAM, b"tenant.shop.hotkey_mode", b"off").status == 0
            assert tuner.call(Op.SET_PARAM, b"tenant.other.hotkey_mode", b"off").status == St.EACCESS
            assert client.call(Op.SET_PARAM, b"tenant.shop.hotkey_mode", b"off").status == St.EACCESS


def test_a_bucket_made_and_deleted_while_epochs_end():
    with begin([{"name": "default"}], threads=2) as daemon, admin(daemon) as boss:
        for _ in range(4):
            boss.ok(Op.CREATE_BUCKET, b"brief", b'{"kv_hotkey_throttle_threshold":5}')
            with admin(daemon, b"brief") as client:
                assert rows(client, "hotkeys history brief") == []
                poll(lambda: flood(client, "k", 100) and rows(client, "hotkeys history brief"),
                     what="rows")
                boss.ok(Op.DELETE_BUCKET, b"brief")
        frames, last = boss.stat_frames("hotkeys brief")
        assert last.status == St.ENOENT
        epochs = int(boss.stat("hotkey_engine")["epochs"])
        poll(lambda: int(boss.stat("hotkey_engine")["epochs"]) > epochs + 1, what="further epochs")


def test_a_change_that_stops_halfway_says_what_is_set():
    with Headgate({"tenants": [{"name": "default"}]}) as daemon:
        done = daemon.ctl("set", "bucket", "default", "reserved=100", "hotkey_mode=off",
                          "hotkey_control=dice", "hotkey_tracking=false", check=False)
        assert done.returncode == 1
        assert "accepted: step, proportional" in done.stderr
        assert "stays: reserved, hotkey_mode\n" in done.stderr
        done = daemon.ctl("set", "bucket", "default", "hotkey_control=dice", check=False)
        assert done.returncode == 1 and "stays" not in done.stderr
