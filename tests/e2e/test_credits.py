"""test_credits - tenants are held to units per second, exactly; limits change while requests are
held; nobody hangs. Slots are 200 ms where nothing else is said: a limit of 200 is 40 a slot."""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import json
import socket
import struct
import time

import pytest

from conftest import store_config
from credit_tools import (SLOT, UNLIMITED, admin, details, enter, flood_slots, get, put, set_bucket,
                          set_node, start, poll_until)
from flood import Flood, bursts, jain, whole_slots
from mcbin import (Feature, Op, St, counter_extras, error_json, frame_info, parse_framing, poll,
                   request, scaled, set_extras, show)
from servers import memory_factor, user_row

pytestmark = pytest.mark.threaded


def closed(clients):
    for client in clients:
        client.close()


# ---- exact limits ----

@pytest.mark.alone
@pytest.mark.parametrize("threads,connections,pipeline", [
    (1, 1, 1), (1, 1, 16), (1, 8, 16), (2, 1, 16), (2, 8, 1), (2, 40, 4)])
def test_hard_limit_is_exact(threads, connections, pipeline):
    with start([{"name": "shop", "hard_limit": 200}], threads=threads) as daemon:
        done, slots, _ = flood_slots(lambda: enter(daemon, "shop", connections), 10,
                                     pipeline=pipeline)
        assert slots >= 10
        assert done == 40 * slots, "%d writes in %d slots of 40" % (done, slots)


@pytest.mark.alone
def test_hard_limit_is_exact_with_slots_of_a_second():
    with start([{"name": "shop", "hard_limit": 200}], throttle_slot_ms=1000, threads=2) as daemon:
        done, slots, _ = flood_slots(lambda: enter(daemon, "shop", 4), 3, slot_s=1.0, pipeline=16)
        assert slots >= 3
        assert done == 200 * slots, "%d writes in %d seconds" % (done, slots)


@pytest.mark.alone
def test_hard_limit_is_exact_over_memcached(farm):
    with start([{"name": "shop", "hard_limit": 200}], store=store_config("mc3", farm),
               threads=2) as daemon:
        done, slots, _ = flood_slots(lambda: enter(daemon, "shop", 4), 10, pipeline=16)
        assert done == 40 * slots, "%d writes in %d slots of 40" % (done, slots)


@pytest.mark.alone
def test_writes_of_several_units():
    """Three units each: 40 units are 13 writes and a rest of one, which is not enough."""
    value = b"v" * 3000
    make = lambda n: request(Op.SET, b"k", value, set_extras(), opaque=n)
    with start([{"name": "shop", "hard_limit": 200}]) as daemon:
        done, slots, _ = flood_slots(lambda: enter(daemon, "shop", 2), 10, make=make, pipeline=8)
        assert 12 * slots <= done <= 40 * slots / 3 + 1, "%d in %d slots" % (done, slots)


@pytest.mark.alone
@pytest.mark.parametrize("threads", [1, 2])
def test_reads_within_two_percent(threads):
    with start([{"name": "shop", "hard_limit": 200}], threads=threads) as daemon:
        with enter(daemon, "shop") as client:
            for number in range(64):
                assert client.set(b"k%d" % number, b"v").status == 0
        done, slots, _ = flood_slots(lambda: enter(daemon, "shop", 4), 10, make=get, pipeline=8)
        assert abs(done - 40 * slots) <= 0.02 * 40 * slots, "%d reads in %d slots" % (done, slots)


@pytest.mark.alone
def test_two_buckets_do_not_disturb_each_other():
    with start([{"name": "a", "hard_limit": 200}, {"name": "b", "hard_limit": 100}]) as daemon:
        with Flood(enter(daemon, "a", 4), put, 8) as one, Flood(enter(daemon, "b", 2), put, 8) as two:
            poll_until(one, 12 * SLOT)
        done, slots = whole_slots(one.events, SLOT)
        assert done == 40 * slots
        done, slots = whole_slots(two.events, SLOT)
        assert done == 20 * slots
        closed(one.clients + two.clients)


@pytest.mark.alone
def test_slots_of_50_ms_carry_fractions():
    """30 units/s in slots of 50 ms: one or two a slot, exactly 30 a second."""
    with start([{"name": "shop", "hard_limit": 30}], throttle_slot_ms=50) as daemon:
        with Flood(enter(daemon, "shop", 2), put, 4) as flood:
            poll_until(flood, 2.2)
        closed(flood.clients)
        starts = [when for when, _ in bursts(flood.events, 0.05)]
        counted = sum(count for _, count in bursts(flood.events, 0.05)[1:-1])
        exact = 30 * (starts[-1] - starts[1])
        assert abs(counted - exact) <= 2, "%d writes, %.1f allowed" % (counted, exact)


