"""test_innocents_servers - one of several servers is slow, or says nothing; who asks the others is
neither refused nor kept waiting.

The innocents' connections ask only the healthy servers' keys. The culprit's connections share with
them the tenant, the upstream and the worker, and ask the slow server's keys alone, or all keys.
"""
# SPDX-License-Identifier: BSD-3-Clause

import time

import pytest

from innocent_tools import ClusterScene, Party, key_of, measures, near, scene, tell  # noqa: F401
from mcbin import Feature, Op, request
from redisservers import RedisCluster

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


# ---- a node of a cluster ----

SLEEP_S = 3


@pytest.fixture(scope="module")
def nodes():
    """A cluster that replaces nobody: the node comes back."""
    cluster = RedisCluster(replicas=0, timeout_ms=30000, cluster_require_full_coverage="no")
    yield cluster
    cluster.stop()


def put_to_sleep(node):
    with node.client(timeout=SLEEP_S + 10) as client:
        client.command("DEBUG", "SLEEP", str(SLEEP_S))


def cluster_parties(op, pipeline):
    return {
        "innocents": [Party("awake%d" % n, server=n, rate=150, op=op, connections=40 // pipeline,
                            pipeline=pipeline) for n in (0, 1)],
        "culprit": [Party("asleep", server=2, rate=200, connections=200)]}


def with_a_node_asleep(here, op, pipeline, seconds):
    groups = cluster_parties(op, pipeline)
    here.fill(*groups["innocents"], *groups["culprit"])
    direct = here.direct(groups, 1)["innocents"]
    healthy = here.through(groups, 2)["innocents"]
    sick = here.through(groups, seconds, {0.2: lambda: put_to_sleep(here.stores[2])})["innocents"]
    return direct, healthy, sick


@measures
@pytest.mark.parametrize("form", FORMS)
def test_a_cluster_node_that_sleeps(tell, nodes, form):  # noqa: F811
    threads, op, pipeline = FORMS[form]
    here = ClusterScene(nodes, threads)
    with here.front():
        direct, healthy, sick = with_a_node_asleep(here, op, pipeline, SLEEP_S + 1)
    tell(direct, "%s; healthy %s" % (sick, healthy))
    assert sick.unharmed, sick
    assert near(sick.p99, healthy.p99), (sick.p99, healthy.p99)


@pytest.mark.parametrize("op", ["get", "set"])
def test_a_cluster_node_that_sleeps_refuses_nobody_else(nodes, op):
    here = ClusterScene(nodes)
    with here.front():
        sick = with_a_node_asleep(here, op, 1, SLEEP_S)[-1]
    assert sick.unharmed, sick
