"""test_states - tenants that are paused or disabled: nothing hangs, every request is accounted for,
and the state outlives restarts and reloads until it is unset."""
# SPDX-License-Identifier: BSD-3-Clause

import json

import pytest

from flood import Flood
from mcbin import Feature, Op, St, error_json, poll, request
from servers import ADMIN, FakeBackend, Headgate, bucket_details, user_row

pytestmark = pytest.mark.threaded


def get(number):
    return request(Op.GET, b"key%d" % (number % 100), opaque=number)


def state_of(daemon, tenant="shop"):
    rows = json.loads(daemon.ctl("--json", "buckets").stdout)
    return next(row["state"] for row in rows if row["name"] == tenant)


def tenants(**shop):
    return [{"name": "default"}, {"name": "shop", **shop}]


@pytest.fixture
def daemon():
    with Headgate({"tenants": tenants()}) as it:
        yield it


def ask(daemon, features=(), tenant="shop"):
    """What a get of a new connection is answered."""
    with daemon.client(bucket=tenant) as client:
        if features:
            client.hello(*features)
        return client.call(Op.GET, b"key")


def test_statuses(daemon):
    """Who knows XERROR is told why and for how long; others get a status that every client knows."""
    daemon.ctl("pause", "shop")
    assert state_of(daemon) == "paused" and state_of(daemon, "default") == "active"
    assert ask(daemon).status == St.ETMPFAIL
    frame = ask(daemon, [Feature.XERROR, Feature.JSON])
    assert frame.status == St.BUCKET_PAUSED
    error = error_json(frame)["error"]
    assert "paused" in error["context"] and error["state"] == "paused", error
    assert error["retry_after_ms"] == 1000, error
    assert ask(daemon, tenant="default").status == St.ENOENT
    # Those who are inside stay; nobody else comes in.
    with daemon.client(bucket="shop") as inside, daemon.client() as outside:
        daemon.ctl("disable", "shop")
        assert state_of(daemon) == "disabled"
        assert inside.call(Op.GET, b"key").status == St.EACCESS
        assert inside.call(Op.NOOP).status == 0
        assert outside.call(Op.SELECT_BUCKET, b"shop").status == St.EACCESS
        daemon.ctl("resume", "shop")
        assert inside.call(Op.GET, b"key").status == St.ENOENT
        assert outside.call(Op.SELECT_BUCKET, b"shop").status == 0
    assert state_of(daemon) == "active"
    with daemon.client(bucket="shop") as client:
        outcomes = bucket_details(client, "shop")["outcomes"]
    assert (outcomes["paused"], outcomes["disabled"]) == (2, 1), outcomes


def test_errors(daemon):
    done = daemon.ctl("pause", "nobody", check=False)
    assert done.returncode == 1 and "nobody" in done.stderr, done
    for args in (["pause"], ["resume", "a", "b"], ["disable", ""], ["pause", "x" * 101]):
        assert daemon.ctl(*args, check=False).returncode == 2, args
    done = daemon.ctl("set", "bucket", "shop", "state=asleep", check=False)
    assert done.returncode == 1 and "active, paused, disabled" in done.stderr, done
    done = daemon.ctl("--json", "pause", "shop")
    assert json.loads(done.stdout) == {"tenant": "shop", "state": "paused"}


def test_who_may():
    """Who manages a tenant's limits does not open what the operator has closed."""
    users = {"users": [user_row("root", privileges=ADMIN, buckets={"*": ["Stats"]}),
                       user_row("shop", buckets={"shop": ["Read", "BucketThrottleManagement"]})]}
    with Headgate({"tenants": tenants()}, users=users) as daemon:
        env = {"HEADGATE_PASSWORD": "pw"}
        daemon.ctl("disable", "shop", user="root", env=env)
        done = daemon.ctl("resume", "shop", user="shop", env=env, check=False)
        assert done.returncode == 1 and "NodeSupervisor" in done.stderr, done
        daemon.ctl("set", "bucket", "shop", "hotkey_mode=off", user="shop", env=env)


def test_unthrottled_users_are_not_exempt():
    users = {"users": [user_row("root", privileges=ADMIN, buckets={"*": ["Stats"]}),
                       user_row("shop", buckets={"shop": ["Read", "Unthrottled"]},
                                privileges=["Unthrottled"])]}
    with Headgate({"tenants": tenants()}, users=users) as daemon, daemon.client() as client:
        client.login("shop", "pw")
        assert client.call(Op.GET, b"k").status == St.ENOENT
        daemon.ctl("pause", "shop", user="root", env={"HEADGATE_PASSWORD": "pw"})
        assert client.call(Op.GET, b"k").status == St.ETMPFAIL