# ---- upstream's scenarios 1 to 5 ----

def test_operations_are_throttled():
    """Five buckets, each reserved = hard limit: a set and five slots of gets take five slots."""
    names = ["bucket%d" % n for n in range(5)]
    with start([{"name": n, "reserved": 500, "hard_limit": 500} for n in names]) as daemon:
        floods = []
        for name in names:
            client = enter(daemon, name)
            assert client.set(b"k0", b"x").status == 0
            floods.append(Flood([client], get, 16, limit=500))
        begun = time.monotonic()
        for flood in floods:
            flood.thread.start()
        for flood in floods:
            assert len(flood.wait()) == 500
        assert time.monotonic() - begun > 3.5 * SLOT
        with admin(daemon) as client:
            for name in names:
                row = details(client, name)
                assert row["ru"] == 500 and row["wu"] == 1, row
                assert row["num_throttled"] >= 3 and row["throttle_wait_time"] > 0, row
        for flood in floods:
            closed(flood.clients)


@pytest.mark.parametrize("limits", [{"reserved": 50000, "hard_limit": 50000},
                                    {"reserved": UNLIMITED}, {}], ids=str)
def test_operations_are_not_throttled(limits):
    with start([dict(name="shop", **limits)]) as daemon:
        client = enter(daemon, "shop")
        client.set(b"k0", b"x")
        flood = Flood([client], get, 16, limit=2000)
        with flood:
            flood.wait()
        with admin(daemon) as boss:
            row = details(boss, "shop")
            assert (row["ru"], row["wu"], row["num_throttled"]) == (2000, 1, 0), row
        client.close()


def test_credit_mode_off():
    with start([{"name": "shop", "hard_limit": 10, "credit_mode": "off"}]) as daemon:
        flood = Flood([enter(daemon, "shop")], put, 16, limit=1000)
        with flood:
            flood.wait(10)
        assert flood.count() == 1000
        with admin(daemon) as boss:
            assert details(boss, "shop")["num_throttled"] == 0
        closed(flood.clients)


def test_observe_counts_and_refuses_nothing():
    with start([{"name": "shop", "hard_limit": 10, "credit_mode": "observe"}]) as daemon:
        flood = Flood(enter(daemon, "shop", 2), put, 16, limit=1000)
        with flood:
            flood.wait(10)
        assert flood.count() == 1000 and max(e.latency for e in flood.events) < scaled(5)
        with admin(daemon) as boss:
            row = details(boss, "shop")
            assert row["wu"] == 1000, row
            assert row["would_throttle"] > 500 and row["num_throttled"] == 0, row
        closed(flood.clients)


# ---- non-blocking mode ----

def exhaust(client, bucket=b""):
    """Writes until the first 0x0c, which is returned."""
    for _ in range(10000):
        frame = client.set(b"k", b"v")
        if frame.status:
            assert frame.status == St.WOULD_THROTTLE, show(frame)
            return frame
    raise AssertionError("never throttled")


