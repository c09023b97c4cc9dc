"""conftest - fixtures that the end-to-end suites share: the targets of the semantics suites, and a
set of memcached servers that is started once."""
# SPDX-License-Identifier: BSD-3-Clause

import itertools
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import mcbin  # noqa: E402
import servers  # noqa: E402

# What the suites of semantics run against: memcached (the model), and headgate over the embedded
# store with one and two workers, over one memcached, and over three with two workers.
TARGETS = ("memcached", "embedded", "embedded2", "mc1", "mc3")


def pytest_addoption(parser):
    parser.addoption("--target", action="append", choices=TARGETS, default=[],
                     help="run the suites of semantics against these only "
                          "(memcached is the model, the others are headgate)")


def pytest_generate_tests(metafunc):
    if "target" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("target") or TARGETS
        wanted = getattr(metafunc.function, "targets", TARGETS)
        metafunc.parametrize("target", [t for t in chosen if t in wanted], indirect=True,
                             scope="session")


class Farm:
    """Memcached servers started once and lent to every suite; never stopped by one."""

    def __init__(self):
        self.running = []

    def servers(self, count):
        while len(self.running) < count:
            self.running.append(servers.Memcached(memory_mb=128))
        return self.running[:count]

    def stop(self):
        for server in self.running:
            server.stop()


@pytest.fixture(scope="session")
def farm():
    made = Farm()
    yield made
    made.stop()


class Target:
    """Something that speaks the protocol: the model or headgate over one of its stores."""

    def __init__(self, kind, server):
        self.kind, self.server = kind, server
        self.address = server.address
        self.is_model = kind == "memcached"

    def client(self, timeout=5.0):
        return mcbin.Client(self.address, timeout)


def store_config(kind, farm):
    """The upstreams part of a configuration for one kind of store."""
    if kind.startswith("embedded"):
        return {"upstreams": [{"name": "store", "kind": "embedded", "embedded_max_bytes": 1 << 29}]}
    count = {"mc1": 1, "mc3": 3}[kind]
    return {"upstreams": [{"name": "store", "kind": "memcached", "ring": "ketama",
                           "servers": [{"address": server.where}
                                       for server in farm.servers(count)]}]}


@pytest.fixture(scope="session")
def target(request, farm):
    kind = request.param
    if kind == "memcached":
        yield Target(kind, farm.servers(1)[0])
        return
    threads = 2 if kind in ("embedded2", "mc3") else 1
    with servers.Headgate(dict(store_config(kind, farm), threads=threads)) as daemon:
        yield Target(kind, daemon)


# What the suites of row operations run against.
ROW_TARGETS = ("embedded", "embedded2", "mc1", "mc3")


def row_config(kind, farm, **tenant):
    """A configuration with one tenant, for one of the ROW_TARGETS."""
    tenant["name"] = "default"
    if kind.startswith("mc"):
        tenant["upstream"] = "store"
    return dict(store_config(kind, farm), threads=2 if kind in ("embedded2", "mc3") else 1,
                tenants=[tenant])


@pytest.fixture(scope="session")
def row_daemons(farm):
    """kind -> Target, each started at its first use."""
    made = {}

    def of(kind):
        if kind not in made:
            made[kind] = Target(kind, servers.Headgate(row_config(kind, farm)))
        return made[kind]

    yield of
    for target in made.values():
        target.server.stop()


@pytest.fixture(params=ROW_TARGETS)
def row_target(request, row_daemons):
    """Headgate over one of its stores."""
    return row_daemons(request.param)


@pytest.fixture(params=[kind for kind in ROW_TARGETS if kind.startswith("embedded")])
def ordered_target(request, row_daemons):
    """Headgate over a store whose keys have an order."""
    return row_daemons(request.param)


@pytest.fixture
def client(target):
    """A connection of its own to the target."""
    with target.client() as connection:
        yield connection


_names = itertools.count(1)


@pytest.fixture
def key():
    """A key that no other test uses."""
    return b"e2e:%d:%d" % (os.getpid(), next(_names))
