"""test_hotkeys_views - what operators and tenants see of hot keys"""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import json

import pytest

import hotkey_tools as hot
from credit_tools import admin, details, enter
from hotkey_tools import (Heater, engine, heat_get, next_epoch, poll, rows_of,
                          rows_of_one_epoch, start, tenant, wait_listed)
from mcbin import Op, St, request, set_extras, show
from servers import user_row
from tablebin import Rows

pytestmark = pytest.mark.threaded
USERS = [user_row("plain", buckets={"shop": ["Read", "Write"]}),
         user_row("reader", buckets={"shop": ["Read"], "other": ["Read"]}),
         user_row("watch", buckets={"shop": ["Read", "Stats"]}),
         user_row("both", buckets={"shop": ["Read", "Stats"], "other": ["Stats"]}),
         user_row("seer", buckets={"*": ["Stats"]})]


@pytest.fixture(scope="module", params=("embedded2", "memcached"))
def daemon(request, farm):
    """Two tenants with a few keys, and epochs that are long enough to look at."""
    with start([tenant("shop"), tenant("other")], request.param, farm, epoch_ms=300,
               users=USERS) as made:
        made.kind = request.param
        yield made


@pytest.fixture
def boss(daemon):
    with contextlib.closing(admin(daemon)) as client:
        yield client


def keep_busy(daemon):
    """Both tenants get a key of their own all the time."""
    stack = contextlib.ExitStack()
    for name in ("shop", "other"):
        stack.enter_context(Heater(enter(daemon, name), [heat_get(b"of-" + name.encode())], 2))
    return stack


def tenants_in(client, view="hotkeys"):
    return {row["TENANT"] for row in rows_of(client, view)}


# ---- who sees what ----

@pytest.mark.parametrize("view", ("hotkeys", "hotkeys global", "hotkeys history"))
def test_own_tenant_only(daemon, boss, view):
    with keep_busy(daemon), enter(daemon, "plain") as plain, enter(daemon, "shop") as shop, \
            enter(daemon, "watch") as watch, enter(daemon, "both") as both, \
            enter(daemon, "seer") as seer:
        poll(lambda: tenants_in(boss) == {"shop", "other"}, 10, what="rows of both tenants")
        assert plain.select("shop").status == both.select("shop").status == 0
        assert watch.select("shop").status == 0
        assert poll(lambda: tenants_in(plain, view), 5) == {"shop"}, "without Stats its own"
        assert tenants_in(shop, view) == {"shop"}, "Stats on its own bucket"
        assert tenants_in(watch, view) == {"shop"}, "Stats on the one bucket it may read"
        assert tenants_in(both, view) == {"shop", "other"}, "Stats on two buckets"
        assert tenants_in(seer, view) == {"shop", "other"}, "Stats everywhere"
        assert tenants_in(boss, view) == {"shop", "other"}
        # Named.
        assert tenants_in(plain, view + " shop") == {"shop"}
        assert tenants_in(both, view + " other") == {"other"}
        assert tenants_in(seer, view + " shop") == {"shop"}
        for client, name, status in ((plain, "other", St.EACCESS), (shop, "other", St.EACCESS),
                                     (watch, "other", St.EACCESS), (plain, "nobody", St.EACCESS),
                                     (shop, "nobody", St.EACCESS), (boss, "nobody", St.ENOENT)):
            frames, last = client.stat_frames("%s %s" % (view, name))
            assert not frames and last.status == status, show(last)
            assert last.value, "it says why"


def test_own_tenant_only_of_throttled_keys():
    """Nor does anybody see another tenant's keys for their being throttled."""
    tenants = [tenant(name, 20) for name in ("shop", "other")]
    with start(tenants, users=USERS) as daemon, admin(daemon) as boss, \
            Heater(enter(daemon, "shop"), [heat_get(b"mine")]), \
            Heater(enter(daemon, "other"), [heat_get(b"theirs")]), \
            enter(daemon, "shop") as client, enter(daemon, "watch") as watch:
        for name in ("shop", "other"):
            wait_listed(boss, name)
        for view in ("hotkeys", "hotkeys global", "hotkeys history"):
            assert tenants_in(client, view) <= {"shop"} and tenants_in(watch, view) <= {"shop"}
        assert tenants_in(boss, "hotkeys history") == {"shop", "other"}
        assert tenants_in(boss, "hotkeys history other") == {"other"}


