"""test_keyshare - a key whose requests take long has its share of a server's tickets, and no more:
what its clients are told, and what the log, the statistics and headgatectl say of it.

A real memcached behind a store that takes its time, with the default settings. Innocent keys are
asked for at a steady rate beside the culprit.
"""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import json
import re
import time

import pytest

import hotkey_tools
import overload_tools as tools
from mcbin import SCALE, Feature, St, poll
from openload import Load, statuses
from overload_tools import fill, front, innocent_keys, stream

CULPRIT = b"dear-key-%d"
CULPRIT_MS, INNOCENT_MS, SLOTS, RATE = 500, 5, 8, 200
CLIENTS = 40                 # of a culprit; closed loops
LINE = re.compile(r"throttle-(begin|end) what=key-share .* tenant=(\S+) tickets=(\S+) "
                  r"key=\"([^\"]*)\" "
                  r"(?:service_ms=(\S+) usual_ms=\S+ share=(\d+)|lasted_s=(\S+) refused=(\d+))")


@contextlib.contextmanager
def scene(culprits=1, threads=1, tenant=None, **options):
    """(daemon, load, keys of the culprits, whose streams are called dear0, dear1, ...)"""
    keys = [CULPRIT % n for n in range(culprits)]
    row = dict({"name": tools.TENANT}, **(tenant or {}))
    with front({"dear-": CULPRIT_MS}, store={"service_ms": INNOCENT_MS, "slots": SLOTS},
               tenants=[row], threads=threads, **options) as (daemon, backend):
        innocents = innocent_keys()
        fill(backend, innocents + keys)
        streams = [stream(daemon, "innocent", innocents, 60, rate=RATE)]
        streams += [stream(daemon, "dear%d" % n, [key], CLIENTS, pause_s=0.1, active=False)
                    for n, key in enumerate(keys)]
        with Load(*streams) as load:
            load.run(1.0)
            yield daemon, load, keys


def let_loose(load, keys, seconds):
    for n in range(len(keys)):
        load.go_on("dear%d" % n)
    load.run(seconds)


def halt(load, keys):
    for n in range(len(keys)):
        load.halt("dear%d" % n)


def told(daemon, what):
    """Of culprits: on a machine that stands still an innocent key may look dear, too."""
    return [line for line in LINE.findall(daemon.stderr())
            if line[0] == what and line[3].startswith("dear-")]


def held(daemon):
    """{key: row} of those that are held."""
    rows = [json.loads(value) for name, value in tools.stat(daemon, "bindthrottle").items()
            if re.fullmatch(r"keyshare:\d+", name)]
    return {row["v"].encode(): row for row in rows}


def refused(load):
    return statuses(load.select("dear*"))[St.BIND_THROTTLE]


@pytest.mark.alone
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_told_of_a_held_key(threads):
    with scene(threads=threads) as (daemon, load, keys):
        let_loose(load, keys, 2.0)
        row = held(daemon)[keys[0]]
        assert (row["tenant"], row["tickets"], row["observed"]) == ("shop", "read", False), row
        assert 1 <= row["out"] <= 2 * threads and row["upstream"] == "store", row
        assert row["server"].startswith("127.0.0.1:") and row["sinceMillis"] >= 500, row
        assert 0.8 * CULPRIT_MS <= row["serviceMillis"] <= 2 * CULPRIT_MS * SCALE, row
        shown = hotkey_tools.ctl(daemon, "status").stdout
        assert re.search(r"^HELD KEY +TENANT", shown, re.M) and keys[0].decode() in shown, shown
        halt(load, keys)
        poll(lambda: not held(daemon) and len(told(daemon, "end")) >= 1
             and len(told(daemon, "end")) == len(told(daemon, "begin")), 6, what="the end")
        begins, ends = told(daemon, "begin"), told(daemon, "end")
        assert len(begins) == 1, begins
        for _, tenant, tickets, key, service, share, _, _ in begins:
            assert (tenant, tickets, key) == ("shop", "read", keys[0].decode())
            assert float(service) > 20 and int(share) == 2
        # Lines, statistics and clients agree, to the last refusal.
        seen = refused(load)
        assert seen > 20
        assert sum(int(line[7]) for line in ends) == seen
        assert tools.counted(daemon, "key_share_refused") == seen
        assert tools.counted(daemon, "bind_evicted") == 0, "the share comes before any eviction"
        innocents = statuses(load.select("innocent"))
        assert set(innocents) == {St.OK}, innocents


