"""test_hotkeys_epochs - epochs of hot keys in the running server: when the percent holds, whose
keys are throttled, and how epochs roll with no key, with a hundred thousand, with little memory,
with tenants that come and go, and after the server stood still"""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import json
import threading
import time

import pytest

import hotkey_tools as hot
from credit_tools import admin, details, enter
from hotkey_tools import (Heater, Load, Recorder, STORES, engine, heat_get, listed, next_epoch,
                          poll, rows_of, rows_of_one_epoch, start, tenant, wait_listed)
from mcbin import Closed, Op, St, request, scaled, show
from servers import user_row

BOTH = ("embedded2", "memcached")  # what one worker does of it is in the other suites
ANYBODY = user_row("any", buckets={"*": ["Read", "Write"]})


def anybody(daemon, bucket):
    client = daemon.client(15.0)
    client.login("any", "pw")
    frame = client.select(bucket)
    assert frame.status == 0, show(frame)
    return client


# ---- decisions ----

@pytest.mark.alone
@pytest.mark.parametrize("kind", BOTH)
def test_step_holds_near_the_threshold(kind, farm):
    """Offered 1.5 T, the percent rises to where the mean lies between 0.7 T and T, and stays."""
    threshold, epoch_s = 90, 0.3
    with start([tenant("shop", threshold)], kind, farm, epoch_ms=300) as daemon, \
            admin(daemon) as boss, Heater(enter(daemon, "shop"), [heat_get(b"warm")], burst=9):
        recorder = Recorder(boss)

        def holds():
            epochs = recorder.epochs() if recorder.looks else []
            last = [(e.rows.get(("shop", "ALL", "", "warm")) or {}).get("THROTTLE_PERCENT", 0)
                    for e in epochs][-4:]
            return len(last) == 4 and last[0] > 0 and len(set(last)) == 1
        poll(holds, 40, what="a percent that holds")
        epochs = recorder.stop()
    changes, percents = hot.check_steps(epochs, "shop", "warm", threshold, epoch_s)
    assert 20 <= percents[-1] <= 60, percents
    assert changes[-3:] == [0, 0, 0], changes


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("control", ("step", "proportional"))
def test_the_same_key_of_two_tenants(kind, control, farm):
    """Only the tenant whose key is flooded has it throttled."""
    tenants = [tenant("flooded", 40, control), tenant("calm", 40, control)]
    with start(tenants, kind, farm) as daemon, admin(daemon) as boss, \
            Heater(enter(daemon, "flooded"), [heat_get(b"same")], burst=20) as flood, \
            Heater(enter(daemon, "calm"), [heat_get(b"same")], burst=1, every_s=0.04) as calm:
        wait_listed(boss, "flooded", at_least=30)
        seen = calm.ok
        poll(lambda: calm.ok > seen + 30 and flood.refused > 50, 20, what="both going on")
        assert calm.refused == 0 and listed(boss, "calm") == []
        assert details(boss, "calm")["hotkey_rejected"] == 0
        assert details(boss, "flooded")["hotkey_rejected"] > 0
        assert [row["HOTKEY"] for row in rows_of(boss, "hotkeys calm")] == ["same"] * 2


def test_all_of_a_key_are_refused_at_a_hundred_percent():
    """step goes up to 100 while the mean is above T, and comes down again: no ban."""
    with start([tenant("shop", 5)], "embedded2") as daemon, admin(daemon) as boss, \
            Heater(enter(daemon, "shop"), [heat_get(b"hot")], burst=60) as heater:
        poll(lambda: listed(boss, "shop", 100), 30, what="100 percent")
        ok = heater.ok
        poll(lambda: heater.ok > ok, 30, what="a request that passes")


