"""test_innocents_loops - clients that go around before a healthy store that is merely full, a store
that becomes quicker or slower under them, and bulk loaders: nobody is refused.

In a closed loop each client waits for its answer: they cannot queue more than they are, and without
a front end all of them are served.
"""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import time

import pytest

from innocent_tools import Party, busy, measures, near, scene, tell  # noqa: F401
from mcbin import Client, Feature, Op, request, set_extras


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
        direct, through = here.compare(everybody, 2, 3)
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


# ---- many connections on a busy machine ----

@measures
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("connections,pipeline", [(2000, 1), (200, 16)])
def test_many_connections_on_a_busy_machine(tell, connections, pipeline, threads):  # noqa: F811
    """Two busy loops beside it. The store does 8,000 a second, so all wait for less than half a
    second."""
    everybody = loop(connections, pipeline=pipeline)
    with scene(threads=threads, service_ms=2, slots=16) as here, busy(2):
        direct, through = here.compare(everybody, 3, 4)
    tell(direct, through)
    assert through.unharmed, through
    assert near(through.p99, direct.p99), (through.p99, direct.p99)


# ---- a store that becomes quicker, or slower, under them ----

CHANGE_AT, WINDOW_S = 2.0, 0.5
# clients, what changes of 16 slots of 20 ms, answers a second after that, within how many seconds;
# 0: at once
CHANGES = {"slots-x4": (500, {"slots": 64}, 3200, 1.0),
           "slots-halved": (200, {"slots": 8}, 400, 0),
           "service-x2": (200, {"service_ms": 40}, 400, 2.5)}


def after(result, changed_s, rate):
    """(seconds from the change to the first window with such a rate, or None; the least rate of
    any window from then on)."""
    windows = result.rates(WINDOW_S, changed_s - result.start_s)
    begins = [begin for begin, seen in windows if seen >= rate]
    return (begins[0] - (changed_s - result.start_s) if begins else None,
            min(seen for _, seen in windows))


@measures
@pytest.mark.parametrize("change,threads", [(change, 1) for change in CHANGES]
                         + [("slots-x4", 4), ("slots-halved", 2)])
def test_a_store_that_changes(tell, change, threads):  # noqa: F811
    clients, options, rate, within_s = CHANGES[change]
    everybody = loop(clients)
    with scene(threads=threads, service_ms=20, slots=16) as here:
        here.fill(*everybody)

        def run(how):
            times = []

            def alter():
                here.stores[0].set(**options)
                times.append(time.time())
            here.stores[0].set(service_ms=20, slots=16)
            result = how(everybody, CHANGE_AT + 5, {CHANGE_AT: alter})
            return result, *after(result, times[0], 0.95 * rate)
        direct = run(here.direct)
        with here.front():
            through, full, least = run(here.through)
    words = ["%s; full after %s, least %.0f/s" % (
        seen, "never" if when is None else "%.1f s" % when, slowest)
        for seen, when, slowest in (direct, (through, full, least))]
    tell(*words)
    assert through.unharmed, through
    if within_s:
        assert full is not None and full <= within_s, words[1]
    else:
        assert least >= 0.9 * direct[2], words


# ---- bulk loaders, and slow readers ----

BATCH = 500
# As many innocents as a store's spare time allows, of another tenant.
READER = Party("reader", "readers", prefix="r", keys=100, rate=100, connections=50)


@contextlib.contextmanager
def connect(count, daemon=None, store=None):
    """Connections with the daemon, whose errors tell why, or straight with a store."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(daemon.client(30, "shop") if daemon
                                       else Client(store.address, 30)) for _ in range(count)]
        for client in clients if daemon else ():
            client.hello(Feature.XERROR)
        yield clients


def load_in_bulk(clients, rounds):
    """Each stores BATCH items by quiet sets, then asks for a noop, so many times; the refusals:
    (opcode, status)."""
    refused = []
    for turn in range(rounds):
        for place, client in enumerate(clients):
            client.send(b"".join(
                request(Op.SETQ, b"bulk:%d:%d:%d" % (turn, place, n), b"v" * 100, set_extras())
                for n in range(BATCH)) + request(Op.NOOP))
        for client in clients:
            frame = client.recv()
            while frame.opcode != Op.NOOP:
                refused.append((frame.opcode, frame.status))
                frame = client.recv()
    return refused


# connections, slots, service ms: all batches of a round together take less than the time-out
@pytest.mark.parametrize("connections,slots,service_ms", [(1, 8, 10), (8, 16, 2), (1, 64, 1)])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_bulk_loader_on_a_cold_start(threads, connections, slots, service_ms):
    with scene(tenants=("shop", "readers"), threads=threads, service_ms=service_ms,
               slots=slots) as here:
        with here.front() as daemon, connect(connections, daemon) as clients:
            refused = load_in_bulk(clients, 2)
        stored = here.stores[0].stats()["served"]
    assert refused == [], "%d, as %s" % (len(refused), refused[0])
    assert stored == 2 * BATCH * connections, stored


@measures
@pytest.mark.parametrize("hogs", [0, 2])
@pytest.mark.parametrize("threads", [1, 4])
def test_a_bulk_loader_beside_readers(tell, threads, hogs):  # noqa: F811
    """Eight connections load in bulk; with as many busy loops on the machine as it has cores."""
    with scene(tenants=("shop", "readers"), threads=threads, service_ms=2, slots=16) as here, \
            busy(hogs):
        here.fill(READER)

        def run(how, clients):
            found = []
            result = how([READER], 4, {0.2: lambda: found.extend(load_in_bulk(clients, 8))})
            return result, len(found)

        with connect(8, store=here.stores[0]) as clients:
            direct, _ = run(here.direct, clients)
        with here.front() as daemon, connect(8, daemon) as clients:
            through, refused = run(here.through, clients)
    tell(direct, "%s; of %d stored %d refused" % (through, 8 * 8 * BATCH, refused))
    assert refused == 0, "%d refused" % refused
    assert through.unharmed, through


VALUE = b"v" * 100000


@pytest.mark.parametrize("threads", [1, 2])
def test_a_burst_of_slow_readers(threads):
    """Forty clients ask for a megabyte each and do not read for longer than anybody may wait; their
    own tenant's other clients are served meanwhile, and so are they when they read."""
    other = READER._replace(tenant="shop")
    with scene(threads=threads, service_ms=2, slots=16) as here:
        here.fill(other)
        with Client(here.stores[0].memcached.address) as direct:
            assert direct.set(b"shop:large", VALUE).status == 0
        with here.front() as daemon, connect(40, daemon) as readers:
            for reader in readers:
                reader.send(b"".join(request(Op.GET, b"large", opaque=n) for n in range(10)))
            through = here.through([other], 2)
            statuses = [reader.recv().status for reader in readers for _ in range(10)]
    assert through.unharmed, through
    assert statuses.count(0) == 400, sorted(set(statuses))