def test_who_sees_the_engine(daemon, boss):
    with enter(daemon, "shop") as client:
        frames, last = client.stat_frames("hotkey_engine")
        assert not frames and last.status == St.EACCESS, show(last)
    next_epoch(boss)
    assert engine(boss)["epochs"] > 0


def test_without_a_bucket(daemon, boss):
    """Who has selected none has no own tenant; Stats everywhere shows all, none shows nothing."""
    with keep_busy(daemon), daemon.client() as seer, daemon.client() as nobody:
        seer.login("seer", "pw")
        poll(lambda: tenants_in(seer) == {"shop", "other"}, 10, what="rows of both tenants")
        nobody.login("reader", "pw")
        assert tenants_in(nobody) == set(), "no bucket is selected, and there are two"
    with daemon.client() as client:
        assert tenants_in(client) == set(), "anonymous, in default"


@pytest.mark.parametrize("words", ("hotkeys ", "hotkeysx", "hotkeys history  ", "hotkeys globalx",
                                   "hotkeys shop history"))
def test_unknown_views(daemon, boss, words):
    frames, last = boss.stat_frames(words)
    assert last.status == St.ENOENT and not frames, show(last)
    assert boss.noop().status == 0


def test_a_tenant_named_like_a_view(farm):
    """A view's word is the view; its tenant of the same name is asked for behind it."""
    with start([tenant("history"), tenant("global")]) as daemon, admin(daemon) as boss, \
            enter(daemon, "history") as client:
        rows_of_one_epoch(boss, "history", lambda: client.get(b"k"))
        assert {row["TENANT"] for row in rows_of(boss, "hotkeys history history")} == {"history"}
        assert rows_of(boss, "hotkeys history global") == []


# ---- rows ----

def test_columns(daemon, boss):
    with keep_busy(daemon):
        rows = poll(lambda: rows_of(boss, "hotkeys shop"), 10)
    assert {row["HOTKEY_TYPE"] for row in rows} == {"TABLE_HOTKEY_ALL", "TABLE_HOTKEY_QUERY"}
    for row in rows:
        assert (row["TENANT"], row["TABLE"], row["HOTKEY"]) == ("shop", "", "of-shop"), row
        assert (row["SVR_IP"], row["SVR_PORT"]) == ("127.0.0.1", daemon.port), row
        assert row["HOTKEY_FREQ"] > 0 and row["ERROR"] == 0, row
        assert row["THROTTLE_PERCENT"] == row["REJECTED"] == 0, row


def test_rows_of_the_history(daemon, boss):
    """A key of odd bytes that is read, one that is written: the rows of both, in their order."""
    with enter(daemon, "shop") as client:
        def act():
            for _ in range(7):
                client.call(Op.GET, b"a b\\\x01\xff\"")
            client.set("written", "v")
        rows = rows_of_one_epoch(boss, "shop", act)
    assert hot.counts_of(rows) == {
        ("ALL", "", 'a b\\\\\\x01\\xff"'): 7, ("QUERY", "", 'a b\\\\\\x01\\xff"'): 7,
        ("ALL", "", "written"): 1, ("INSERT", "", "written"): 1}
    for row in rows:
        assert set(row) == hot.COLUMNS | {"EPOCH", "END", "TYPE"}
        assert (row["TENANT"], row["TABLE"]) == ("shop", "")
        assert (row["SVR_IP"], row["SVR_PORT"]) == daemon.address
    epochs = [row["EPOCH"] for row in rows_of(boss, "hotkeys history shop")]
    assert epochs == sorted(epochs)


def test_a_listed_key_is_shown_until_it_is_released():
    """Its percent goes down step by step while somebody looks all the time, and then it is gone."""
    with start([tenant("shop", 20)], epoch_ms=300) as daemon, admin(daemon) as boss, \
            enter(daemon, "shop") as client:
        with Heater(enter(daemon, "shop"), [heat_get(b"hot")]):
            wait_listed(boss, "shop")
        percents = []

        def released():
            row = next((row for row in rows_of(client, "hotkeys global shop")
                        if row["HOTKEY"] == "hot" and row["TYPE"] == "ALL"), None)
            if row is not None:
                percents.append(row["THROTTLE_PERCENT"])
            return row is None
        poll(released, what="the key has left the list")
        down = percents[percents.index(max(percents)):]
        assert down == sorted(down, reverse=True) and 10 in down, percents


