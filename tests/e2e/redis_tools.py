"""redis_tools - what the suites of Redis share: a daemon over a server, and what an item looks like
in it."""
# SPDX-License-Identifier: BSD-3-Clause

import struct

from mcbin import Feature, St
from servers import Headgate

TIMEOUT_MS = 400
# For tests that are about something else: on a busy machine a server is slow to answer.
PATIENT = {"backend_timeout_ms": 5000, "connect_timeout_ms": 5000, "queue_timeout_ms": 5000}
DOWN = (St.BACKEND_DOWN, St.BACKEND_TIMEOUT)


def upstream(server, kind="redis", name="store", **options):
    """An upstream of a configuration; `server` has a `where`: an address, or a list of seeds."""
    where = server.where if isinstance(server.where, list) else [server.where]
    return dict({"name": name, "kind": kind, "servers": [{"address": a} for a in where]}, **options)


def config(server, tenants=None, **options):
    """A configuration with short time-outs. Options of the upstream under `upstream`."""
    of_upstream = {"backend_timeout_ms": TIMEOUT_MS, "connect_timeout_ms": 300,
                   "queue_timeout_ms": TIMEOUT_MS, "reconnect_max_ms": 300}
    of_upstream.update(options.pop("upstream", {}))
    return dict({"upstreams": [upstream(server, **of_upstream)],
                 "tenants": tenants or [{"name": "default", "upstream": "store"}]}, **options)


def over(server, tenants=None, **options):
    """A daemon over a server."""
    return Headgate(config(server, tenants, **options))


def client_of(daemon, bucket=None, timeout=10):
    """A connection whose errors have their own statuses."""
    client = daemon.client(timeout, bucket)
    client.hello(Feature.XERROR)
    return client


def item(raw):
    """(flags, CAS, value) of what a Redis holds."""
    flags, cas = struct.unpack_from(">IQ", raw)
    return flags, cas, raw[12:]
