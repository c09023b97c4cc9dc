"""test_innocents_loops - clients that go around before a healthy store that is merely full, a store
that becomes quicker or slower under them, and bulk loaders: nobody is refused.

In a closed loop each client waits for its answer: they cannot queue more than they are, and without
a front end all of them are served.
"""
# SPDX-License-Identifier: BSD-3-Clause

import pytest

from innocent_tools import Party, measures, scene, tell  # noqa: F401


def loop(clients, op="get", **more):
    """Clients that go around, over many keys."""
    return [Party("loop", keys=200, connections=clients, op=op, **more)]


# ---- a healthy store that is full ----

# slots, service ms, clients: the wait without a front end is clients x service / slots
FULL = [(16, 20, 50), (16, 20, 100), (16, 20, 200), (16, 20, 500), (8, 2, 200), (8, 2, 500)]
# workers, what the clients do, how many requests of each are under way
FORMS = {"one-worker": (1, "get", 1), "two-workers": (2, "get", 1), "four-workers": (4, "get", 1),
         "writes": (1, "set", 1), "eight-deep": (1, "get", 8)}


@measures
@pytest.mark.parametrize("form,slots,service_ms,clients",
                         [("one-worker", *full) for full in FULL]
                         + [(form, *full) for form in list(FORMS)[1:]
                            for full in ((16, 20, 200), (8, 2, 500))])
def test_a_full_store(tell, form, slots, service_ms, clients):  # noqa: F811
    threads, op, pipeline = FORMS[form]
    everybody = loop(clients // pipeline, op, pipeline=pipeline)
    with scene(threads=threads, service_ms=service_ms, slots=slots) as here:
        here.fill(*everybody)
        direct = here.direct(everybody, 2)
        with here.front():
            through = here.through(everybody, 3)
    tell(direct, through)
    assert through.unharmed, through
    assert through.rate >= 0.95 * direct.rate, (through.rate, direct.rate)


@pytest.mark.parametrize("slots,service_ms,clients", [(16, 20, 50), (16, 20, 200), (8, 5, 100)])
def test_a_full_store_refuses_nobody(slots, service_ms, clients):
    everybody = loop(clients)
    with scene(service_ms=service_ms, slots=slots) as here:
        here.fill(*everybody)
        with here.front():
            through = here.through(everybody, 2)
    assert through.unharmed, through
