"""test_events - what begins and ends is told once, in the log, by `stat events` and by headgatectl
events; and what all of them say of refusals is what the clients counted.

A real memcached behind a store that takes its time.
"""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import contextlib
import datetime
import json
import os
import re
import signal
import subprocess

import pytest

import credit_tools
import hotkey_tools
import overload_tools as tools
from mcbin import Op, St, poll, scaled
from openload import Load, statuses, value_of
from overload_tools import fill, front, innocent_keys, stream
from servers import HEADGATECTL, Memcached
from slowstore import SlowStore
from webclient import scrape

SERVICE_MS, SLOTS = 20, 4
CALM, FLOOD = "calm", "shop"
HTTP = {"admin": {"address": "127.0.0.1:0"}}
LINE = re.compile(r"^\S+ (warn|info) ((?:throttle|server)-\S+) (.*)$", re.M)


def events(daemon):
    """The ring, oldest first."""
    rows = tools.stat(daemon, "events")
    found = sorted((json.loads(value) for value in rows.values()), key=lambda row: row["number"])
    assert list(rows) == ["event:%d" % row["number"] for row in found]
    return found


def of(found, name, **fields):
    return [row for row in found
            if row["event"] == name and fields.items() <= row.items()]


def subject(row):
    return tuple(row.get(name) for name in ("what", "upstream", "server", "tenant", "tickets", "key"))


def are_over(found, **fields):
    """There is one with these fields; and each begin has its end, behind it."""
    orders = collections.defaultdict(list)
    for row in found:
        if row["event"].startswith("throttle-"):
            orders[subject(row)].append(row["event"])
    for order in orders.values():
        assert order == (["throttle-begin", "throttle-end"] * len(order))[:len(order)], found
    return of(found, "throttle-end", **fields) and \
        all(len(order) % 2 == 0 for order in orders.values())


def check_apart(found):
    """No two begins of one thing within ten seconds."""
    last = {}
    for row in of(found, "throttle-begin"):
        at = datetime.datetime.fromisoformat(row["time"].replace("Z", "+00:00"))
        before = last.get(subject(row))
        assert before is None or (at - before).total_seconds() > 9.5, found
        last[subject(row)] = at


@contextlib.contextmanager
def flood_scene(threads):
    tenants = [{"name": FLOOD, "bind_mode": "off"}, {"name": CALM, "bind_mode": "off"}]
    with front(store={"service_ms": SERVICE_MS, "slots": SLOTS}, tenants=tenants, threads=threads,
               server=HTTP, queue_timeout_ms=500, tenant_window=0) as (daemon, backend):
        keys = innocent_keys()
        fill(backend, keys, FLOOD)
        fill(backend, keys, CALM)
        streams = [stream(daemon, "flood", keys, 400, tenant=FLOOD, user=FLOOD, pause_s=0.05,
                          active=False),
                   stream(daemon, "calm", keys, 10, tenant=CALM, user=CALM, rate=20)]
        with Load(*streams) as load:
            load.run(0.5)
            yield daemon, load


@pytest.mark.threaded
@pytest.mark.parametrize("threads", [1, 2])
def test_a_flood_adds_up(threads):
    """Clients, events, log, statistics, metrics and status: all count the same refusals."""
    with flood_scene(threads) as (daemon, load):
        load.go_on("flood")
        poll(lambda: (load.run(0.5), statuses(load.select("flood"))[St.QUEUE_TIMEOUT] > 200)[1], 20,
             what="refusals")
        shown = hotkey_tools.ctl(daemon, "events").stdout
        assert re.search(r"warn +throttle-begin +what=flood .*tenant=shop", shown), shown
        metrics = scrape(daemon)
        assert metrics.get("headgate_throttling", what="flood") >= 1
        load.halt("flood")
        load.run(2.0)
        load.halt("calm")
        poll(lambda: are_over(events(daemon), what="flood", tenant=FLOOD) and
             are_over(events(daemon), what="tickets"), 60, step=0.2, what="the end")
        found = events(daemon)
        check_sums(daemon, load, found)
        check_apart(found)