def test_it_is_kept(daemon):
    """Over a restart and a reload, even if the file says otherwise; unset ends it."""
    daemon.ctl("pause", "shop")
    daemon.restart()
    assert state_of(daemon) == "paused" and ask(daemon).status == St.ETMPFAIL
    daemon.write_config(tenants=tenants(state="active", hard_limit=5000))
    daemon.ctl("reload")
    assert state_of(daemon) == "paused" and ask(daemon).status == St.ETMPFAIL
    assert "'state' of tenant 'shop' was set by opcode" in daemon.stderr()
    daemon.ctl("unset", "bucket", "shop", "state")
    assert state_of(daemon) == "active" and ask(daemon).status == St.ENOENT
    daemon.write_config(tenants=tenants(state="disabled"))
    daemon.ctl("reload")
    assert state_of(daemon) == "disabled"
    daemon.ctl("resume", "shop")
    assert ask(daemon).status == St.ENOENT
    daemon.ctl("unset", "bucket", "shop")
    assert state_of(daemon) == "disabled"


def test_held_and_parked_requests_are_answered_at_once():
    """A request that waits for credits is refused when its tenant is paused; what a server has
    comes back as ever."""
    at_store = []
    store = FakeBackend(lambda connection, frame: at_store.append((connection, frame)))
    config = {"tenants": [{"name": "default", "upstream": "main"},
                          {"name": "shop", "upstream": "main", "hard_limit": 1},
                          {"name": "slow", "upstream": "far"}],
              "upstreams": [{"name": "main", "kind": "embedded"},
                            {"name": "far", "kind": "memcached",
                             "backend_timeout_ms": 60000,
                             "servers": [{"address": store.where}]}],
              "throttle_max_wait_ms": 60000, "request_deadline_ms": 60000}
    try:
        with Headgate(config) as daemon, daemon.client(bucket="shop") as client, \
                daemon.client(bucket="slow") as other:
            for number in range(20):
                client.send(request(Op.GET, b"k", opaque=number))
            poll(lambda: json.loads(daemon.ctl("--json", "buckets").stdout)[1]["held"] == 1,
                 what="held")
            other.send(request(Op.GET, b"k", opaque=1))
            poll(lambda: at_store, what="sent to the store")
            daemon.ctl("pause", "shop")
            statuses = [client.recv().status for _ in range(20)]
            assert St.ETMPFAIL in statuses and statuses[-1] == St.ETMPFAIL, statuses
            assert set(statuses) <= {St.ENOENT, St.ETMPFAIL}, statuses
            daemon.ctl("pause", "slow")
            assert other.silent(0.1), "what is at the store is answered by the store"
            other.send(request(Op.GET, b"l", opaque=2))
            at_store[0][0].reply(at_store[0][1], status=0x01)
            assert [(f.opaque, f.status) for f in (other.recv(), other.recv())] == \
                [(1, St.ENOENT), (2, St.ETMPFAIL)]
            assert len(at_store) == 1
    finally:
        store.stop()


@pytest.mark.parametrize("threads", [1, 3])
def test_under_load(threads):
    """Paused and resumed under load: each request is answered once, in order, and counted once."""
    with Headgate({"tenants": tenants(), "threads": threads}) as daemon:
        under_load(daemon)


def under_load(daemon):
    clients = [daemon.client(bucket="shop") for _ in range(4)]
    before = bucket_details(clients[0], "shop")["outcomes"]
    total_before = daemon_total(clients[0])
    with Flood(clients, get, 4) as flood:
        for verb, status in (("pause", St.ETMPFAIL), ("resume", St.ENOENT),
                             ("disable", St.EACCESS), ("resume", St.ENOENT)):
            daemon.ctl(verb, "shop")
            at = len(flood.events)
            poll(lambda: len(flood.events) > at + 200 and
                 {event.status for event in flood.events[-50:]} == {status}, what=verb)
        flood.limit = flood.sent
        poll(lambda: len(flood.events) == flood.sent, what="all answered")
    statuses = flood.statuses()
    assert set(statuses) == {St.ENOENT, St.ETMPFAIL, St.EACCESS}, statuses
    with daemon.client(bucket="shop") as client:
        after = bucket_details(client, "shop")["outcomes"]
        for outcome, status in (("paused", St.ETMPFAIL), ("disabled", St.EACCESS),
                                ("miss", St.ENOENT)):
            assert after[outcome] - before[outcome] == statuses[status], (outcome, statuses, after)
        stat = client.stat()
        assert sum(int(v) for k, v in stat.items() if k.startswith("outcome_")) == \
            int(stat["cmd_total"]) > total_before
    for client in clients:
        client.close()


def daemon_total(client):
    return int(client.stat()["cmd_total"])


def test_created_paused(daemon):
    daemon.ctl("create", "bucket", "toys", "state=paused")
    assert state_of(daemon, "toys") == "paused"
    assert ask(daemon, tenant="toys").status == St.ETMPFAIL
    daemon.ctl("resume", "toys")
    daemon.restart()
    assert state_of(daemon, "toys") == "active"
