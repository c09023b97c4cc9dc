"""test_hotkeys_options - the options of hot keys: set, changed and unset at run time, kept over a
restart, and refused when they are wrong"""
# SPDX-License-Identifier: BSD-3-Clause

import pytest

import hotkey_tools as hot
from credit_tools import admin, details, enter
from hotkey_tools import (Heater, ctl, engine, heat_get, listed, next_epoch, poll, rows_of,
                          set_param, start, tenant, until_refused, wait_listed)
from mcbin import Feature, Op, St, request, show
from servers import user_row

pytestmark = pytest.mark.threaded
USERS = [user_row("tuner", buckets={"shop": ["BucketThrottleManagement"]})]


@pytest.fixture(scope="module")
def daemon():
    """Two tenants; nothing that a test sets stays."""
    with start([tenant("shop"), tenant("other")], "embedded2", users=USERS) as made:
        yield made


@pytest.fixture
def boss(daemon):
    with admin(daemon) as client:
        yield client


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


def one_refused(daemon, name="shop", key=b"hot"):
    """One request is refused of a client that knows the status of hot keys, and of one that does
    not; no other status is there."""
    for features, status in (((), St.ETMPFAIL), ((Feature.XERROR,), St.HOT_KEY)):
        with enter(daemon, name, features=features) as client:
            frame = until_refused(lambda: client.get(key),
                                  lambda f: f.status not in (0, St.ENOENT), tries=20000)
            assert frame.status == status, show(frame)


def test_threshold_at_run_time(tuned):
    with heater_on(tuned) as heater, admin(tuned) as boss:
        all_pass(tuned, count=500)
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
            all_pass(tuned)
            found = details(boss, "shop")
            assert found["hotkey_mode"] == "observe"
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
        settings = boss.stat("settings")
        for option, (_, text) in SETTINGS.items():
            assert settings["tenant.shop." + option] == text, sorted(settings)
        assert boss.call(Op.CONFIG_RELOAD).status == 0
    assert now() == want, "a reload does not undo them"
    ctl(tuned, "unset", "bucket", "shop", OPTION)
    want[OPTION] = DEFAULTS[OPTION]
    assert now() == want
    with admin(tuned) as boss:
        set_param(boss, "shop", "hotkey_mode", "")
    want["hotkey_mode"] = DEFAULTS["hotkey_mode"]
    assert now() == want, "an empty value unsets"
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
    (OPTION, "-1", (OPTION, "(accepted: 0 to 1000000000000000000")),
    (OPTION, "many", (OPTION, "0 to 1000000000000000000")),
    (OPTION, "1000000000000000001", (OPTION, "0 to 1000000000000000000")),
    (OPTION, "1e3", (OPTION,)), (OPTION, "unlimited", (OPTION,)), (OPTION, " 5", (OPTION,)),
    ("hotkey_mode", "on", ("hotkey_mode", "(accepted: off, observe, enforce)")),
    ("hotkey_mode", "Enforce", ("hotkey_mode", "(accepted: off, observe, enforce)")),
    ("hotkey_control", "fast", ("hotkey_control", "(accepted: step, proportional)")),
    ("hotkey_tracking", "yes", ("hotkey_tracking", "(accepted: true, false)")),
    ("hotkey_threshold", "5", ("accepted", OPTION, "hotkey_mode", "hotkey_tracking")),
    ("allow_flush", "true", ("(accepted: reserved, hard_limit, state, credit_mode,",)),
    (OPTION, "5\0", ("zero byte",)), ("hotkey_mode", "off\0", ("zero byte",)),
    (OPTION, "5" * 300, ("too long",))))
def test_bad_values(daemon, boss, option, value, words):
    before = details(boss, "shop")
    frame = boss.call(Op.SET_PARAM, hot.PARAM % ("shop", option), value)
    assert frame.status == St.EINVAL, show(frame)
    for word in words:
        assert word.encode() in frame.value, show(frame)
    frame = boss.call(Op.SET_PARAM, hot.PARAM % ("nobody", option), value)
    assert frame.status == St.ENOENT, show(frame)
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
        frame = client.call(Op.SET_PARAM, hot.PARAM % ("shop", "hotkey_mode"), "off")
        assert frame.status == St.EACCESS, show(frame)
    with daemon.client() as tuner:
        tuner.login("tuner", "pw")
        set_param(tuner, "shop", "hotkey_mode", "off")
        set_param(tuner, "shop", "hotkey_mode", "")
        frame = tuner.call(Op.SET_PARAM, hot.PARAM % ("other", "hotkey_mode"), "off")
        assert frame.status == St.EACCESS, show(frame)
    frame = boss.call(Op.SET_PARAM, hot.PARAM % ("nobody", OPTION), "5")
    assert frame.status == St.ENOENT and b"no bucket" in frame.value, show(frame)


def test_a_change_that_stops_halfway_says_what_is_set():
    with start([tenant("default")]) as daemon:
        done = ctl(daemon, "set", "bucket", "default", "reserved=100", "hotkey_mode=off",
                   "hotkey_control=dice", "hotkey_tracking=false", check=False)
        assert done.returncode == 1
        assert "accepted: step, proportional" in done.stderr
        assert "stays: reserved, hotkey_mode\n" in done.stderr
        done = ctl(daemon, "set", "bucket", "default", "hotkey_control=dice", check=False)
        assert done.returncode == 1 and "stays" not in done.stderr