def test_a_bucket_made_and_deleted_while_epochs_end():
    """Its namesake begins without rows, and epochs go on."""
    with start([tenant("shop")], "embedded2", epoch_ms=300) as daemon, admin(daemon) as boss:
        for _ in range(4):
            boss.ok(Op.CREATE_BUCKET, b"brief", b'{"kv_hotkey_throttle_threshold":5}')
            with admin(daemon, b"brief") as client:
                assert rows_of(client, "hotkeys history brief") == []
                poll(lambda: client.quiet(*[request(Op.GET, b"k")] * 100) and
                     rows_of(client, "hotkeys history brief"), what="rows")
                boss.ok(Op.DELETE_BUCKET, b"brief")
        _, last = boss.stat_frames("hotkeys brief")
        assert last.status == St.ENOENT, show(last)
        next_epoch(boss, 2)


def test_global_is_this_process(daemon, boss):
    with keep_busy(daemon):
        def same():
            before = engine(boss)["last_epoch"]
            one, two = rows_of(boss), rows_of(boss, "hotkeys global")
            return one and engine(boss)["last_epoch"] == before and one == two
        poll(same, 10, what="the same rows in both views")


def test_reading_changes_nothing(daemon, boss):
    """A hundred looks within an epoch, each with the same rows, none of them counted."""
    with enter(daemon, "shop") as client:
        def hundred():
            client.quiet(*[request(Op.GET, b"look%d" % n) for n in range(12) for _ in range(n + 1)])
            next_epoch(boss)
            before = engine(boss)
            counted = details(boss, "shop")["hotkey_counted"]
            looks = [rows_of(boss, view) for view in ("hotkeys shop", "hotkeys global shop")
                     for _ in range(50)]
            assert details(boss, "shop")["hotkey_counted"] == counted
            if engine(boss)["last_epoch"] != before["last_epoch"]:
                return False
            assert looks[0] and all(look == looks[0] for look in looks)
            return True
        poll(hundred, 30, what="a hundred looks in one epoch")


def test_history_keeps_ten_epochs(daemon, boss):
    with keep_busy(daemon):
        first = next_epoch(boss)
        next_epoch(boss, 12)

        def full():
            """Rows of ten epochs; there are fewer while this machine kept nothing busy in one."""
            rows = rows_of(boss, "hotkeys history shop")
            epochs = [row["EPOCH"] for row in rows]
            assert epochs == sorted(epochs), "oldest first"
            assert max(epochs) - min(epochs) <= 9 and min(epochs) > first
            return rows if len(set(epochs)) == 10 else None
        rows = poll(full, what="ten epochs with rows")
        again = rows_of(boss, "hotkeys history shop")
    ends = [row["END"] for row in rows]
    assert ends == sorted(ends)
    # What was told of an epoch stays as it is.
    kept = {(row["EPOCH"], row["TYPE"]): row for row in rows}
    for row in again:
        assert kept.get((row["EPOCH"], row["TYPE"]), row) == row


def test_an_idle_tenant_leaves_the_views(daemon, boss):
    with enter(daemon, "other") as client:
        rows_of_one_epoch(boss, "other", lambda: client.get(b"once"))
        next_epoch(boss)
        assert rows_of(boss, "hotkeys other") == [], "nothing in the last epoch"
        assert any(row["HOTKEY"] == "once" for row in rows_of(boss, "hotkeys history other"))
        next_epoch(boss, 10)
        assert rows_of(boss, "hotkeys history other") == []


# ---- keys of all bytes ----

KEYS = {b"a\0b": "a\\x00b", b'quo"te\'s': 'quo"te\'s', b"\xff\xfe": "\\xff\\xfe",
        b"back\\slash": "back\\\\slash", b"new\r\nline\t": "new\\x0d\\x0aline\\x09",
        "schlüssel".encode(): "schl\\xc3\\xbcssel", b"with space": "with space",
        b"{json}": "{json}"}
LONG = b"L" * 250


def test_escaped_keys(daemon, boss):
    keys = dict(KEYS)
    if daemon.kind != "memcached":  # which has 250 bytes for the key and its tenant's prefix
        keys[LONG] = LONG.decode()
        keys[b"\xff" * 250] = "\\xff" * 250
    with enter(daemon, "shop") as client:
        rows = rows_of_one_epoch(boss, "shop", lambda: client.quiet(
            *[request(Op.GET, key) for key in keys]))
    for kind in ("ALL", "QUERY"):
        assert {row["HOTKEY"] for row in rows if row["TYPE"] == kind} == set(keys.values())
    assert all(row["HOTKEY_FREQ"] == 1 for row in rows)


