"""test_innocents_tenants - one tenant's requests are slow, or far too many, or all for one key;
other tenants, and other keys of the same tenant, lose nothing by it."""
# SPDX-License-Identifier: BSD-3-Clause

import pytest

from innocent_tools import Party, measures, near, scene, tell  # noqa: F401


# ---- slow requests beside fast ones ----

FAST_MS, SLOW_MS, SLOW_CLIENTS, FAST_RATE = 2, 200, 100, 300
BESIDE = {"fast": [Party("fast", "fast", prefix="f", keys=100, rate=FAST_RATE, connections=400)],
          "slow": [Party("slow", "slow", prefix="s", keys=100, connections=SLOW_CLIENTS,
                         begins=0.2)]}


def beside(slots, threads=1):
    """The store, whose requests of the tenant `slow` are."""
    return scene(tenants=("fast", "slow"), threads=threads, service_ms=FAST_MS, slots=slots,
                 slow={"slow:": SLOW_MS})


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
