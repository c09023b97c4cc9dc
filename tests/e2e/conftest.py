"""conftest - what the end-to-end suites share: marks, a bound for every test, the order of a run in
several processes, the targets of the semantics suites, and servers that are started once."""
# SPDX-License-Identifier: BSD-3-Clause

import ctypes
import itertools
import os
import sys
import threading

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

import mcbin  # noqa: E402
import redisservers  # noqa: E402
import servers  # noqa: E402

# What the suites of semantics run against: memcached (the model), and headgate over the embedded
# store with one and two workers, over one memcached, over three with two workers, over a Redis, over
# one with two workers that have so few connections that one worker has them all, and over a Redis
# Cluster with two workers.
TARGETS = ("memcached", "embedded", "embedded2", "mc1", "mc3", "redis", "redis2", "cluster")

# What the suites of row operations run against; on a cluster ranges are off unless asked for.
ROW_TARGETS = ("embedded", "embedded2", "mc1", "mc3", "redis", "redis2", "cluster",
               "cluster-ranges")


def has_order(kind):
    """Whether a store of that kind serves ranges."""
    return not kind.startswith("mc") and kind != "cluster"


def threads_of(kind):
    """Workers of the daemon over a kind of store: one and two take turns, to have seen both."""
    return 2 if kind in ("embedded2", "mc3", "redis2") or kind.startswith("cluster") else 1


# The quick check runs every test that has none of the first five marks: eight at a time, on a build
# with sanitizers.
MARKS = (
    "alone: measures time, rates or fairness, or fills the machine; deep check, nothing beside it",
    "deep(why): too long for the quick check; deep check, beside others",
    "foreign: needs clients of other languages (Ruby, PHP, Node, pylibmc); deep check, beside others",
    "browser: needs Chromium; deep check, beside others",
    "prometheus: needs Prometheus and promtool; deep check, beside others",
    "scene: measures what innocents lose, or is not reached yet; make bench-innocents, in no check",
    "threaded: has several workers at work; also run under ThreadSanitizer in the deep check",
    "patient(seconds): may take longer than other tests before it is given up")
BOUND_S = 120  # of each part of a test: its setup, itself, its end

# The slowest suites and tests, slowest first: a run in several processes starts with them.
LONGEST = ("[cluster", "test_redis_hostile", "test_redis_cluster", "test_tls_upstreams", "test_restart",
           "test_tls.py", "test_top", "test_reload", "test_http_hostile", "test_chaos",
           "test_reconnects_are_spread", "test_bindevict", "test_hotkeys",
           "test_semantics", "test_hbase", "test_load_open", "test_failures")


def pytest_configure(config):
    for mark in MARKS:
        config.addinivalue_line("markers", mark)


# ---- no test takes for ever ----

class Overtime(pytest.fail.Exception):
    """A part of a test did not end within its bound."""

    def __init__(self):
        super().__init__("no end within the bound of a test")


def _give_up(thread, ended, seconds):
    """Raises in the test's thread, which need not be the main one. A thread that waits for ever
    hears of it never: then the process ends, with all it has started."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Overtime))
    if not ended.wait(seconds):
        servers.sweep()
        os._exit(3)


def _bounded(item):
    mark = item.get_closest_marker("patient")
    seconds, ended = mcbin.scaled(mark.args[0] if mark else BOUND_S), threading.Event()
    timer = threading.Timer(seconds, _give_up, (threading.get_ident(), ended, seconds))
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()
    ended.set()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    yield from _bounded(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    yield from _bounded(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    yield from _bounded(item)


# ---- several processes: pytest -n 8 --dist loadgroup ----

def _group(item):
    """The group of tests that must run in one process because they share a fixture of a module or
    of the session; None: any process."""
    wide = ("module", "package", "session")
    shared = [name for name, made in item._fixtureinfo.name2fixturedefs.items()
              if made[-1].baseid and made[-1].scope in wide and name not in ("farm", "row_daemons")]
    spec = getattr(item, "callspec", None)
    kinds = [name for name in sorted(spec.params if spec else ())
             if name in shared or name in ("row_target", "ordered_target")]
    if any(str(spec.params[name]).startswith("cluster") for name in kinds):
        return "cluster"    # six servers, which are started once
    numbers = [str(spec.indices[name]) for name in kinds]
    return "-".join([item.path.stem, *numbers]) if shared or kinds else None


def _rank(item):
    """The place of a test's suite, or of the test, in LONGEST."""
    places = [place for place, name in enumerate(LONGEST) if name in item.nodeid]
    return min(places, default=len(LONGEST))


