"""test_hotkeys_views - what operators and tenants see of hot keys, and the options that they set"""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import json

import pytest

import hotkey_tools as hot
from credit_tools import admin, details, enter
from hotkey_tools import (Heater, engine, heat_get, listed, next_epoch, poll, rows_of,
                          rows_of_one_epoch, set_param, start, tenant, until_refused, wait_listed)
from mcbin import Op, St, request, set_extras, show
from servers import user_row
from tablebin import Rows

PASSWORD = {"HEADGATE_PASSWORD": "pw"}
USERS = [user_row("plain", buckets={"shop": ["Read", "Write"]}),
         user_row("reader", buckets={"shop": ["Read"], "other": ["Read"]}),
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
            enter(daemon, "both") as both, enter(daemon, "seer") as seer:
        poll(lambda: tenants_in(boss) == {"shop", "other"}, 10, what="rows of both tenants")
        assert plain.select("shop").status == both.select("shop").status == 0
        assert poll(lambda: tenants_in(plain, view), 5) == {"shop"}, "without Stats its own"
        assert tenants_in(shop, view) == {"shop"}, "Stats on its own bucket"
        assert tenants_in(both, view) == {"shop", "other"}, "Stats on two buckets"
        assert tenants_in(seer, view) == {"shop", "other"}, "Stats everywhere"
        assert tenants_in(boss, view) == {"shop", "other"}
        # Named.
        assert tenants_in(plain, view + " shop") == {"shop"}
        assert tenants_in(both, view + " other") == {"other"}
        assert tenants_in(seer, view + " shop") == {"shop"}
        for client, name, status in ((plain, "other", St.EACCESS), (shop, "other", St.EACCESS),
                                     (plain, "nobody", St.EACCESS), (boss, "nobody", St.ENOENT)):
            frames, last = client.stat_frames("%s %s" % (view, name))
            assert not frames and last.status == status, show(last)
            assert last.value, "it says why"


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
        rows = rows_of(boss, "hotkeys history shop")
        again = rows_of(boss, "hotkeys history shop")
    epochs = [row["EPOCH"] for row in rows]
    assert epochs == sorted(epochs), "oldest first"
    assert len(set(epochs)) == 10 and max(epochs) - min(epochs) == 9 and min(epochs) > first
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

def ctl(daemon, *args, user="admin", check=True):
    return daemon.ctl(*args, user=user, env=PASSWORD, check=check)


def test_ctl_text(daemon, boss):
    with enter(daemon, "shop") as client, enter(daemon, "other") as other:
        def shown():
            next_epoch(boss)
            client.quiet(request(Op.GET, b"a\0b"), request(Op.GET, b"a\0b"),
                         request(Op.SET, b"it", b"v", set_extras()))
            other.get(b"else")
            next_epoch(boss)
            lines = ctl(daemon, "hotkeys").stdout.splitlines()
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
            return json.loads(ctl(daemon, "--json", "hotkeys", *args, user=user).stdout)
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
        lines = ctl(daemon, "hotkeys", "--history").stdout.splitlines()
        assert lines[0].split()[:3] == ["EPOCH", "END", "TENANT"]
        done = ctl(daemon, "hotkeys", "--tenant", "other", user="shop", check=False)
        assert done.returncode == 1 and done.stderr, done
        done = ctl(daemon, "hotkeys", "--tenant", "nobody", check=False)
        assert done.returncode == 1 and "nobody" in done.stderr + done.stdout, done


# ---- options ----

OPTION = "kv_hotkey_throttle_threshold"


def heater_on(daemon, name="shop", key=b"hot"):
    return Heater(enter(daemon, name), [heat_get(key)], burst=12, every_s=0.02)


@pytest.fixture
def tuned():
    """One tenant whose threshold is set at run time, with epochs of 200 ms."""
    with start([tenant("shop", 0, "proportional")], "embedded2") as made:
        yield made


def all_pass(daemon, name="shop", key=b"hot", count=300):
    """Every one of so many requests passes, on each worker."""
    for client in enter(daemon, name, 3):
        answers = client.quiet(*[request(Op.GET, key, opaque=n) for n in range(count)])
        client.close()
        assert len(answers) == count and {f.status for f in answers} <= {0, St.ENOENT}


def is_refused(frame):
    return frame.status == St.ETMPFAIL


def one_refused(daemon, name="shop", key=b"hot"):
    with enter(daemon, name) as client:
        until_refused(lambda: client.get(key), is_refused, tries=20000)


def test_threshold_at_run_time(tuned):
    with heater_on(tuned) as heater, admin(tuned) as boss:
        next_epoch(boss, 3)
        assert heater.refused == 0 and listed(boss, "shop") == [], "0: ranked, never throttled"
        assert rows_of(boss, "hotkeys shop")[0]["HOTKEY"] == "hot"
        set_param(boss, "shop", OPTION, 20)
        wait_listed(boss, "shop", at_least=50)
        one_refused(tuned)
        assert details(boss, "shop")[OPTION] == 20
        # 0 stops enforcement at once: after its answer nothing is refused, and the list is emptied.
        set_param(boss, "shop", OPTION, 0)
        all_pass(tuned)
        rejected = details(boss, "shop")["hotkey_rejected"]
        next_epoch(boss, 2)
        assert listed(boss, "shop") == []
        assert details(boss, "shop")["hotkey_rejected"] == rejected > 0
        # A threshold above what is asked for releases the key, too.
        set_param(boss, "shop", OPTION, 20)
        wait_listed(boss, "shop", at_least=50)
        set_param(boss, "shop", OPTION, 10 ** 18)
        poll(lambda: listed(boss, "shop") == [], 10, what="an empty list")
        all_pass(tuned, count=50)


@pytest.mark.parametrize("option, value, back", (("hotkey_mode", "off", "enforce"),
                                                 ("hotkey_tracking", "false", "true")))
def test_switched_off_at_run_time(tuned, option, value, back):
    with heater_on(tuned), admin(tuned) as boss:
        set_param(boss, "shop", OPTION, 20)
        wait_listed(boss, "shop", at_least=50)
        set_param(boss, "shop", option, value)
        all_pass(tuned)
        next_epoch(boss, 2)
        assert listed(boss, "shop") == []
        counted = details(boss, "shop")["hotkey_counted"]
        next_epoch(boss, 2)
        if option == "hotkey_tracking":
            assert details(boss, "shop")["hotkey_counted"] == counted, "nothing is counted"
            assert rows_of(boss, "hotkeys shop") == []
        else:
            assert details(boss, "shop")["hotkey_counted"] > counted, "still ranked"
            assert rows_of(boss, "hotkeys shop")[0]["HOTKEY"] == "hot"
        set_param(boss, "shop", option, back)
        wait_listed(boss, "shop", at_least=50)
        one_refused(tuned)


def test_observe(tuned):
    """Decides, lists and counts what it would have refused, and refuses nothing."""
    with admin(tuned) as boss:
        set_param(boss, "shop", "hotkey_mode", "observe")
        set_param(boss, "shop", OPTION, 20)
        with heater_on(tuned) as heater:
            wait_listed(boss, "shop", at_least=50)
            before = details(boss, "shop")["hotkey_would_reject"]
            poll(lambda: details(boss, "shop")["hotkey_would_reject"] > before + 100, 10,
                 what="refusals that were not")
            assert heater.refused == 0
            found = details(boss, "shop")
            assert found["hotkey_rejected"] == found["outcomes"]["hot_key"] == 0
            # They would be about the share that is shown, of what is admitted, which is all.
            poll(lambda: [row for row in listed(boss, "shop", 75) if row["HOTKEY_FREQ"] >= 80], 10,
                 what="a share of all")
            set_param(boss, "shop", "hotkey_mode", "enforce")
            one_refused(tuned)


def test_control_at_run_time(tuned):
    """step begins at ten percent, and goes on from where proportional was."""
    with admin(tuned) as boss:
        set_param(boss, "shop", "hotkey_control", "step")
        set_param(boss, "shop", OPTION, 20)
        with heater_on(tuned):
            rows = wait_listed(boss, "shop")
            assert rows[0]["THROTTLE_PERCENT"] % 10 == 0
            set_param(boss, "shop", "hotkey_control", "proportional")
            # 120 an epoch are offered and 20 allowed.
            poll(lambda: [row for row in listed(boss, "shop") if 70 <= row["THROTTLE_PERCENT"] <= 90
                          and row["HOTKEY_FREQ"] <= 30], 10, what="the proportional share")
    assert details_after(tuned)["hotkey_control"] == "proportional"


def details_after(daemon, name="shop"):
    with admin(daemon) as boss:
        return details(boss, name)


SETTINGS = {OPTION: (77, "77"), "hotkey_mode": ("observe", "observe"),
            "hotkey_control": ("step", "step"), "hotkey_tracking": (False, "false")}
DEFAULTS = {OPTION: 0, "hotkey_mode": "enforce", "hotkey_control": "proportional",
            "hotkey_tracking": True}


def test_settings_survive_a_restart_and_can_be_unset(tuned):
    def now():
        found = details_after(tuned)
        return {option: found[option] for option in DEFAULTS}
    assert now() == DEFAULTS
    with admin(tuned) as boss:
        for option, (_, text) in SETTINGS.items():
            set_param(boss, "shop", option, text)
    want = {option: value for option, (value, _) in SETTINGS.items()}
    assert now() == want
    tuned.restart()
    assert now() == want, "the state file keeps them"
    with admin(tuned) as boss:
        assert boss.call(Op.CONFIG_RELOAD).status == 0
    assert now() == want, "a reload does not undo them"
    ctl(tuned, "unset", "bucket", "shop", OPTION)
    want[OPTION] = DEFAULTS[OPTION]
    assert now() == want
    ctl(tuned, "set", "bucket", "shop", OPTION + "=5", "hotkey_mode=off")
    want.update({OPTION: 5, "hotkey_mode": "off"})
    assert now() == want
    ctl(tuned, "unset", "bucket", "shop")
    assert now() == DEFAULTS
    tuned.restart()
    assert now() == DEFAULTS


def test_reload(tuned):
    """The file's options count from the reload on, those of the process too."""
    def write(**options):
        rows = [dict(row, **options) if row["name"] == "shop" else row
                for row in tuned.config["tenants"]]
        tuned.write_config(tenants=rows)
    with heater_on(tuned), admin(tuned) as boss:
        write(**{OPTION: 20})
        assert boss.call(Op.CONFIG_RELOAD).status == 0
        wait_listed(boss, "shop", at_least=50)
        one_refused(tuned)
        tuned.write_config(hotkey_epoch_ms=100)
        assert boss.call(Op.CONFIG_RELOAD).status == 0
        assert engine(boss)["epoch_ms"] == 100
        poll(lambda: (next_epoch(boss), engine(boss)["last_length_us"])[1] < 180000, 10,
             what="epochs of 100 ms")
        write(**{OPTION: 0})
        assert boss.call(Op.CONFIG_RELOAD).status == 0
        all_pass(tuned)
        write(**{OPTION: -1})
        frame = boss.call(Op.CONFIG_RELOAD)
        assert frame.status == St.EINVAL and OPTION.encode() in frame.value, show(frame)
        assert details(boss, "shop")[OPTION] == 0, "what was in force stays"


@pytest.mark.parametrize("option, value, words", (
    (OPTION, "-1", (OPTION, "0 to 1000000000000000000")),
    (OPTION, "many", (OPTION, "0 to 1000000000000000000")),
    (OPTION, "1000000000000000001", (OPTION, "0 to 1000000000000000000")),
    (OPTION, "1e3", (OPTION,)), (OPTION, "unlimited", (OPTION,)), (OPTION, " 5", (OPTION,)),
    ("hotkey_mode", "on", ("hotkey_mode", "off, observe, enforce")),
    ("hotkey_mode", "Enforce", ("hotkey_mode", "off, observe, enforce")),
    ("hotkey_control", "fast", ("hotkey_control", "step, proportional")),
    ("hotkey_tracking", "yes", ("hotkey_tracking", "true, false")),
    ("hotkey_threshold", "5", ("accepted", OPTION, "hotkey_mode", "hotkey_tracking")),
    (OPTION, "5\0", ("zero byte",)), (OPTION, "5" * 300, ("long",))))
def test_bad_values(daemon, boss, option, value, words):
    before = details(boss, "shop")
    frame = boss.call(Op.SET_PARAM, hot.PARAM % ("shop", option), value)
    assert frame.status == St.EINVAL, show(frame)
    for word in words:
        assert word.encode() in frame.value, show(frame)
    after = details(boss, "shop")
    assert {o: before[o] for o in DEFAULTS} == {o: after[o] for o in DEFAULTS}


@pytest.mark.parametrize("option, value, accepted", (
    ("hotkey_epoch_ms", 99, "100 to 60000"), ("hotkey_epoch_ms", 60001, "100 to 60000"),
    ("hotkey_counters", 63, "64 to 8192"), ("hotkey_memory_bytes", "lots", "bytes")))
def test_bad_values_in_the_file(tmp_path, option, value, accepted):
    with start([tenant("shop")]) as daemon, admin(daemon) as boss:
        daemon.write_config(**{option: value})
        frame = boss.call(Op.CONFIG_RELOAD)
        assert frame.status == St.EINVAL, show(frame)
        assert option.encode() in frame.value and accepted.encode() in frame.value, show(frame)


def test_who_may_tune(daemon, boss):
    """Options of a tenant are its manager's; not any user's."""
    with enter(daemon, "shop") as client:
        frame = client.call(Op.SET_PARAM, hot.PARAM % ("shop", OPTION), "5")
        assert frame.status == St.EACCESS, show(frame)
    frame = boss.call(Op.SET_PARAM, hot.PARAM % ("nobody", OPTION), "5")
    assert frame.status == St.ENOENT and b"no bucket" in frame.value, show(frame)
