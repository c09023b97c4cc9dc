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