def check_sums(daemon, load, found):
    told = statuses(load.events)
    seen, of_flood = told[St.QUEUE_TIMEOUT], statuses(load.select("flood"))[St.QUEUE_TIMEOUT]
    assert seen > 200, told
    metrics = scrape(daemon)
    rows = tools.stat(daemon, "tickets")

    def counted(name, tenant):
        return int(rows["tenant:%s:read:%s" % (tenant, name)])

    # By reason, of all tenants: what the clients got.
    reasons = {labels["reason"]: value for labels, value in
               metrics.all("headgate_refused_total", upstream="store")}
    assert sum(reasons[name] for name in ("flood", "no_flood", "stalled", "overdue")) == seen, reasons
    # Of floods: events, counters, metrics. (On a machine that stands still, the calm one may flood.)
    for tenant in (FLOOD, CALM):
        ends = of(found, "throttle-end", what="flood", tenant=tenant)
        assert sum(row["refused"] for row in ends) == counted("refusedFlood", tenant) == \
            metrics.sum("headgate_tenant_tickets_refused_flood_total", tenant=tenant), found
    flooded = counted("refusedFlood", FLOOD)
    assert flooded + counted("refusedFlood", CALM) == reasons["flood"]
    assert 0 < flooded <= of_flood
    others = sum(counted(name, FLOOD) for name in
                 ("refusedCalm", "refusedStalled", "refusedOverdue", "queueOverflows"))
    assert flooded + others == of_flood
    # Of the tickets: all refusals in line.
    ends = of(found, "throttle-end", what="tickets", tickets="read")
    assert sum(row["refused"] for row in ends) == seen, ends
    assert metrics.get("headgate_throttling", what="flood") == 0
    # The log has the same.
    lines = LINE.findall(daemon.stderr())
    assert [(level, name) for level, name, _ in lines] == \
        [(row["severity"], row["event"]) for row in found]
    assert ["refused=%d" % row["refused"] for row in found if "refused" in row] == \
        re.findall(r"refused=\d+", "\n".join(rest for _, _, rest in lines))
    # And status.
    shown = json.loads(hotkey_tools.ctl(daemon, "--json", "status").stdout)
    refused = {bucket["name"]: bucket["refused"] for bucket in shown["buckets"]}
    of_keys = statuses(load.select("flood"))[St.BIND_THROTTLE]
    assert refused[FLOOD] == of_flood + of_keys, refused
    assert reasons["key_share"] == told[St.BIND_THROTTLE], reasons


def test_a_hanging_server_makes_no_refusal_look_like_a_fault():
    """Nobody floods, and requests are refused: but the store answers nothing."""
    memcached = Memcached()
    row = {"name": "store", "kind": "memcached", "servers": [{"address": memcached.where}],
           "execution_control": "fixed", "read_tickets": 4, "queue_timeout_ms": 200,
           "backend_timeout_ms": 2000}
    tenants = [{"name": name, "bind_mode": "off"} for name in (FLOOD, CALM)]
    with credit_tools.start(tenants, store={"upstreams": [row]}, **HTTP) as daemon:
        streams = [stream(daemon, name, [b"k"], 4, tenant=name, user=name, pause_s=0.05)
                   for name in (FLOOD, CALM)]
        for client in tools.clients(daemon, 1, tenant=FLOOD) + tools.clients(daemon, 1, tenant=CALM):
            with client:
                assert client.set(b"k", value_of(b"k")).status == St.OK
        with Load(*streams) as load:
            load.run(0.5)
            memcached.pause()
            poll(lambda: (load.run(0.5), statuses(load.events)[St.QUEUE_TIMEOUT] > 20)[1], 20,
                 what="refusals")
            metrics = scrape(daemon)
            assert metrics.get("headgate_refused_total", upstream="store", server=memcached.where,
                               reason="no_flood") == 0, tools.stat(daemon, "tickets")
            assert metrics.sum("headgate_tenant_tickets_refused_calm_total") == 0
            poll(lambda: (load.run(0.2), states(daemon)[memcached.where] in (
                "stalled", "down", "half-open"))[1], 20, what="the word in status")
            memcached.resume()
    memcached.stop()


# ---- slow servers ----