@pytest.mark.alone
def test_non_blocking_mode_tells_the_true_next_tick():
    with start([{"name": "shop", "hard_limit": 200}]) as daemon:
        client = enter(daemon, "shop", features=(Feature.NON_BLOCKING,))
        errors = []
        for _ in range(6):
            frame = exhaust(client)
            told = error_json(frame)["next_tick_us"]
            at = time.monotonic()
            assert 0 < told <= SLOT * 1e6, told
            while client.set(b"k", b"v").status == St.WOULD_THROTTLE:
                assert time.monotonic() < at + scaled(2)
            errors.append(time.monotonic() - (at + told / 1e6))
        errors.sort()
        assert -0.010 < errors[0] and errors[len(errors) // 2] < scaled(0.03), errors
        client.close()


def test_second_hello_ends_the_non_blocking_mode():
    with start([{"name": "shop", "hard_limit": 50}]) as daemon:
        client = enter(daemon, "shop", features=(Feature.NON_BLOCKING,))
        exhaust(client)
        client.hello()
        assert all(client.set(b"k", b"v").status == 0 for _ in range(15)), "held, not refused"
        client.close()


def test_pipeline_goes_on_behind_a_refusal():
    with start([{"name": "shop", "hard_limit": 0}]) as daemon:
        client = enter(daemon, "shop", features=(Feature.NON_BLOCKING,))
        frames = client.quiet(*(put(n) for n in range(50)), request(Op.GETQ, b"x", opaque=50),
                              request(Op.SETQ, b"x", b"", set_extras(), opaque=51))
        assert [(f.opaque, f.status) for f in frames] == [
            (n, St.WOULD_THROTTLE) for n in range(52)], "errors of quiet operations are sent"
        client.close()


# ---- changes while requests are held ----

@pytest.mark.alone
def test_limit_raised_while_held_acts_within_one_tick():
    with start([{"name": "shop", "hard_limit": 5}]) as daemon, admin(daemon) as boss:
        with Flood(enter(daemon, "shop", 4), put, 16) as flood:
            poll(lambda: len(flood.events) >= 2, what="first replies")
            poll_until(flood, 2 * SLOT)
            set_bucket(boss, "shop", hard_limit=5000)
            changed = time.monotonic()
            poll(lambda: len(flood.events) > 500, within=3, what="the new limit at work")
        reached = next(e.when for i, e in enumerate(flood.events) if i >= 20) - changed
        assert reached < scaled(1.2 * SLOT + 0.1), "%.3f s until the new limit acted" % reached
        closed(flood.clients)


@pytest.mark.alone
def test_limit_lowered_while_held_acts_within_one_tick():
    with start([{"name": "shop", "hard_limit": 1000}]) as daemon, admin(daemon) as boss:
        with Flood(enter(daemon, "shop", 4), put, 16) as flood:
            poll(lambda: len(flood.events) >= 400, what="replies")
            set_bucket(boss, "shop", hard_limit=100)
            changed = time.monotonic()
            poll_until(flood, 9 * SLOT)
        late = [e for e in flood.events if e.when > changed + 1.3 * SLOT]
        done, slots = whole_slots(late, SLOT)
        assert done == 20 * slots, "%d in %d slots of 20" % (done, slots)
        closed(flood.clients)


@pytest.mark.alone
def test_capacity_changes_while_held():
    with start([{"name": "shop"}], node_capacity=5) as daemon, admin(daemon) as boss:
        with Flood(enter(daemon, "shop", 4), put, 16) as flood:
            poll(lambda: len(flood.events) >= 2, what="first replies")
            set_node(boss, capacity=UNLIMITED)
            changed = time.monotonic()
            poll(lambda: len(flood.events) > 200, within=3, what="no capacity limit")
            reached = time.monotonic() - changed
            assert reached < scaled(1.2 * SLOT + 0.3), reached
            set_node(boss, capacity=100)
            lowered = time.monotonic()
            poll_until(flood, 9 * SLOT)
        late = [e for e in flood.events if e.when > lowered + 1.3 * SLOT]
        done, slots = whole_slots(late, SLOT)
        assert done == 20 * slots, "%d in %d slots of 20" % (done, slots)
        closed(flood.clients)


def test_reservation_given_to_a_starving_bucket():
    """Reserved 0 and an empty pool: a reservation given now releases it at the tick."""
    with start([{"name": "shop"}], node_capacity=0) as daemon, admin(daemon) as boss:
        client = enter(daemon, "shop")
        client.send(put(1))
        assert client.silent(2.2 * SLOT)
        set_bucket(boss, "shop", reserved=100)
        frame = client.recv(2 * SLOT + 0.3)
        assert frame.status == 0, show(frame)
        client.close()


def test_bucket_without_a_reservation_wakes_up():
    """The pool is somebody else's until that one stops; then the held request goes on."""
    with start([{"name": "greedy"}, {"name": "poor"}], node_capacity=100) as daemon:
        with Flood(enter(daemon, "greedy", 20), put, 32) as flood:
            poll(lambda: len(flood.events) > 20, what="the pool in use")
            poor = Flood([enter(daemon, "poor")], put, 8)
            with poor:
                poll_until(flood, 6 * SLOT)
                closed(flood.clients)
                stopped = time.monotonic()
                poll(lambda: any(e.when > stopped + SLOT for e in poor.events), 4,
                     what="progress after the greedy one stopped")
            late = [e for e in poor.events if e.when > stopped]
            assert all(e.status == 0 for e in late)
            closed(poor.clients)


def test_connections_closed_while_held():
    with start([{"name": "shop", "hard_limit": 5}]) as daemon, admin(daemon, "shop") as boss:
        with Flood(enter(daemon, "shop", 30), put, 4) as flood:
            poll_until(flood, 2 * SLOT)
        for number, client in enumerate(flood.clients):
            if number % 2:
                client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
            client.close()
        poll(lambda: details(boss, "shop")["clients"] <= 1, what="closed connections noticed")
        set_bucket(boss, "shop", hard_limit=200)
        fresh = Flood([enter(daemon, "shop")], put, 4, limit=100)
        with fresh:
            fresh.wait(10)
        assert fresh.count() == 100
        closed(fresh.clients)


def test_half_close_refuses_what_is_held():
    """That client has most likely given up; it still gets an answer, then the end."""
    with start([{"name": "shop", "hard_limit": 0}]) as daemon:
        client = enter(daemon, "shop")
        client.send(put(1))
        assert client.silent(0.1)
        client.sock.shutdown(socket.SHUT_WR)
        begun = time.monotonic()
        frames = client.recv_until_closed(3)
        assert time.monotonic() - begun < scaled(1)
        assert len(frames) == 1 and frames[0].status != 0 and frames[0].opaque == 1
        client.close()


def test_delete_bucket_while_throttling():
    """Held requests are answered 0x08, the bucket is gone, nothing hangs; made again under the
    name it is new."""
    with start([{"name": "shop", "hard_limit": 5}], threads=2) as daemon, admin(daemon) as boss:
        floods = [Flood([client], put, 10) for client in enter(daemon, "shop", 6)]
        for flood in floods:
            flood.thread.start()
        poll(lambda: details(boss, "shop")["num_throttled"] > 0, what="throttling")
        frame = boss.call(Op.DELETE_BUCKET, b"shop")
        assert frame.status == 0, show(frame)
        for flood in floods:
            poll(lambda f=flood: any(e.status == St.NO_BUCKET for e in f.events), 3,
                 what="0x08 for what was held")
            flood.stop()
            assert not set(flood.statuses()) - {0, St.NO_BUCKET}, flood.statuses()
        assert boss.call(Op.DELETE_BUCKET, b"shop").status == St.ENOENT
        assert b"shop" not in boss.ok(Op.LIST_BUCKETS).value.split()
        assert boss.select("shop").status == St.ENOENT
        frame = boss.call(Op.CREATE_BUCKET, b"shop", b'{"upstream": "store"}')
        assert frame.status == 0, show(frame)
        row = details(boss, "shop")
        assert row["num_throttled"] == row["wu"] == row["ru"] == 0, row
        client = enter(daemon, "shop")
        assert client.set(b"k", b"v").status == 0
        assert client.get(b"k1").status == St.ENOENT, "its keys went with it"
        client.close()
        for flood in floods:
            closed(flood.clients)


def test_what_is_never_throttled():
    """On an exhausted bucket, everything that touches no data is answered at once."""
    with start([{"name": "shop", "hard_limit": 0}]) as daemon, admin(daemon, "shop") as boss:
        begun = time.monotonic()
        boss.noop()
        boss.version()
        boss.stat()
        boss.hello(Feature.JSON)
        boss.ok(Op.SASL_LIST)
        boss.ok(Op.GET_ERROR_MAP, value=b"\0\1")
        boss.ok(Op.LIST_BUCKETS)
        assert boss.select("default").status == 0 and boss.select("shop").status == 0
        set_bucket(boss, "shop", hard_limit=0)
        set_node(boss, capacity=UNLIMITED)
        assert details(boss, "shop")["wu"] == 0
        assert boss.call(Op.SET_BUCKET_DATA_LIMIT, b"shop", extras=b"\0\0").status == 0
        boss.ok(Op.QUIT)
        assert time.monotonic() - begun < scaled(1)


def test_order_behind_a_held_request():
    """Exempt operations behind it wait for it: replies leave in order."""
    with start([{"name": "shop", "hard_limit": 5}]) as daemon:
        client = enter(daemon, "shop")
        client.send(b"".join(put(n) for n in range(4)) + request(Op.NOOP, opaque=4)
                    + request(Op.GET, b"k3", opaque=5) + request(Op.VERSION, opaque=6))
        frames = [client.recv(4) for _ in range(7)]
        assert [f.opaque for f in frames] == list(range(7))
        assert frames[5].value == b"v" * 32
        client.close()


def test_a_held_connection_is_not_read():
    """What a held client sends waits in the socket, not in our memory."""
    with start([{"name": "shop", "hard_limit": 0}]) as daemon:
        client = enter(daemon, "shop", timeout=2)
        before = daemon.process.rss_bytes()
        chunk = request(Op.SET, b"k", b"v" * 100000, set_extras()) * 10
        client.sock.settimeout(0.3)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < 200 << 20:
                sent += client.sock.send(chunk)
        assert sent < 64 << 20, "%d MiB were taken from a held client" % (sent >> 20)
        assert daemon.process.rss_bytes() - before < (16 << 20) * memory_factor()
        client.close()


# ---- held too long ----

def test_held_too_long_with_xerror():
    with start([{"name": "shop", "hard_limit": 0}], throttle_max_wait_ms=500) as daemon:
        client = enter(daemon, "shop", features=(Feature.XERROR, Feature.JSON))
        begun = time.monotonic()
        frame = client.set(b"k", b"v")
        waited = time.monotonic() - begun
        assert frame.status == St.THROTTLED_TOO_LONG, show(frame)
        assert 0.45 < waited < scaled(0.5 + 1.5 * SLOT + 0.3), waited
        error = error_json(frame)["error"]
        assert error["context"] and "shop" in json.dumps(error) and "hard_limit" in json.dumps(error)
        assert error["retry_after_ms"] <= 1000 * SLOT, error
        client.close()


@pytest.mark.parametrize("reject,expected", [
    ("tmpfail", {Op.GET: St.ETMPFAIL, Op.SET: St.ETMPFAIL, Op.INCR: St.ETMPFAIL}),
    ("busy", {Op.GET: St.EBUSY, Op.SET: St.EBUSY, Op.INCR: St.EBUSY}),
    ("degrade", {Op.GET: St.ENOENT, Op.GETK: St.ENOENT, Op.SET: St.NOT_STORED,
                 Op.ADD: St.NOT_STORED, Op.REPLACE: St.NOT_STORED, Op.INCR: St.ETMPFAIL,
                 Op.DELETE: St.ETMPFAIL, Op.APPEND: St.ETMPFAIL, Op.GETQ: None, Op.GETKQ: None}),
])
def test_held_too_long_without_xerror(reject, expected):
    extras = {Op.SET: set_extras(), Op.ADD: set_extras(), Op.REPLACE: set_extras(),
              Op.INCR: counter_extras(1)}
    with start([{"name": "shop", "hard_limit": 0, "reject_status": reject}],
               throttle_max_wait_ms=250) as daemon:
        clients = enter(daemon, "shop", len(expected))
        for number, (op, client) in enumerate(zip(expected, clients)):
            client.send(request(op, b"k", b"v" if op in extras and op != Op.INCR else b"",
                                extras.get(op, b""), opaque=number)
                        + request(Op.NOOP, opaque=1000))
        for number, (op, client) in enumerate(zip(expected, clients)):
            frames = client.replies_until(1000)
            want = expected[op]
            assert [(f.opcode, f.opaque, f.status) for f in frames] == (
                [] if want is None else [(op, number, want)]), [show(f) for f in frames]
            if op == Op.GETK:
                assert frames[0].key == b"k", "a miss of GetK has its key"
        closed(clients)


# ---- debt, reservations, pool ----

@pytest.mark.alone
def test_debt_of_one_huge_operation():
    """20 KiB at 2 units a slot: it passes on an empty gauge and is paid for in ten slots."""
    with start([{"name": "shop", "hard_limit": 10}]) as daemon:
        client = enter(daemon, "shop")
        begun = time.monotonic()
        assert client.set(b"big", b"x" * 20000).status == 0
        assert time.monotonic() - begun < scaled(2.5 * SLOT), "it does not wait for ever"
        begun = time.monotonic()
        assert client.set(b"small", b"x").status == 0
        waited = (time.monotonic() - begun) / SLOT
        assert 7.5 < waited < 11.5, "%.1f slots for a debt of 18 units at 2 a slot" % waited
        client.close()


def test_no_debt_without_a_hard_limit():
    with start([{"name": "shop", "reserved": 10}], node_capacity=10) as daemon:
        client = enter(daemon, "shop")
        poll(lambda: client.set(b"small", b"x").status == 0, what="the reservation at work")
        assert client.set(b"big", b"x" * 20000).status == 0
        begun = time.monotonic()
        assert client.set(b"small", b"x").status == 0
        assert time.monotonic() - begun < scaled(2.5 * SLOT)
        client.close()


@pytest.mark.alone
def test_reservations_over_the_capacity_are_honoured():
    with start([{"name": "a", "reserved": 200}, {"name": "b", "reserved": 200}, {"name": "c"}],
               node_capacity=200) as daemon:
        clients = [enter(daemon, name, 2) for name in "abc"]
        poll(lambda: clients[0][0].set(b"k", b"v").status == 0, what="start")
        floods = [Flood(part, put, 16) for part in clients]
        for flood in floods:
            flood.thread.start()
        poll_until(floods[0], 9 * SLOT)
        for flood in floods:
            flood.stop()
        for flood in floods[:2]:
            done, slots = whole_slots(flood.events, SLOT)
            assert done == 40 * slots, "%d in %d slots of 40" % (done, slots)
        with admin(daemon) as boss:
            assert "throttle_reserved" in details(boss, "a")
        late = [e for e in floods[2].events if e.when > floods[2].events[0].when + 2 * SLOT] \
            if floods[2].events else []
        assert not late, "there is no pool left for the bucket without a reservation"
        assert "reserv" in daemon.stderr().lower() and "capacity" in daemon.stderr().lower(), \
            "a warning says so"
        for flood in floods:
            closed(flood.clients)


@pytest.mark.alone
def test_reservation_holds_against_a_flood_of_others():
    """The quiet tenant does not notice the loud one."""
    with start([{"name": "loud"}, {"name": "calm", "reserved": 100}], node_capacity=500) as daemon:
        calm = enter(daemon, "calm")
        with Flood(enter(daemon, "loud", 20), put, 32) as flood:
            poll(lambda: len(flood.events) > 100, what="the flood")
            waits = []
            for number in range(40):
                begun = time.monotonic()
                assert calm.set(b"k%d" % number, b"v").status == 0
                waits.append(time.monotonic() - begun)
                time.sleep(0.02)
        assert sorted(waits)[35] < scaled(0.05), sorted(waits)[-5:]
        closed(flood.clients + [calm])


@pytest.mark.alone
def test_slow_start():
    """A reservation nobody is connected for is lent out, but for a tenth; the whole of it from the
    tick after a connection came."""
    with start([{"name": "owner", "reserved": 300}, {"name": "guest"}], node_capacity=400) as daemon:
        with Flood(enter(daemon, "guest", 4), put, 32) as flood:
            poll_until(flood, 8 * SLOT)
            owner = enter(daemon, "owner")
            came = time.monotonic()
            poll_until(flood, 8 * SLOT)
        early = [e for e in flood.events if e.when < came]
        done, slots = whole_slots(early, SLOT)
        assert done == 74 * slots, "%d in %d slots of 80 - 6" % (done, slots)
        late = [e for e in flood.events if e.when > came + 1.3 * SLOT]
        done, slots = whole_slots(late, SLOT)
        assert done == 20 * slots, "%d in %d slots of 80 - 60" % (done, slots)
        closed(flood.clients + [owner])


@pytest.mark.alone
@pytest.mark.parametrize("threads", [1, 2])
def test_fair_pool_one_connection_against_a_hundred(threads):
    with start([{"name": "one"}, {"name": "many"}], node_capacity=400, free_pool="fair",
               threads=threads) as daemon:
        many = enter(daemon, "many", 100)
        one = enter(daemon, "one", 1)
        with Flood(many, put, 4) as big, Flood(one, put, 64) as small:
            poll_until(big, 2 * SLOT)
            begun = time.monotonic()
            poll_until(big, 10 * SLOT)
            ended = time.monotonic()
        shares = [sum(1 for e in flood.events if begun <= e.when < ended and e.status == 0)
                  for flood in (big, small)]
        assert jain(shares) >= 0.99, shares
        assert abs(sum(shares) - 80 * 10) <= 0.1 * 80 * 10, "the whole pool is used: %s" % shares
        closed(many + one)


@pytest.mark.alone
def test_fair_pool_hands_on_what_a_bucket_leaves():
    """One wants little, the other all: it gets what is left."""
    with start([{"name": "modest"}, {"name": "greedy"}], node_capacity=400,
               free_pool="fair") as daemon:
        modest = enter(daemon, "modest")
        with Flood(enter(daemon, "greedy", 8), put, 16) as flood:
            poll_until(flood, 2 * SLOT)
            begun = time.monotonic()
            waits = []
            while time.monotonic() < begun + 10 * SLOT:
                before = time.monotonic()
                assert modest.set(b"k", b"v").status == 0
                waits.append(time.monotonic() - before)
                time.sleep(0.03)
            ended = time.monotonic()
        greedy = sum(1 for e in flood.events if begun <= e.when < ended)
        expected = 400 * (ended - begun) - len(waits)
        assert greedy > 0.85 * expected, "%d of %d" % (greedy, expected)
        assert sorted(waits)[len(waits) * 9 // 10] < scaled(SLOT / 2), sorted(waits)[-5:]
        closed(flood.clients + [modest])


@pytest.mark.alone
def test_first_come_pool_is_used_exactly():
    with start([{"name": "a"}, {"name": "b"}], node_capacity=400) as daemon:
        with Flood(enter(daemon, "a", 4), put, 16) as one, Flood(enter(daemon, "b", 4), put, 16) as two:
            poll_until(one, 12 * SLOT)
        both = sorted(one.events + two.events)
        done, slots = whole_slots(both, SLOT)
        assert done == 80 * slots, "%d in %d slots of 80" % (done, slots)
        closed(one.clients + two.clients)


# ---- Unthrottled, Unmetered, impersonation ----

@pytest.mark.alone
def test_unthrottled_is_never_refused_and_always_charged():
    with start([{"name": "shop", "hard_limit": 200}]) as daemon:
        fast = daemon.client()
        fast.login("fast", "pw")
        assert fast.select("shop").status == 0
        other = enter(daemon, "shop", features=(Feature.NON_BLOCKING,))
        flood = Flood([fast], put, 32, limit=600)
        begun = time.monotonic()
        with flood:
            flood.wait(10)
        assert flood.count() == 600
        assert max(e.latency for e in flood.events) < scaled(SLOT), "it never waits"
        frame = other.set(b"k", b"v")
        assert frame.status == St.WOULD_THROTTLE, "the others pay: " + show(frame)
        with admin(daemon) as boss:
            assert details(boss, "shop")["wu"] == 600
        poll(lambda: other.set(b"k", b"v").status == 0, 10, what="the debt paid")
        slots = (time.monotonic() - begun) / SLOT
        assert 11 < slots < 19, "600 units at 40 a slot were paid in %.1f slots" % slots
        closed([fast, other])


def test_units_are_reported():
    """ReportUnitUsage: read units in frame info 1, write units in 2, absent where 0."""
    with start([{"name": "shop"}]) as daemon:
        client = enter(daemon, "shop", features=(Feature.REPORT_UNITS,))

        def units(frame):
            info = parse_framing(frame.framing)
            return tuple(int.from_bytes(info.get(n, b""), "big") for n in (1, 2))
        assert units(client.set(b"key", b"x")) == (0, 1)
        assert units(client.set(b"key", b"x" * 1021)) == (0, 1)
        assert units(client.set(b"key", b"x" * 1022)) == (0, 2), "key and value count"
        assert units(client.get(b"key")) == (1, 0)
        client.set(b"key", b"x" * 4093)
        assert units(client.get(b"key")) == (1, 0)
        client.set(b"key", b"x" * 4094)
        assert units(client.get(b"key")) == (2, 0)
        assert units(client.get(b"missing")) == (1, 0), "a miss reached the store"
        assert units(client.delete(b"key"))[1] == 1
        assert units(client.incr(b"number", 1, 1))[1] == 1
        assert units(client.touch(b"number", 100))[1] == 1
        assert client.noop().magic == 0x81, "nothing to report, plain header"
        client.close()


@pytest.mark.alone
def test_time_held_is_reported():
    """ReportUnitUsage: frame info 3 is how long the request was held, compressed."""
    with start([{"name": "shop", "hard_limit": 5}]) as daemon:
        client = enter(daemon, "shop", features=(Feature.REPORT_UNITS,))
        times = []
        for number in range(4):
            begun = time.monotonic()
            info = parse_framing(client.set(b"k", b"v").framing)
            times.append((int.from_bytes(info.get(3, b""), "big") ** 1.74 / 2e6,
                          time.monotonic() - begun))
        assert any(told > SLOT / 2 for told, _ in times), times
        for told, measured in times:
            assert told <= measured * 1.02 + 0.002, times
            assert told > measured - 0.1 or told == 0 and measured < 0.1, times
        client.close()


def test_units_are_counted():
    with start([{"name": "shop"}]) as daemon, admin(daemon) as boss:
        client = enter(daemon, "shop")
        before = details(boss, "shop")
        assert before["ru"] == before["wu"] == 0
        client.set(b"k", b"x" * 2000)
        client.get(b"k")
        client.get(b"missing")
        client.delete(b"missing")
        client.noop()
        client.version()
        client.stat()
        client.call(0x77)
        client.call(Op.GET)
        row = details(boss, "shop")
        assert (row["ru"], row["wu"]) == (2, 3), row
        client.close()


def test_unmetered_is_charged_but_not_reported():
    users = [user_row("free", buckets={"shop": ["Read", "Write"]}, privileges=("Unmetered",))]
    with start([{"name": "shop"}], users=users) as daemon, admin(daemon) as boss:
        client = daemon.client()
        client.login("free", "pw")
        assert client.select("shop").status == 0
        client.hello(Feature.REPORT_UNITS)
        assert 2 not in parse_framing(client.set(b"k", b"v").framing)
        row = details(boss, "shop")
        assert (row["ru"], row["wu"], row["units"]) == (0, 0, 1), "charged, not metered"
        assert client.call(Op.DROP_PRIVILEGE, b"Unmetered").status == 0
        assert parse_framing(client.set(b"k", b"v").framing)[2] == b"\0\1"
        row = details(boss, "shop")
        assert (row["ru"], row["wu"], row["units"]) == (0, 1, 2), row
        client.close()


def test_impersonated_requests_do_not_block():
    """One tenant must not block another's: what would be held is answered at once."""
    with start([{"name": "shop", "hard_limit": 0}, {"name": "other"}]) as daemon:
        boss = admin(daemon, "shop")
        begun = time.monotonic()
        frame = boss.set(b"k", b"v", framing=frame_info(4, b"shop"))
        assert frame.status in (St.WOULD_THROTTLE, St.ETMPFAIL, St.THROTTLED_TOO_LONG), show(frame)
        assert time.monotonic() - begun < scaled(SLOT)
        assert boss.select("other").status == 0
        assert boss.set(b"k", b"v", framing=frame_info(4, b"other")).status == 0
        boss.close()


# ---- every request has one outcome ----

def test_requests_are_counted_once():
    """Whatever becomes of it: outcomes add up to the requests sent, kind by kind."""
    def make(number):
        if number % 7 == 0:
            return request(Op.GET, b"missing", opaque=number)
        if number % 11 == 0:
            return request(Op.ADD, b"k0", b"v", set_extras(), opaque=number)
        if number % 13 == 0:
            return request(Op.SET, b"k", b"no extras", opaque=number)
        return put(number)
    with start([{"name": "shop", "hard_limit": 20}], throttle_slot_ms=50,
               throttle_max_wait_ms=100) as daemon:
        clients = enter(daemon, "shop", 9)
        clients[0].hello(Feature.NON_BLOCKING)
        clients[1].hello(Feature.XERROR)
        floods = [Flood([client], make, 8, limit=40) for client in clients]
        with admin(daemon) as boss:
            before = details(boss, "shop")["outcomes"]
            assert clients[2].set(b"k0", b"v").status == 0
            for flood in floods:
                flood.thread.start()
            for flood in floods:
                flood.wait(60)
            told = sum((flood.statuses() for flood in floods), start=collections.Counter())
            row = details(boss, "shop")
            count = {name: n - before[name] for name, n in row["outcomes"].items()}
            assert sum(count.values()) == 9 * 40 + 1, count
            assert count["success"] == told[0] + 1
            assert count["throttled"] == told[St.WOULD_THROTTLE] > 0
            assert count["throttled_too_long"] == told[St.ETMPFAIL] + told[St.THROTTLED_TOO_LONG] > 0
            assert count["invalid"] == told[St.EINVAL] > 0
            assert count["not_done"] == told[St.EEXISTS] > 0
            assert count["miss"] == told[St.ENOENT] > 0
            assert row["num_commands"] == sum(row["outcomes"].values())
        closed(clients)


def test_requests_of_clients_that_went_are_counted_too():
    with start([{"name": "shop", "hard_limit": 0}]) as daemon, admin(daemon) as boss:
        for _ in range(10):
            client = enter(daemon, "shop")
            client.send(put(1))
            poll(lambda: details(boss, "shop")["held"] == 1, what="held")
            client.close()
            poll(lambda: details(boss, "shop")["held"] == 0, what="gone")
        outcomes = details(boss, "shop")["outcomes"]
        assert sum(n for name, n in outcomes.items() if name != "session") == 10, outcomes