def test_many_hot_keys_at_once():
    """A list of keys, each with its own share; ten new ones an epoch are found."""
    keys = [b"hot-%02d" % n for n in range(24)]
    with start([tenant("shop", 20, "proportional")], "embedded2", epoch_ms=300) as daemon, \
            admin(daemon) as boss, contextlib.ExitStack() as stack:
        for part in range(4):
            stack.enter_context(Heater(enter(daemon, "shop"), [
                heat_get(key) for key in keys[part * 6:part * 6 + 6]], burst=36))
        rows = wait_listed(boss, "shop", len(keys), timeout=30)
        assert {row["HOTKEY"].encode() for row in rows} == set(keys)
        names = [row["HOTKEY"] for row in rows_of(boss, "hotkeys shop") if row["TYPE"] == "ALL"]
        assert len(names) == len(set(names)), "a listed key among the first ten is shown once"
        with enter(daemon, "shop") as client:
            answers = client.quiet(*[request(Op.GET, b"cold-%d" % n) for n in range(500)])
            assert {f.status for f in answers} == {St.ENOENT}, "cold keys pass"


# ---- epochs ----

def test_epochs_roll_without_keys():
    """Empty epochs cost no memory, and what comes behind them is counted as ever."""
    with start([tenant("shop", 20)], "embedded2", epoch_ms=100) as daemon, admin(daemon) as boss:
        begin = engine(boss)
        time_begin = time.monotonic()
        next_epoch(boss, 20)
        now = engine(boss)
        took = time.monotonic() - time_begin
        assert now["memory_bytes"] == begin["memory_bytes"] == 0, now
        assert now["epochs"] - begin["epochs"] <= took / 0.1 + 2, "not more than there is time for"
        assert now["lost_merges"] == now["last_shares"] == 0, now
        assert rows_of(boss) == rows_of(boss, "hotkeys history") == []
        with enter(daemon, "shop") as client:
            poll(lambda: (client.get(b"k"), rows_of(boss, "hotkeys shop"))[1], 10, what="rows")


@pytest.mark.alone
@pytest.mark.parametrize("kind", BOTH)
def test_epochs_roll_with_many_keys(kind, farm):
    """A hundred thousand different keys, and one that is hot among them: it is counted within the
    bounds, every over-count is within N / m, and all that was counted is found again."""
    keys, epoch_ms = 100000, 1000
    with start([tenant("shop")], kind, farm, epoch_ms=epoch_ms) as daemon, admin(daemon) as boss:
        recorder = Recorder(admin(daemon))
        with Heater(enter(daemon, "shop"), [heat_get(b"hot")], burst=30, every_s=0.01) as heater:
            next_epoch(boss)
            load = Load(daemon.where, "-n", 0, "--fill", "--keys", keys, "-c", 4, "-p", 8,
                        "--value-bytes", 8, "-u", "shop", "--password", "pw")
            load.report(60)
            next_epoch(boss)
        next_epoch(boss, 2)
        epochs = recorder.stop()
        after, state = details(boss, "shop"), engine(boss)
        assert after["hotkey_counted"] == keys + heater.sent and after["hotkey_dropped"] == 0
        assert state["lost_merges"] == state["shrunk_tenants"] == 0, state
        rows = [(e, e.rows.get(("shop", "ALL", "", "hot"))) for e in epochs]
        seen = [row for _, row in rows if row]
        assert sum(row["HOTKEY_FREQ"] - row["ERROR"] for row in seen) <= heater.sent
        assert sum(row["HOTKEY_FREQ"] for row in seen) >= heater.sent * 0.9
        for epoch in epochs:
            for (bucket, _, _, key), row in epoch.rows.items():
                # N is at most all of them; m is 512 or 256, each worker's sketch its own.
                assert row["ERROR"] <= (keys + heater.sent) / 256, row
                if key != "hot":
                    assert row["HOTKEY_FREQ"] - row["ERROR"] <= 1, "filled once: %s" % row
        # Idle, it gives everything back.
        set_epoch(daemon, boss, 100)
        poll(lambda: engine(boss)["memory_bytes"] == 0, 30, what="no memory in use")


def set_epoch(daemon, boss, epoch_ms, **options):
    daemon.write_config(hotkey_epoch_ms=epoch_ms, **options)
    frame = boss.call(Op.CONFIG_RELOAD)
    assert frame.status == 0, show(frame)