@contextlib.contextmanager
def three_servers(**upstream):
    """(daemon, the stores by address, a load on keys of all)"""
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(SlowStore(service_ms=2, slots=64)) for _ in range(3)]
        row = dict({"name": "store", "kind": "memcached",
                    "servers": [{"address": store.where} for store in stores]}, **upstream)
        daemon = stack.enter_context(credit_tools.start(
            [{"name": FLOOD, "bind_mode": "off"}], store={"upstreams": [row]}, **HTTP))
        keys = innocent_keys(60)
        for store in stores:
            fill(store, keys, FLOOD)
        load = stack.enter_context(Load(stream(daemon, "load", keys, 24, pause_s=0.02)))
        yield daemon, {store.where: store for store in stores}, load


def states(daemon):
    """{server: its word in status}"""
    shown = hotkey_tools.ctl(daemon, "status").stdout
    return {words[2]: words[3] for words in (re.split(r"  +", line) for line in shown.splitlines())
            if words[0] == "store" and len(words) > 10}


@pytest.mark.threaded
def test_a_slow_server_is_told():
    """From when it takes many times what the others take, to when it does no more."""
    with three_servers() as (daemon, stores, load):
        load.run(1.5)
        where, store = next(iter(stores.items()))
        store.set(service_ms=400)
        begin = poll(lambda: (load.run(0.2), of(events(daemon), "server-slow", server=where))[1], 40,
                     what="a slow server")[0]
        assert begin["upstream"] == "store" and begin["factor"] >= 4 and begin["severity"] == "warn"
        assert begin["p50_ms"] > 4 * begin["siblings_ms"], begin
        assert re.match(r"slow x\d+$", states(daemon)[where]), states(daemon)
        metrics = scrape(daemon)
        assert metrics.get("headgate_server_slow", upstream="store", server=where) == 1
        assert metrics.get("headgate_server_service_seconds", upstream="store", server=where,
                           percentile="50") > 0.1
        store.set(service_ms=2)
        poll(lambda: (load.run(0.2), of(events(daemon), "server-slow-end", server=where))[1], 60,
             what="its end")
        found = events(daemon)
        assert len(of(found, "server-slow", server=where)) == \
            len(of(found, "server-slow-end", server=where)) == 1, found
        assert states(daemon)[where] == "up"


def test_no_server_is_slow_without_a_factor():
    with three_servers(slow_server_factor=0) as (daemon, stores, load):
        where, store = next(iter(stores.items()))
        store.set(service_ms=400)
        poll(lambda: (load.run(0.5),
                      int(tools.stat(daemon, "tickets")["store:server:%s:serviceMicros:p50" % where])
                      > 200000)[1], 40, what="a median")
        load.run(3.0)
        assert not of(events(daemon), "server-slow"), events(daemon)


# ---- servers that are out, evicted keys ----

@contextlib.contextmanager
def before_memcached():
    """(daemon, memcached, a client that is told why)"""
    memcached = Memcached()
    row = {"name": "store", "kind": "memcached", "servers": [{"address": memcached.where}]}
    with credit_tools.start([{"name": FLOOD}], store={"upstreams": [row]}, **HTTP) as daemon, \
            tools.clients(daemon, 1)[0] as client:
        assert client.set(b"k", b"v").status == St.OK
        yield daemon, memcached, client
    memcached.stop()


def test_a_breaker_adds_up():
    """What is refused while the server is out is what the end says, and the metric."""
    with before_memcached() as (daemon, memcached, client):
        told = collections.Counter()

        def ask():
            told[client.get(b"k").status] += 1
            return told
        memcached.kill()
        poll(lambda: ask()[St.BACKEND_DOWN] >= 50, 20, what="0xff06")
        [begin] = of(events(daemon), "throttle-begin", what="breaker")
        assert begin["server"] == memcached.where and begin["reason"], begin
        assert scrape(daemon).get("headgate_throttling", what="breaker") == 1
        memcached.start()
        poll(lambda: (ask(), are_over(events(daemon), what="breaker"))[1], 20, what="the end")
        metrics = scrape(daemon)
        [end] = of(events(daemon), "throttle-end", what="breaker")
        assert end["refused"] == told[St.BACKEND_DOWN], (end, told)
        assert metrics.get("headgate_refused_total", upstream="store", server=memcached.where,
                           reason="breaker") == told[St.BACKEND_DOWN]
        assert metrics.get("headgate_throttling", what="breaker") == 0


