"""test_innocents_tenants - one tenant's requests are slow, or far too many, or all for one key;
other tenants, and other keys of the same tenant, lose nothing by it."""
# SPDX-License-Identifier: BSD-3-Clause

import pytest

from innocent_tools import Party, Result, measures, near, scene, tell, wanted  # noqa: F401


# ---- slow requests beside fast ones ----

FAST_MS, SLOW_MS, SLOW_CLIENTS, FAST_RATE = 2, 200, 100, 300
BESIDE = {"fast": [Party("fast", "fast", prefix="f", keys=100, rate=FAST_RATE, connections=400)],
          "slow": [Party("slow", "slow", prefix="s", keys=100, connections=SLOW_CLIENTS,
                         begins=0.2)]}


def beside(slots, threads=1, slow=("slow",)):
    """The store, whose requests of the tenants `slow` are."""
    return scene(tenants=("fast", *slow), threads=threads, service_ms=FAST_MS, slots=slots,
                 slow={name + ":": SLOW_MS for name in slow})


@measures
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("slots", [16, 1000])
def test_fast_requests_beside_slow_ones(tell, slots, threads):  # noqa: F811
    with beside(slots, threads) as here:
        here.fill(*BESIDE["fast"], *BESIDE["slow"])
        alone = here.direct(BESIDE["fast"], 2)
        direct = here.direct(BESIDE, 3)
        with here.front():
            through = here.through(BESIDE, 5)
    fast, slow = through["fast"], through["slow"]
    tell("fast %s, alone %s, slow %s" % (direct["fast"], alone, direct["slow"]),
         "fast %s, slow %s" % (fast, slow))
    assert fast.unharmed, fast
    if slots == 16:
        assert fast.p99 <= 500, fast
    else:
        assert near(fast.p99, alone.p99, 3), (fast.p99, alone.p99)
    assert slow.rate >= 0.8 * direct["slow"].rate, (slow.rate, direct["slow"].rate)


@measures
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_fast_requests_beside_ten_slow_tenants(tell, threads):  # noqa: F811
    """Each of which may have a ticket, so together they have more than the store does at a time."""
    slow = ["slow%d" % n for n in range(10)]
    groups = {"fast": BESIDE["fast"],
              "slow": [Party(name, name, prefix="s", keys=100, connections=SLOW_CLIENTS // 10,
                             begins=0.2) for name in slow]}
    with beside(16, threads, slow) as here:
        here.fill(*groups["fast"], *groups["slow"])
        direct = here.direct(groups, 3)
        with here.front():
            through = here.through(groups, 5)
    fast, slow = through["fast"], through["slow"]
    tell("fast %s, slow %s" % (direct["fast"], direct["slow"]),
         "fast %s, slow %s" % (fast, slow))
    assert fast.lost_share <= 0.05, fast
    assert fast.p50 <= direct["fast"].p50, (fast.p50, direct["fast"].p50)
    assert slow.rate >= 0.8 * direct["slow"].rate, (slow.rate, direct["slow"].rate)


@wanted
@pytest.mark.parametrize("slots", [16, 1000])
def test_fast_requests_beside_slow_ones_are_not_refused(slots):
    groups = {"fast": [BESIDE["fast"][0]._replace(rate=100)], "slow": BESIDE["slow"]}
    with beside(slots) as here:
        here.fill(*groups["fast"], *groups["slow"])
        with here.front():
            fast = here.through(groups, 3)["fast"]
    assert fast.unharmed, fast


# ---- keys that take long ----

DEAR_STORE = {"service_ms": 10, "slots": 8}
DEAR_RATE = 300


def dear(service_ms, op, keys, rate=DEAR_RATE):
    """Innocents with many keys, and for each dear key of their tenant clients that go around."""
    clients = (40 if service_ms <= 1000 else 64) // keys
    return {"innocents": [Party("innocents", prefix="i", keys=100, rate=rate, connections=400)],
            "culprits": [Party("dear%d" % n, key="dear-key-%d" % n, op=op, connections=clients,
                               begins=0.2)
                         for n in range(keys)]}


def before_dear(service_ms, threads=1):
    return scene(threads=threads, slow={"shop:dear": service_ms}, **DEAR_STORE)


@measures
@pytest.mark.parametrize("service_ms,op,keys,threads",
                         [(service_ms, op, keys, 1) for service_ms in (500, 1500, 3000)
                          for op in ("get", "set") for keys in (1, 5)]
                         + [(500, "get", 1, 2), (500, "get", 1, 4)])
def test_keys_that_take_long(tell, service_ms, op, keys, threads):  # noqa: F811
    groups = dear(service_ms, op, keys)
    with before_dear(service_ms) as here:
        here.fill(*groups["innocents"], *groups["culprits"])
        alone = here.direct(groups["innocents"], 2)
        direct = here.direct(groups, 3)["innocents"]
    # A store of its own: what the other has begun keeps its slots for seconds.
    with before_dear(service_ms, threads) as here:
        here.fill(*groups["innocents"], *groups["culprits"])
        with here.front():
            through = here.through(groups, 5)["innocents"]
    worst = through.worst_share()
    tell("%s, alone %s" % (direct, alone), "%s, lost %.1f %%, in the worst second %.1f %%" % (
        through, 100 * through.lost_share, 100 * worst))
    if keys == 1:
        assert worst <= 0.01, worst
        assert near(through.p99, alone.p99, 5), (through.p99, alone.p99)
    else:
        # Wanted is 5 % at most; five keys fill most slots before anything is known of them.
        assert through.lost_share < direct.lost_share, through