# ---- memory ----

def test_memory_is_bounded():
    """With too little for all, the most active tenant keeps its size, the others shrink, and within
    a few epochs nothing goes uncounted; when the others are idle all is as before."""
    names, wide = ["t%d" % n for n in range(8)], [heat_get(b"wide-%03d" % n) for n in range(120)]
    cap = 1000 * 1024
    with start([tenant(name) for name in names], "embedded2", hotkey_memory_bytes=cap) as daemon, \
            admin(daemon) as boss:
        assert engine(boss)["memory_cap_bytes"] == cap

        def dropped():
            return sum(details(boss, name)["hotkey_dropped"] for name in names)

        def settled():
            """Three epochs in which everything is counted and seven are small, not the first."""
            before, lost = engine(boss), dropped()
            next_epoch(boss, 3)
            now = engine(boss)
            rows = [row for row in rows_of(boss, "hotkeys t0") if row["TYPE"] == "ALL"]
            assert before["memory_bytes"] <= cap and now["memory_bytes"] <= cap
            return before["shrunk_tenants"] == now["shrunk_tenants"] == 7 and \
                dropped() == lost and now["lost_merges"] == before["lost_merges"] and \
                rows and all(row["ERROR"] == 0 for row in rows)
        with Heater(enter(daemon, "t0"), wide, burst=120, every_s=0.04) as active, \
                contextlib.ExitStack() as stack:
            heaters = [stack.enter_context(Heater(client, [
                request(Op.GET, b"k%d" % n) for n in range(8)] + [
                hot.heat_set(b"k%d" % n) for n in range(8)], burst=16, every_s=0.1))
                for name in names[1:] for client in enter(daemon, name, 2)]
            poll(settled, 40, what="a settled share of the memory")
            # Who is shrunk still ranks: eight keys fit into 64 counters.
            rows = poll(lambda: rows_of(boss, "hotkeys t5"), 10, what="rows of a small tenant")
            assert all(row["ERROR"] == 0 for row in rows), rows
            assert active.refused == 0 and not any(heater.refused for heater in heaters)
        assert all(heater.error is None for heater in heaters)
        # Only one is left.
        with Heater(enter(daemon, "t0"), wide, burst=120, every_s=0.04):
            poll(lambda: engine(boss)["shrunk_tenants"] == 0, 20, what="full size again")
        poll(lambda: engine(boss)["memory_bytes"] == 0, 20, what="no memory in use")


def test_without_memory_nothing_is_ranked():
    """hotkey_memory_bytes 0: requests pass, uncounted, and that is counted."""
    with start([tenant("shop", 5, "proportional")], hotkey_memory_bytes=0) as daemon, \
            admin(daemon) as boss:
        with Heater(enter(daemon, "shop"), [heat_get(b"hot")]) as heater:
            next_epoch(boss, 4)
            assert heater.refused == 0
        found = details(boss, "shop")
        assert rows_of(boss, "hotkeys shop") == [] and found["hotkey_counted"] == 0
        assert found["hotkey_dropped"] == heater.sent
        assert engine(boss)["memory_bytes"] == 0
        # Given at run time, it ranks from the next epoch on.
        set_epoch(daemon, boss, 200, hotkey_memory_bytes=1 << 20)
        with Heater(enter(daemon, "shop"), [heat_get(b"hot")]):
            wait_listed(boss, "shop")


def test_counters_at_run_time():
    """hotkey_counters bounds how many keys are told apart; changed, from the next epochs on."""
    def errors(boss, client):
        rows = rows_of_one_epoch(boss, "shop", lambda: client.quiet(
            *[request(Op.GET, b"k%d" % n) for n in range(300)]))
        return {row["ERROR"] for row in rows if row["TYPE"] == "ALL"}
    with start([tenant("shop")], epoch_ms=400, hotkey_counters=64) as daemon, \
            admin(daemon) as boss, enter(daemon, "shop") as client:
        assert max(errors(boss, client)) > 0
        set_epoch(daemon, boss, 400, hotkey_counters=1024)
        next_epoch(boss, 2)
        assert errors(boss, client) == {0}