def test_what_goes_with_a_reload_ends():
    """An upstream that is replaced while its server is out has no begin without an end."""
    with before_memcached() as (daemon, memcached, client):
        memcached.kill()
        poll(lambda: client.get(b"k").status == St.BACKEND_DOWN, 20, what="0xff06")
        daemon.config["upstreams"][0]["servers"] = [{"address": "127.0.0.1:1"}]
        tools.reload(daemon)
        poll(lambda: of(events(daemon), "throttle-end", what="breaker", server=memcached.where), 20,
             what="the end")
        [end] = of(events(daemon), "throttle-end", what="breaker", server=memcached.where)
        assert end["reason"] == "the upstream was replaced or closed", end


def test_an_evicted_key_is_told():
    """One begin when it is evicted, one end when its throttle is gone."""
    key = b"culprit-29001111"
    with front({key.decode(): 500}, store={"service_ms": SERVICE_MS, "slots": 16}, bind_control="hera",
               execution_control="fixed", read_tickets=8, tenant_window=0) as (daemon, backend):
        keys = innocent_keys(20)
        fill(backend, keys + [key])
        with Load(stream(daemon, "culprit", [key], 30, pause_s=0.05),
                  stream(daemon, "innocent", keys, 10, pause_s=0.05)) as load:
            [begin] = poll(lambda: (load.run(0.2), of(events(daemon), "throttle-begin", what="bind",
                                                      key=key.decode()))[1], 30, what="the begin")
            assert begin["tenant"] == FLOOD and begin["allowEveryX"] >= 2, begin
            poll(lambda: (load.run(0.5), statuses(load.select("culprit"))[St.BIND_THROTTLE] > 50)[1],
                 20, what="refusals")
            load.halt("culprit")
            load.run(0.5)
            tools.reload(daemon, server={"bind_eviction_decr_per_sec": 10000.0})
            ends = poll(lambda: (load.run(0.2), of(events(daemon), "throttle-end", what="bind",
                                                   key=key.decode()))[1], 30, what="the end")
            told = statuses(load.select("culprit"))
        assert sum(end["refused"] for end in ends) == told[St.BIND_THROTTLE], (ends, told)
        assert len(ends) == len(of(events(daemon), "throttle-begin", what="bind")) == 1


# ---- headgatectl ----

def test_headgatectl_events():
    with before_memcached() as (daemon, memcached, client):
        shown = hotkey_tools.ctl(daemon, "events").stdout
        assert shown.split() == ["TIME", "SEVERITY", "EVENT", "DETAIL"], shown
        watch = subprocess.Popen(
            [HEADGATECTL, "-s", daemon.where, "-u", "admin", "--json", "events", "--watch"],
            stdout=subprocess.PIPE, text=True, env=dict(os.environ, **hotkey_tools.PASSWORD))
        memcached.kill()
        poll(lambda: client.get(b"k").status == St.BACKEND_DOWN, 20, what="0xff06")
        row = json.loads(watch.stdout.readline())
        watch.send_signal(signal.SIGINT)
        assert watch.wait(scaled(10)) == 0 and watch.stdout.read() == ""
        assert (row["event"], row["what"], row["number"]) == ("throttle-begin", "breaker", 1)
        assert [row] == json.loads(hotkey_tools.ctl(daemon, "--json", "events").stdout)
        shown = hotkey_tools.ctl(daemon, "events").stdout.splitlines()
        assert len(shown) == 2 and re.match(
            r"\S+Z +warn +throttle-begin +what=breaker upstream=store server=\S+ reason=\".*\"$",
            shown[1]), shown
        wrong = hotkey_tools.ctl(daemon, "events", "now", check=False)
        assert wrong.returncode == 2 and "events takes options only" in wrong.stderr, wrong
        with credit_tools.admin(daemon) as boss:
            assert list(boss.stat("events 0")) == ["event:1"] and not boss.stat("events 1")
            assert boss.call(Op.STAT, b"events x").status == St.EINVAL
        refused = hotkey_tools.ctl(daemon, "events", user="shop", check=False)
        assert refused.returncode == 1 and "Stats" in refused.stderr, refused