def _leave_scenes(config, items):
    """Scenes run only when they are asked for."""
    scenes = [item for item in items if item.get_closest_marker("scene")]
    if scenes and "scene" not in (config.option.markexpr or ""):
        items[:] = [item for item in items if item not in scenes]
        config.hook.pytest_deselected(items=scenes)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config, items):
    _leave_scenes(config, items)
    spread = hasattr(config, "workerinput")
    if spread:
        for item in items:
            group = _group(item)
            if group:
                item.add_marker(pytest.mark.xdist_group(group))
    for item in items:
        reason = item.get_closest_marker("deep")
        assert reason is None or reason.args, "%s: deep does not say why" % item.nodeid
    yield
    if spread:
        items.sort(key=_rank)


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
    """Servers started once and lent to every suite; never stopped by one."""

    DATABASES = 64

    def __init__(self):
        self.running = []
        self._redis = self._cluster = None
        self._databases = itertools.count()

    def servers(self, count):
        while len(self.running) < count:
            self.running.append(servers.Memcached(memory_mb=128))
        return self.running[:count]

    def redis(self):
        """(a Redis, a database of it that nobody else has)"""
        if self._redis is None:
            self._redis = redisservers.Redis(databases=self.DATABASES)
        database = next(self._databases)
        assert database < self.DATABASES
        return self._redis, database

    def cluster(self):
        """A Redis Cluster that is never reshaped. Its one database is everybody's."""
        if self._cluster is None:
            # Patient: nobody shall be replaced because this machine is busy.
            self._cluster = redisservers.RedisCluster(timeout_ms=15000)
        return self._cluster

    def stop(self):
        for server in self.running:
            server.stop()
        if self._redis is not None:
            self._redis.stop()
        if self._cluster is not None:
            self._cluster.stop()


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
        self.ordered = has_order(kind)

    def client(self, timeout=mcbin.PATIENCE):
        return mcbin.Client(self.address, timeout)


def store_config(kind, farm):
    """The upstreams part of a configuration for one kind of store."""
    if kind.startswith("embedded"):
        return {"upstreams": [{"name": "store", "kind": "embedded", "embedded_max_bytes": 1 << 29}]}
    if kind.startswith("redis"):
        server, database = farm.redis()
        few = {"pool_max_connections": 2} if kind == "redis2" else {}
        return {"upstreams": [dict({"name": "store", "kind": "redis", "database": database,
                                    "servers": [{"address": server.where}]}, **few)]}
    if kind.startswith("cluster"):
        ranges = {"ranges": "on", "pool_max_connections": 2} if kind == "cluster-ranges" else {}
        return {"upstreams": [dict({"name": "store", "kind": "redis-cluster",
                                    "servers": [{"address": where}
                                                for where in farm.cluster().where]}, **ranges)]}
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
    with servers.Headgate(dict(store_config(kind, farm), threads=threads_of(kind))) as daemon:
        yield Target(kind, daemon)


def row_config(kind, farm, **tenant):
    """A configuration with one tenant, for one of the ROW_TARGETS."""
    tenant["name"] = "default"
    if not kind.startswith("embedded"):
        tenant["upstream"] = "store"
    return dict(store_config(kind, farm), threads=threads_of(kind), tenants=[tenant])


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


@pytest.fixture(params=[kind for kind in ROW_TARGETS if has_order(kind)])
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


def own_rows(target):
    """A client of a table that no other test uses."""
    from tablebin import Rows  # which compiles the protocol: for those only that use it
    with target.client() as connection:
        yield Rows(connection, "t%d-%d" % (os.getpid(), next(_names)))


@pytest.fixture
def rows(row_target):
    yield from own_rows(row_target)


@pytest.fixture
def ordered(ordered_target):
    """The same, where keys have an order; elsewhere see test_ranges_need_order."""
    yield from own_rows(ordered_target)