def test_what_a_refused_client_is_told():
    with scene() as (daemon, load, keys):
        let_loose(load, keys, 1.5)
        with tools.clients(daemon, 1)[0] as client:
            client.hello(Feature.XERROR, Feature.JSON)
            frames = [client.get(keys[0]) for _ in range(4)]
            frame = next(f for f in frames if f.status == St.BIND_THROTTLE)
            error = json.loads(frame.value)["error"]
        assert error["limit"] == "key_share" and error["tenant"] == "shop", error
        assert error["server"].startswith("127.0.0.1:"), error
        assert 16 <= error["retry_after_ms"] <= 2048 * SCALE, error
        with tools.clients(daemon, 1, xerror=False)[0] as plain:
            seen = {plain.get(keys[0]).status for _ in range(4)}
        assert seen <= {St.OK, St.ETMPFAIL} and St.ETMPFAIL in seen, seen


@pytest.mark.alone
def test_a_share_holds_at_once_when_a_server_has_another_name():
    """What waits goes over to the new server, and not all at once: nothing is known of the key there,
    and nobody else has asked yet."""
    with scene() as (daemon, load, keys):
        let_loose(load, keys, 2.0)
        begun = time.monotonic()
        address = daemon.config["upstreams"][0]["servers"][0]["address"]
        tools.reload(daemon, servers=[{"address": address.replace("127.0.0.1", "localhost")}])
        load.run(1.5)
        innocents = load.select("innocent", begun)
        assert set(statuses(innocents)) == {St.OK}, statuses(innocents)
        assert len(innocents) > RATE, len(innocents)
        assert held(daemon)[keys[0]]["out"] <= 2


def test_observed_keys_are_not_held():
    with scene(tenant={"bind_mode": "observe"}) as (daemon, load, keys):
        let_loose(load, keys, 1.5)
        assert refused(load) == 0
        assert tools.counted(daemon, "key_share_would") > 10
        assert tools.counted(daemon, "key_share_waited") == 0
        poll(lambda: held(daemon).get(keys[0], {}).get("observed") or load.run(0.1), 8 * SCALE,
             what="a row of the observed key")
        assert not told(daemon, "begin")
        # And are held as soon as that is wanted.
        tools.reload(daemon, tenant={"bind_mode": "enforce"})
        poll(lambda: refused(load) > 20 or load.run(0.1), 8 * SCALE, what="refusals")


def test_without_a_share_nothing_is_held():
    with scene(key_share_pct=100) as (daemon, load, keys):
        let_loose(load, keys, 0.8)
        assert not held(daemon) and tools.counted(daemon, "key_share_waited") == 0
        # In force at once.
        tools.reload(daemon, key_share_pct=25)
        poll(lambda: refused(load) > 0 or load.run(0.1), 8 * SCALE, what="refusals")


@pytest.mark.alone
def test_several_keys_at_once():
    """Each has its own share and its own lines."""
    with scene(culprits=3) as (daemon, load, keys):
        let_loose(load, keys, 2.0)

        def refused_rows():
            return {key: row for key, row in held(daemon).items() if row["refused"]}
        poll(lambda: set(keys) <= set(refused_rows()) or load.run(0.2), 5 * SCALE,
             what="refusals for each key")
        rows = {key: row for key, row in refused_rows().items() if key in keys}
        # Dear keys have half of what is in use together, and one each in any case.
        assert sum(row["out"] for row in rows.values()) <= SLOTS / 2 + len(keys), rows
        assert {line[3].encode() for line in told(daemon, "begin")} == set(keys)