# ---- tenants that come and go ----

LIMITS = {"kv_hotkey_throttle_threshold": 20, "hotkey_control": "proportional"}


@pytest.mark.parametrize("kind", STORES)
def test_a_tenant_created_and_deleted_within_an_epoch(kind, farm):
    """Again and again, under load, with a throttled key; its namesake begins with nothing, and the
    other tenant's counts are whole."""
    limits = dict(LIMITS, upstream="store")
    with start([tenant("stays")], kind, farm, epoch_ms=150, users=[ANYBODY]) as daemon, \
            admin(daemon) as boss, \
            Heater(enter(daemon, "stays"), [heat_get(b"steady")], burst=10) as steady:
        for turn in range(6):
            frame = boss.call(Op.CREATE_BUCKET, b"brief", json.dumps(limits))
            assert frame.status == 0, show(frame)
            if turn % 2:  # within one epoch
                with anybody(daemon, "brief") as client:
                    client.quiet(*[request(Op.GET, b"turn-%d" % turn)] * 100)
            flood = Flooder([anybody(daemon, "brief") for _ in range(2)], b"turn-%d" % turn)
            if turn % 2 == 0:
                rows = wait_listed(boss, "brief")
                assert {row["HOTKEY"] for row in rows} == {"turn-%d" % turn}, "of this one only"
            frame = boss.call(Op.DELETE_BUCKET, b"brief", timeout=20)
            assert frame.status == 0, show(frame)
            flood.join()
            frames, last = boss.stat_frames("hotkeys brief")
            assert last.status == St.ENOENT and not frames, show(last)
        assert "brief" not in {row["TENANT"] for row in rows_of(boss, "hotkeys history")}
        steady.__exit__(None)
        poll(lambda: details(boss, "stays")["hotkey_counted"] == steady.sent, 10,
             what="every request counted")
        poll(lambda: engine(boss)["memory_bytes"] == 0, 30, what="no memory in use")


class Flooder:
    """Connections that get a key until the server tells that the bucket is gone."""

    def __init__(self, clients, key):
        self.threads = [threading.Thread(target=self._run, args=(client, key), daemon=True)
                        for client in clients]
        self.wrong = []
        for thread in self.threads:
            thread.start()

    def _run(self, client, key):
        try:
            while True:
                found = {f.status for f in client.quiet(*[request(Op.GET, key)] * 10)}
                if St.NO_BUCKET in found:
                    break
                if not found <= {0, St.ENOENT, St.ETMPFAIL}:
                    self.wrong.append(found)
                    break
                time.sleep(0.01)  # a rate, not a wait
        except (Closed, OSError) as gone:
            self.wrong.append(gone)
        client.close()

    def join(self):
        for thread in self.threads:
            thread.join(scaled(20))
            assert not thread.is_alive(), "the deleted bucket still answers"
        assert not self.wrong, self.wrong


@pytest.mark.parametrize("kind", STORES)
def test_a_throttled_tenant_leaves_the_configuration(kind, farm):
    """Deleted by a reload, while its key is throttled, and back by another."""
    rows = [tenant("stays"), tenant("goes", 20, "proportional")]
    with start(rows, kind, farm, epoch_ms=150, users=[ANYBODY]) as daemon, admin(daemon) as boss:
        before = [dict(row) for row in daemon.config["tenants"]]
        flood = Flooder([anybody(daemon, "goes") for _ in range(2)], b"hot")
        wait_listed(boss, "goes")
        daemon.write_config(tenants=[row for row in before if row["name"] != "goes"])
        assert boss.call(Op.CONFIG_RELOAD).status == 0
        flood.join()
        next_epoch(boss, 3)
        daemon.write_config(tenants=before)
        assert boss.call(Op.CONFIG_RELOAD).status == 0
        assert rows_of(boss, "hotkeys history goes") == [] and details(
            boss, "goes")["hotkey_rejected"] == 0
        with anybody(daemon, "goes") as client:
            client.quiet(*[request(Op.GET, b"hot")] * 10)
            assert client.get(b"hot").status == St.ENOENT, "its list begins empty"


