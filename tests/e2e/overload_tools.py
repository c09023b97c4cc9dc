"""overload_tools - what the suites of overload share: a daemon before a slow store, streams of
load, the statistics of tickets and bind throttles, and the events in the log."""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import contextlib
import json
import re

import credit_tools
from mcbin import Client, Feature, Op, St, set_extras, show
from openload import Stream, value_of
from servers import to_yaml
from slowstore import SlowStore

TENANT = "shop"
REFUSED_QUEUE = {St.QUEUE_FULL, St.QUEUE_TIMEOUT}


def innocent_keys(count=50):
    return [b"innocent-%06d" % n for n in range(count)]


@contextlib.contextmanager
def front(slow=None, store=None, tenants=(), threads=1, server=None, **upstream):
    """(daemon, slow store): the tenants' items live in the slow store, whose keys begin with the
    tenant's name and a colon. `slow`: {prefix of keys of TENANT: ms}; `store`: options of the
    SlowStore; `server`: options of the server; the rest are the upstream's."""
    rows = list(tenants) or [{"name": TENANT}]
    with SlowStore(slow={"%s:%s" % (TENANT, k): ms for k, ms in (slow or {}).items()},
                   **(store or {})) as backend:
        row = dict({"name": "store", "kind": "memcached",
                    "servers": [{"address": backend.where}]}, **upstream)
        options = dict({"threads": threads, "request_deadline_ms": 2500,
                        "throttle_max_wait_ms": 1000}, **(server or {}))
        with credit_tools.start(rows, store={"upstreams": [row]}, **options) as daemon:
            yield daemon, backend


def reload(daemon, server=None, tenant=None, **upstream):
    """Changes options at run time: the server's, the first tenant's, the upstream's."""
    daemon.config["upstreams"][0].update(upstream)
    daemon.config["tenants"][0].update(tenant or {})
    daemon.write_config(**(server or {}))
    with credit_tools.admin(daemon) as boss:
        frame = boss.call(Op.CONFIG_RELOAD)
        assert frame.status == 0, "%s\n%s" % (show(frame), to_yaml(daemon.config))


def fill(backend, keys, tenant=TENANT):
    """Stores the keys, past the front and the slowness."""
    with Client(backend.memcached.address) as client:
        for key in keys:
            frame = client.call(Op.SET, tenant.encode() + b":" + key, value_of(key), set_extras())
            assert frame.status == 0, show(frame)


def clients(daemon, count, tenant=TENANT, user=None, xerror=True):
    """Connections in a tenant's bucket, whose errors tell why."""
    made = credit_tools.enter(daemon, user or tenant, count) if user is None else []
    for _ in range(count if user else 0):
        client = daemon.client(15.0)
        client.login(user, "pw")
        assert client.select(tenant).status == 0
        made.append(client)
    if xerror:
        for client in made:
            client.hello(Feature.XERROR)
    return made


def stream(daemon, name, keys, connections, **options):
    """A stream of one tenant; `user`, `tenant`, `xerror` as in clients, the rest as in Stream."""
    whom = {k: options.pop(k) for k in ("user", "tenant", "xerror") if k in options}
    return Stream(name, clients(daemon, connections, **whom), keys, **options)


# ---- what the server tells ----

def stat(daemon, group):
    with credit_tools.admin(daemon, TENANT) as boss:
        return boss.stat(group)


def number(rows, name):
    """The number that ends so, whatever block it is in; exactly one."""
    found = [value for key, value in rows.items() if key == name or key.endswith(":" + name)]
    assert len(found) == 1, "%s: %d of %s" % (name, len(found), sorted(rows))
    return int(found[0])


def total(rows, name):
    """The sum over all blocks; those of servers are in their upstream's."""
    found = [int(value) for key, value in rows.items()
             if (key == name or key.endswith(":" + name)) and ":server:" not in key]
    assert found, "%s: none of %s" % (name, sorted(rows))
    return sum(found)


def throttles(daemon):
    """{key: {x, passed, refused, klass}} of the keys that are throttled. Entries are each worker's
    own: x is the largest, the others are sums."""
    found = {}
    for name, value in stat(daemon, "bindthrottle").items():
        if re.fullmatch(r"bindthrottle:\d+", name):
            row = json.loads(value)
            assert row["k"] == "key", row
            found[row["v"].encode()] = {"x": row["allowEveryX"], "passed": row["passed"],
                                        "refused": row["refused"], "klass": row["class"]}
    return found


def counted(daemon, name, tenant=TENANT):
    """One of the tenant's counters of binds."""
    return int(stat(daemon, "bindthrottle")["tenant:%s:%s" % (tenant, name)])


def check_breaker(daemon):
    """No server was given up."""
    rows = stat(daemon, "upstreams")
    assert total(rows, "breaker_opens") == 0, rows
    assert [v for k, v in rows.items() if k.endswith(":state")] == ["closed"], rows


# ---- events ----

EVENT = re.compile(r"(BIND_EVICT|BIND_THROTTLE)\s+(\S+)\s+1\s+(\S+)")
STEP = re.compile(r"bind throttle (incr|decr) class:(\S+) bindName:(\S+) val:(\S+) (\S+)")
Told = collections.namedtuple("Told", "kind klass fields")


def events(daemon):
    """The BIND_ events of the log, in its order."""
    return [Told(kind, klass, dict(part.split("=", 1) for part in data.split("&")))
            for kind, klass, data in EVENT.findall(daemon.stderr())]


def steps(daemon):
    """(incr or decr, class, name, key, what) of the log's lines about X."""
    return STEP.findall(daemon.stderr())