@wanted
@pytest.mark.parametrize("op", ["get", "set"])
@pytest.mark.parametrize("service_ms", [500, 3000])
def test_a_key_that_takes_long_costs_nobody_else(service_ms, op):
    groups = dear(service_ms, op, 1, rate=100)
    with before_dear(service_ms) as here:
        here.fill(*groups["innocents"], *groups["culprits"])
        with here.front():
            through = here.through(groups, 4)["innocents"]
    # Nothing is known of the key before its first answer is late.
    assert through.lost_share <= 0.01, through


# ---- a tenant that floods ----

FLOOD_MS, FLOOD_SLOTS = 20, 10
CAPACITY = FLOOD_SLOTS * 1000 / FLOOD_MS
OTHERS = ["t%02d" % n for n in range(99)]
# Times the capacity -> the least goodput, as a share of what could be done.
GOODPUT = {0.8: 0.95, 1.2: 0.95, 2: 0.95, 5: 0.90, 10: 0.85}


def flood(times):
    """99 tenants that together ask for half of what the store can do, and one for the rest of
    `times` its capacity."""
    rate = CAPACITY / 2 / len(OTHERS)
    others = [Party(name, name, prefix="o", keys=10, rate=rate, connections=6) for name in OTHERS]
    return {"others": others[:50], "more": others[50:],
            "flood": [Party("flood", "flood", prefix="f", keys=100, connections=1000, begins=0.2,
                            rate=(times - 0.5) * CAPACITY)]}


def others_of(results):
    return Result.sum([results["others"], results["more"]])


def flooded(tell, times, threads=1, **store):  # noqa: F811
    """(the others' result, their result alone, goodput as a share of what could be done, the same
    without the front end)."""
    groups = flood(times)
    with scene(tenants=[*OTHERS, "flood"], threads=threads, service_ms=FLOOD_MS,
               slots=FLOOD_SLOTS, **store) as here:
        for parties in groups.values():
            here.fill(*parties)
        alone = others_of(here.direct({"others": groups["others"], "more": groups["more"]}, 2))
        direct = here.direct(groups, 3)
        with here.front():
            through = here.through(groups, 6)
    possible = CAPACITY * min(1.0, times)
    goodput, without = (sum(result.rate for result in results.values()) / possible
                        for results in (through, direct))
    others = others_of(through)
    tell("others %s, alone %s, goodput %.2f" % (others_of(direct), alone, without),
         "others %s, flood %s, goodput %.2f" % (others, through["flood"], goodput))
    return others, alone, goodput, without


@measures
@pytest.mark.parametrize("times,threads", [(times, 1) for times in GOODPUT] + [(5, 2), (5, 4)])
def test_a_tenant_that_floods(tell, times, threads):  # noqa: F811
    others, alone, goodput, _ = flooded(tell, times, threads)
    assert others.unharmed, others
    assert others.p99 <= 3 * alone.p99 + FLOOD_MS, (others.p99, alone.p99)
    assert goodput >= GOODPUT[times], goodput


# ---- a key that is asked for most, and costs no more than others ----

def popular(clients):
    """Clients that go around; four of five ask for one key."""
    return {"hot": [Party("hot", key="hot-key", connections=clients * 4 // 5)],
            "cold": [Party("cold", prefix="c", keys=200, connections=clients // 5)]}


@measures
@pytest.mark.parametrize("clients,threads", [(50, 1), (100, 1), (100, 4), (200, 1)])
def test_a_hot_key_that_is_cheap(tell, clients, threads):  # noqa: F811
    groups = popular(clients)
    with scene(threads=threads, service_ms=10, slots=8) as here:
        here.fill(*groups["hot"], *groups["cold"])
        direct = here.direct(groups, 2)
        with here.front():
            through = here.through(groups, 5)
    tell("hot %s, cold %s" % (direct["hot"], direct["cold"]),
         "hot %s, cold %s" % (through["hot"], through["cold"]))
    assert through["hot"].unharmed, through["hot"]
    assert through["cold"].unharmed, through["cold"]
    goodput, without = (sum(result.rate for result in results.values())
                        for results in (through, direct))
    assert goodput >= 0.95 * without, (goodput, without)
    assert through["cold"].rate >= 0.95 * direct["cold"].rate, through["cold"]


# ---- a store whose throughput falls beyond its knee ----

@measures
@pytest.mark.parametrize("times", [2, 5])
def test_a_flood_before_a_store_with_a_knee(tell, times):  # noqa: F811
    """When everybody is let in, as without the front end, the store does a twentieth."""
    others, alone, goodput, without = flooded(tell, times, knee_fall=0.05, noise=3)
    assert others.unharmed, others
    assert others.p99 <= 3 * alone.p99 + FLOOD_MS, (others.p99, alone.p99)
    assert goodput >= GOODPUT[times], goodput
    assert goodput > without, (goodput, without)


@measures
@pytest.mark.parametrize("clients", [100, 200])
def test_a_loop_before_a_store_with_a_knee(tell, clients):  # noqa: F811
    everybody = [Party("loop", prefix="l", keys=200, connections=clients)]
    with scene(service_ms=FLOOD_MS, slots=FLOOD_SLOTS, knee_fall=0.05, noise=3) as here:
        direct, through = here.compare(everybody, 2, 6)
    tell(direct, through)
    assert through.unharmed, through
    assert through.rate >= max(0.95 * direct.rate, 0.85 * CAPACITY), (through.rate, direct.rate)