def test_long_keys_that_differ_in_their_last_byte(daemon, boss):
    length = 250 if daemon.kind != "memcached" else 200
    one, two = b"l" * (length - 1) + b"1", b"l" * (length - 1) + b"2"
    with enter(daemon, "shop") as client:
        found = hot.counts_of(rows_of_one_epoch(boss, "shop", lambda: client.quiet(
            *[request(Op.GET, one)] * 3, *[request(Op.GET, two)] * 2)))
    assert found == {(kind, "", key.decode()): count for kind in ("ALL", "QUERY")
                     for key, count in ((one, 3), (two, 2))}


def test_escaped_tables_and_rows(daemon, boss):
    with enter(daemon, "shop") as client:
        rows = Rows(client, b'ta"b\\le\xff')
        found = hot.counts_of(rows_of_one_epoch(boss, "shop", lambda: rows.get(b"r\0w\x7f")))
    name = ('ta"b\\\\le\\xff', "r\\x00w\\x7f")
    assert found == {("ALL", *name): 1, ("QUERY", *name): 1}


# ---- headgatectl ----

def test_ctl_text(daemon, boss):
    with enter(daemon, "shop") as client, enter(daemon, "other") as other:
        def shown():
            next_epoch(boss)
            client.quiet(request(Op.GET, b"a\0b"), request(Op.GET, b"a\0b"),
                         request(Op.SET, b"it", b"v", set_extras()))
            other.get(b"else")
            next_epoch(boss)
            lines = hot.ctl(daemon, "hotkeys").stdout.splitlines()
            return lines if len(lines) == 7 else None
        lines = poll(shown, 30, what="one epoch with all of them")
    head = lines[0].split()
    assert head == ["TENANT", "TABLE", "SVR_IP", "SVR_PORT", "HOTKEY", "HOTKEY_TYPE", "HOTKEY_FREQ",
                    "ERROR", "THROTTLE_PERCENT", "REJECTED"]
    found = sorted((line.split()[0], *line.split()[-6:-3]) for line in lines[1:])
    assert found == sorted([
        ("other", "else", "TABLE_HOTKEY_ALL", "1"), ("other", "else", "TABLE_HOTKEY_QUERY", "1"),
        ("shop", "a\\x00b", "TABLE_HOTKEY_ALL", "2"),
        ("shop", "a\\x00b", "TABLE_HOTKEY_QUERY", "2"),
        ("shop", "it", "TABLE_HOTKEY_ALL", "1"), ("shop", "it", "TABLE_HOTKEY_INSERT", "1")]), lines
    assert len({line.index("TABLE_HOTKEY_") for line in lines[1:]}) == 1, "columns are aligned"


def test_ctl_json_and_filters(daemon, boss):
    with keep_busy(daemon), Heater(enter(daemon, "shop"), [hot.heat_set(b"of-shop")], 2):
        def rows(*args, user="admin"):
            return json.loads(hot.ctl(daemon, "--json", "hotkeys", *args, user=user).stdout)
        poll(lambda: len(rows()) == 5, 15, what="both tenants' rows")
        assert set(rows()[0]) == hot.COLUMNS
        assert {row["TENANT"] for row in rows("--tenant", "shop")} == {"shop"}
        assert {row["HOTKEY_TYPE"] for row in rows("--type", "query")} == {"TABLE_HOTKEY_QUERY"}
        assert {row["HOTKEY_TYPE"] for row in rows("--type", "TABLE_HOTKEY_INSERT")} == \
            {"TABLE_HOTKEY_INSERT"}
        assert {row["TENANT"] for row in rows("--global", "--type", "all")} == {"shop", "other"}
        assert {row["TENANT"] for row in rows(user="shop")} == {"shop"}
        poll(lambda: len({row["EPOCH"] for row in rows("--history")}) >= 3, 15)
        history = rows("--history", "--tenant", "other", "--type", "all")
        assert set(history[0]) == hot.COLUMNS | {"EPOCH", "END"}
        assert [row["EPOCH"] for row in history] == sorted(row["EPOCH"] for row in history)
        lines = hot.ctl(daemon, "hotkeys", "--history").stdout.splitlines()
        assert lines[0].split()[:3] == ["EPOCH", "END", "TENANT"]
        done = hot.ctl(daemon, "hotkeys", "--tenant", "other", user="shop", check=False)
        assert done.returncode == 1 and done.stderr, done
        done = hot.ctl(daemon, "hotkeys", "--tenant", "nobody", check=False)
        assert done.returncode == 1 and "nobody" in done.stderr + done.stdout, done