# ---- a server that stood still ----

@pytest.mark.alone
@pytest.mark.parametrize("kind", BOTH)
def test_after_a_pause_there_is_one_epoch(kind, farm):
    """SIGSTOP for more than three epochs: one epoch as long as it was, whose counts are scaled. A
    key below T is not listed for it, one above T stays listed, under either control."""
    threshold, epoch_s = 100, 0.5
    names = ("step", "proportional")
    with start([tenant(name, threshold, name) for name in names], kind, farm,
               epoch_ms=500) as daemon, admin(daemon) as boss, contextlib.ExitStack() as stack:
        cool = [stack.enter_context(Heater(enter(daemon, name), [heat_get(b"cool")], burst=2))
                for name in names]
        for name in names:
            stack.enter_context(Heater(enter(daemon, name), [heat_get(b"hot")], burst=24))
        for name in names:
            wait_listed(boss, name, at_least=30, timeout=30)

        def hot_only():
            found = {name: {row["HOTKEY"] for row in listed(boss, name)} for name in names}
            return found == {name: {"hot"} for name in names}
        begin = next_epoch(boss)
        daemon.process.pause()
        paused = time.monotonic()
        poll(lambda: time.monotonic() - paused > 3.2 * epoch_s, 20)
        stood = time.monotonic() - paused
        daemon.process.resume()
        after = poll(lambda: (lambda now: now if now["last_epoch"] > begin else None)(engine(boss)),
                     10, what="the end of the long epoch")
        assert after["last_epoch"] == begin + 1, "one epoch, however long"
        assert after["last_length_us"] >= stood * 1e6, (after["last_length_us"], stood)
        for _ in range(5):
            assert hot_only(), "misjudged for having stood still"
            next_epoch(boss)
        assert not any(heater.refused for heater in cool)
        poll(lambda: engine(boss)["last_length_us"] < 1.5 * epoch_s * 1e6, 20,
             what="epochs as long as they should be")
        assert engine(boss)["lost_merges"] == 0


class OpenLoop(Heater):
    """Sends at its pace whether it is answered or not."""

    def _run(self):
        reader = threading.Thread(target=self._read, daemon=True)
        reader.start()
        due = time.monotonic()
        while not self.stopping.is_set():
            self.client.sock.sendall(self.data)
            self.sent += self.burst
            due += self.every_s
            self.stopping.wait(max(0.0, due - time.monotonic()))
        reader.join(scaled(10))

    def _read(self):
        while not self.stopping.is_set() or sum(self.statuses.values()) < self.sent:
            try:
                self.statuses[self.client.recv(0.5).status] += 1
            except TimeoutError:
                continue


@pytest.mark.alone
def test_what_piled_up_in_a_pause_is_not_taken_for_heat():
    """Clients that went on sending at 0.75 T: what came meanwhile is handled at once, and belongs
    to the time in which it was sent."""
    names, threshold = ("step", "proportional"), 200
    with start([tenant(name, threshold, name) for name in names], "embedded2",
               epoch_ms=500) as daemon, admin(daemon) as boss, contextlib.ExitStack() as stack:
        heaters = [stack.enter_context(OpenLoop(enter(daemon, name), [heat_get(b"cool")], burst=6))
                   for name in names]
        for _ in range(2):
            next_epoch(boss, 2)
            daemon.process.pause()
            paused = time.monotonic()
            poll(lambda: time.monotonic() - paused > 1.7, 20)
            daemon.process.resume()
            next_epoch(boss, 3)
        rows = rows_of(boss, "hotkeys history")
        assert {row["TENANT"] for row in rows} == set(names)
        assert all(row["THROTTLE_PERCENT"] == row["REJECTED"] == 0 for row in rows), rows
        assert max(row["HOTKEY_FREQ"] for row in rows) > 2 * threshold, "something piled up"
        assert not any(heater.refused for heater in heaters)
