"""test_fairby - where turns are by user or by address, a client that floods costs nobody else of its
tenant.

A store with few tickets, and many connections of one client that ask for more than it can do: its
requests are refused. Another client of the same tenant asks now and then.
"""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import socket

import pytest

import overload_tools as tools
from credit_tools import admin
from mcbin import Client, Feature, Op, St, poll
from openload import Load, statuses
from overload_tools import fill, front, stream
from servers import bucket_details, user_row

TICKETS, SERVICE_MS = 4, 50     # 80 a second
FLOOD = 240                     # connections: their line would take 3 s
TIMEOUT_MS = 2000
KEY, QUIET_KEY = b"flood-key-0001", b"quiet-key-0001"
QUIET = {"user": "bob", "address": "127.0.0.2"}


@contextlib.contextmanager
def scene():
    """(daemon, load): turns by tenant, and the flood at work."""
    users = [user_row(name, buckets={tools.TENANT: ["Read", "Write"]}) for name in ("ann", "bob")]
    with front(store={"service_ms": SERVICE_MS, "slots": TICKETS},
               tenants=[{"name": tools.TENANT, "bind_mode": "off"}],
               server={"users": users, "request_deadline_ms": 20000}, execution_control="fixed",
               read_tickets=TICKETS, write_tickets=TICKETS, queue_timeout_ms=TIMEOUT_MS,
               backend_timeout_ms=20000, key_share_pct=100, tenant_window=0) as (daemon, backend):
        fill(backend, [KEY, QUIET_KEY])
        with Load(stream(daemon, "flood", [KEY], FLOOD, user="ann", pause_s=0.2)) as load:
            yield daemon, load


def quiet_client(daemon, fair_by):
    """bob; or ann from another address."""
    client = Client(daemon.address, 30.0)
    if fair_by == "address":
        peer = client.sock.getpeername()
        client.sock.close()
        client.sock = socket.create_connection(peer, 30.0, source_address=(QUIET["address"], 0))
        client.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.login("ann" if fair_by == "address" else "bob", "pw")
    assert client.select(tools.TENANT).status == 0
    client.hello(Feature.XERROR)
    return client


def refused(load):
    seen = statuses(load.select("flood"))
    return sum(count for status, count in seen.items() if status in tools.REFUSED_QUEUE)


def parties(daemon):
    with admin(daemon) as boss:
        details = bucket_details(boss, tools.TENANT)
        return details["fair_by"], int(details["fair_parties"])


@pytest.mark.parametrize("fair_by", ["user", "address"])
def test_a_flood_costs_only_its_own_party(fair_by):
    with scene() as (daemon, load), quiet_client(daemon, fair_by) as quiet:
        poll(lambda: refused(load) > 0, 30, what="a flood that is refused")
        # The whole tenant floods: the other client is refused with it.
        poll(lambda: quiet.get(QUIET_KEY).status in tools.REFUSED_QUEUE, 60, step=0,
             what="a refusal of the quiet client")
        assert parties(daemon) == ("tenant", 0)

        tools.reload(daemon, tenant={"fair_by": fair_by})
        assert quiet.get(QUIET_KEY) is not None     # one of the old line, perhaps
        poll(lambda: parties(daemon) == (fair_by, 2), 10, what="two parties")
        before = refused(load)
        seen = [quiet.get(QUIET_KEY).status for _ in range(60)]
        assert seen == [St.OK] * 60, seen
        poll(lambda: refused(load) > before, 30, what="a flood that is still refused")

        # And back, while both are at work.
        tools.reload(daemon, tenant={"fair_by": "tenant"})
        poll(lambda: quiet.get(QUIET_KEY).status in tools.REFUSED_QUEUE, 60, step=0,
             what="a refusal of the quiet client")
        load.halt("flood")
        poll(lambda: tools.total(tools.stat(daemon, "tickets"), "out") == 0, 30,
             what="all tickets back")


def test_the_option_is_checked():
    with scene() as (daemon, _), admin(daemon) as boss:
        frame = boss.call(Op.SET_PARAM, "tenant.shop.fair_by", "connection")
        assert frame.status == 0x04 and b"accepted: tenant, user, address" in frame.value
        assert boss.call(Op.SET_PARAM, "tenant.shop.fair_by", "user").status == 0
        assert boss.stat("settings")["tenant.shop.fair_by"] == "user"
