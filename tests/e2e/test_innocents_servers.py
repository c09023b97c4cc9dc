"""test_innocents_servers - one of several servers is slow, or says nothing; who asks the others is
neither refused nor kept waiting.

The innocents' connections ask only the healthy servers' keys. The culprit's connections share with
them the tenant, the upstream and the worker, and ask the slow server's keys alone, or all keys.
"""
# SPDX-License-Identifier: BSD-3-Clause

import time

import pytest

from innocent_tools import Party, key_of, measures, near, scene, tell  # noqa: F401
from mcbin import Feature, Op, request

SERVERS, SICK = 4, 3
SERVICE_MS, SLOTS = 5, 64
# Of each healthy server, and of the sick one: beyond what it can do at 300 ms.
INNOCENT_RATE, CULPRIT_RATE = 150, 300


def make_sick(store, how):
    """how: milliseconds, or "stopped"."""
    if how == "stopped":
        store.process.pause()
    else:
        store.set(service_ms=how)


def parties(op="get", pipeline=1, times=1.0):
    return {
        "innocents": [Party("healthy%d" % n, server=n, rate=times * INNOCENT_RATE, op=op,
                            connections=40 // pipeline, pipeline=pipeline)
                      for n in range(SERVERS) if n != SICK],
        "culprit": [Party("sick", server=SICK, rate=times * CULPRIT_RATE, connections=200)]}


HOW = (100, 300, "stopped")
# workers, what the innocents do, how many of their requests are behind each other on a connection
FORMS = {"one-worker": (1, "get", 1), "two-workers": (2, "get", 1), "four-workers": (4, "get", 1),
         "writes": (1, "set", 1), "eight-deep": (1, "get", 8)}


@measures
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("form", FORMS)
def test_one_of_four_servers(tell, form, how):  # noqa: F811
    threads, op, pipeline = FORMS[form]
    groups = parties(op, pipeline)
    with scene(SERVERS, threads=threads, service_ms=SERVICE_MS, slots=SLOTS) as here:
        here.fill(*groups["innocents"], *groups["culprit"])
        direct = here.direct(groups, 2)["innocents"]
        with here.front():
            healthy = here.through(groups, 2)["innocents"]
            sick = here.through(groups, 4, {0.2: lambda: make_sick(here.stores[SICK], how)})[
                "innocents"]
    tell(direct, "%s; healthy %s" % (sick, healthy))
    assert sick.unharmed, sick
    assert near(sick.p99, healthy.p99), (sick.p99, healthy.p99)


@pytest.mark.parametrize("how", HOW)
def test_one_of_four_servers_refuses_nobody_else(how):
    groups = parties(times=0.3)
    with scene(SERVERS, service_ms=SERVICE_MS, slots=SLOTS // 4) as here:
        here.fill(*groups["innocents"], *groups["culprit"])
        with here.front():
            sick = here.through(groups, 3, {0.2: lambda: make_sick(here.stores[SICK], how)})[
                "innocents"]
    assert sick.unharmed, sick


# ---- one connection asks all servers ----

def ask_all(clients, prefixes, keys, seconds):
    """Multigets of the keys of all servers, one after the other on each connection. Returns
    {server: [status]}. A healthy server's key may wait for the slow one's before it, since replies
    have an order; nothing is a reason to refuse it."""
    asked = [(server, key_of(prefix, n)) for n in range(keys)
             for server, prefix in enumerate(prefixes)]
    batch = b"".join(request(Op.GETQ, key, opaque=n) for n, (_, key) in enumerate(asked))
    batch += request(Op.NOOP, opaque=len(asked))
    found = {server: [] for server in range(len(prefixes))}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for client in clients:
            client.send(batch)
        for client in clients:
            answered = 0
            while True:
                frame = client.recv(15)
                if frame.opcode == Op.NOOP:
                    break
                found[asked[frame.opaque][0]].append(frame.status)
                answered += 1
            assert answered == len(asked), "%d of %d were answered" % (answered, len(asked))
    return found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", [100, 300])
def test_multigets_that_ask_all_servers(how, threads):
    groups = parties()
    with scene(SERVERS, threads=threads, service_ms=SERVICE_MS, slots=SLOTS) as here:
        here.fill(*groups["innocents"], *groups["culprit"])
        with here.front() as daemon:
            clients = [daemon.client(15, "shop") for _ in range(8)]
            for client in clients:
                client.hello(Feature.XERROR)
            make_sick(here.stores[SICK], how)
            found = ask_all(clients, here.prefixes, here.KEYS, 2)
            for client in clients:
                client.close()
    healthy = {server: sorted(set(statuses)) for server, statuses in found.items()
               if server != SICK}
    assert healthy == {server: [0] for server in healthy}, healthy
