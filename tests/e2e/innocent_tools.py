"""innocent_tools - what the suites of innocents share: slow stores, a daemon before them that is
told nothing about overload, and the same load at both, by headgate-load.

A scene has culprits, who cause a queue, and innocents, who share something with them: a server, a
tenant, a worker. Each party is a load of its own. Parties of one group are one process, whose total
is the group's result; groups run beside each other.
"""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import contextlib
import copy
import hashlib
import json
import os
import subprocess
import sys
import threading

import pytest

from built import BUILD
from mcbin import scaled
from servers import Headgate, Process, temporary_directory
from slowstore import SlowStore

LOAD = os.path.join(BUILD, "headgate-load")
TENANT = "shop"
KEY_BYTES = 24
INTERVAL_MS = 100
# Before a load is measured: all have connected, and a new server has got its tickets.
WARMUP_S = 0.5
# How long a load waits, when its time is over, for what is unanswered.
LAST_S = 3

# Latencies below that are the machine's more than anybody's who runs on it.
FLOOR_MS = 5

FAILED = ("0xff06", "0xff07")     # the server of the key is down, or has timed out

# Not part of a check: a machine that is busy with something else breaks the bounds of time.
measures = pytest.mark.scene
# The same of what is not reached yet.
wanted = pytest.mark.scene


class Party(collections.namedtuple(
        "Party", "name tenant server keys prefix key rate connections pipeline op begins")):
    """A load. server: the number of the only server that it asks, or None: prefix or key say
    whose. rate: requests a second of an open loop; 0: a closed one, whose connections ask again as
    soon as they are answered. key: the only key. begins: at that second of the measured part;
    None: with the warm-up."""
    __slots__ = ()

    def __new__(cls, name, tenant=TENANT, server=None, keys=8, prefix="", key=None, rate=0,
                connections=20, pipeline=1, op="get", begins=None):
        return super().__new__(cls, name, tenant, server, keys, prefix, key, rate, connections,
                               pipeline, op, begins)

    def rates(self):
        """Its options --rate and --arrivals."""
        found = {}
        if self.rate or self.begins is not None:
            rate = "%g" % self.rate if self.rate else "max"
            found["rate"] = rate if self.begins is None else "0/%s@%g" % (rate, self.begins)
        if self.rate:
            found["arrivals"] = "poisson"
        return found


class Result:
    """What became of a group's or a party's requests. `refused`: answered with a refusal that is
    Headgate's own; `failed`: with an error of the store, or never. Milliseconds."""

    def __init__(self, row, seconds, start_ms):
        self.seconds, self.start_s = seconds, start_ms / 1000
        self.statuses = dict(row["statuses"])
        self.ok = row["done"] + row["missed"]
        self.missed, self.wrong = row["missed"], row["wrong"]
        self.refused = row["refused"] - sum(self.statuses.get(code, 0) for code in FAILED)
        self.failed = row["refused"] - self.refused + row["unanswered"] + row["shed"] + row["left"]
        self.asked = self.ok + self.refused + self.failed
        self.p50, self.p99, self.max = (row["latency_us"][name] / 1000
                                        for name in ("p50", "p99", "max"))
        self.rows = row["intervals"]
        # Without what is answered after the load's end.
        self.rate = sum(row["other"]["ok"] for row in self.rows
                        if row["t"] < start_ms + seconds * 1000) / seconds

    def __str__(self):
        lost = ""
        if self.refused or self.failed:
            codes = sorted(code for code in self.statuses if code not in ("0x00", "0x01"))
            lost = " of %d, %d refused, %d failed%s" % (
                self.asked, self.refused, self.failed, " (%s)" % " ".join(codes) if codes else "")
        return "%.0f/s p50 %.1f p99 %.1f ms%s" % (self.rate, self.p50, self.p99, lost)

    __repr__ = __str__

    @staticmethod
    def sum(results):
        """Of several groups together. The latencies are the worst of any."""
        total = copy.copy(results[0])
        for name in ("ok", "missed", "wrong", "refused", "failed", "asked", "rate"):
            setattr(total, name, sum(getattr(result, name) for result in results))
        for name in ("p50", "p99", "max"):
            setattr(total, name, max(getattr(result, name) for result in results))
        total.statuses = {code: 0 for result in results for code in result.statuses}
        total.rows = []
        return total

    @property
    def unharmed(self):
        """Whether all requests were served, and found what they asked for."""
        return (self.refused, self.failed, self.missed) == (0, 0, 0)

    @property
    def lost_share(self):
        return (self.refused + self.failed) / max(1, self.asked)

    def _windows(self, seconds, since=0.0):
        """[(begin, rows)] of all windows of that length from then, in seconds since the load
        began, to its end."""
        count = round(seconds * 1000 / INTERVAL_MS)
        begins = [row["t"] / 1000 - self.start_s for row in self.rows]
        return [(begin, [row["other"] for row in self.rows[at:at + count]])
                for at, begin in enumerate(begins) if since <= begin <= self.seconds - seconds]

    def worst_share(self, seconds=1.0):
        """The largest share that was lost of what was answered in any window of that length."""
        shares = [0.0]
        for _, rows in self._windows(seconds):
            bad = sum(row["refused"] + row["not_sent"] + row["unanswered"] for row in rows)
            shares.append(bad / max(1, bad + sum(row["ok"] for row in rows)))
        return max(shares)

    def rates(self, seconds, since):
        """[(begin, answers a second)] of all windows of that length from then to the load's end."""
        return [(begin, sum(row["ok"] for row in rows) / seconds)
                for begin, rows in self._windows(seconds, since)]


def near(latency_ms, alone_ms, times=1.5):
    """Whether a latency is at most so many times that of the innocents alone."""
    return latency_ms <= times * max(alone_ms, FLOOR_MS)


def home_of(key, servers):
    """The server of a key: libmemcached's ring `modula` with the hash `md5`."""
    return int.from_bytes(hashlib.md5(key).digest()[:4], "little") % servers


def key_of(prefix, number):
    """As headgate-load makes them."""
    head = prefix + "k"
    return (head + str(number).rjust(KEY_BYTES - len(head), "0")).encode()


def prefixes_of(servers, keys):
    """For each server a prefix with which all those keys are its own."""
    found, number = {}, 0
    while len(found) < servers:
        prefix = "s%d-" % number
        home = home_of(key_of(prefix, 0), servers)
        if home not in found and all(home_of(key_of(prefix, n), servers) == home
                                     for n in range(1, keys)):
            found[home] = prefix
        number += 1
    return [found[home] for home in range(servers)]


class _Change:
    """What is done beside a load, after some seconds."""

    def __init__(self, after_s, what):
        self.what, self.error = what, None
        self.timer = threading.Timer(after_s, self._do)

    def start(self):
        self.timer.start()

    def _do(self):
        try:
            self.what()
        except BaseException as error:  # pylint: disable=broad-except
            self.error = error

    def end(self):
        """Waits for it; what failed there fails here."""
        self.timer.cancel()
        self.timer.join()
        if self.error:
            raise self.error


class Scene:
    """Stores, and a daemon with default settings before them."""

    KEYS = 8            # a party's, where it asks one of several servers
    DIRECT = []         # options of headgate-load for the stores' protocol

    def __init__(self, stores, tenants, threads):
        self.stores, self.tenants, self.threads = stores, tenants, threads
        self.prefixes = prefixes_of(len(stores), self.KEYS) if len(stores) > 1 else [""]
        self.daemon = None

    def _upstream(self):
        ring = {"ring": "modula", "hash": "md5"} if len(self.stores) > 1 else {}
        return dict({"kind": "memcached", "servers": [
            {"address": store.where} for store in self.stores]}, **ring)

    @contextlib.contextmanager
    def front(self):
        """The daemon, for as long as it is needed. It is told nothing about overload."""
        config = {
            "threads": self.threads, "upstreams": [dict(self._upstream(), name="store")],
            "tenants": [{"name": name, "key_prefix": name + ":"} for name in self.tenants]}
        with Headgate(config) as self.daemon:
            yield self.daemon

    # -- loads --

    def _option(self, party, where, direct):
        """The party as headgate-load's --tenant."""
        head = self._head(party) if direct else ""
        fields = {"name": party.name, "server": where, "connections": party.connections,
                  "pipeline": party.pipeline, "mix": "%s=1" % party.op, "zipf": 0,
                  "keys": party.keys}
        if party.key is not None:
            fields["key"] = head + party.key
        else:
            own = party.prefix or self.prefixes[party.server or 0]
            fields.update({"key-prefix": head + own, "key-bytes": KEY_BYTES + len(head)})
        fields.update(party.rates())
        if not direct:
            fields.update({"bucket": party.tenant, "hello": "xerror"})
        return ",".join("%s=%s" % pair for pair in fields.items())

    def _head(self, party):
        """What the store's keys have before the clients' ones."""
        return party.tenant + ":"

    def fill(self, *parties):
        """Stores their keys, past the daemon and the slowness."""
        self._fill(parties, lambda party: self.stores[party.server or 0].memcached.where, True)

    def _fill(self, parties, where, direct):
        for first in range(0, len(parties), 50):
            argv = [LOAD, "--fill", "-n", "0", "--interval", "0", "--json"]
            argv += self.DIRECT if direct else []
            for party in parties[first:first + 50]:
                one = party._replace(connections=1, pipeline=1, rate=0, begins=None)
                argv += ["--tenant", self._option(one, where(party), direct)]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=scaled(30),
                                  check=False)
            assert done.returncode == 0, done.stderr

    def _start(self, parties, seconds, direct):
        argv = [LOAD, "-t", str(seconds), "--warmup", str(WARMUP_S), "--json", "--interval", "0",
                "--interval-ms", str(INTERVAL_MS), "--timeout", str(LAST_S)]
        argv += self.DIRECT if direct else []
        for party in parties:
            where = self.stores[party.server or 0].where if direct else self.daemon.where
            argv += ["--tenant", self._option(party, where, direct)]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _run(self, groups, seconds, at, direct):
        if not isinstance(groups, dict):
            groups = {"all": groups}
        children = {name: self._start(parties, seconds, direct)
                    for name, parties in groups.items()}
        changes = [_Change(WARMUP_S + when, what) for when, what in (at or {}).items()]
        for change in changes:
            change.start()
        try:
            found = {name: self._result(child, seconds) for name, child in children.items()}
        finally:
            for child in children.values():
                if child.poll() is None:
                    child.kill()
                    child.wait()
            for change in changes:
                change.end()
        results = {name: Result(report["total"], report["seconds"], report["start_ms"])
                   for name, report in found.items()}
        wrong = sum(result.wrong for result in results.values())
        assert wrong == 0, "%d wrong replies" % wrong
        return results if set(groups) != {"all"} else results["all"]

    @staticmethod
    def _result(child, seconds):
        out, said = child.communicate(timeout=seconds + scaled(30))
        # 1: a connection was given up, which is counted.
        assert child.returncode in (0, 1) and out, "headgate-load: exit %s\n%s" % (
            child.returncode, said)
        return json.loads(out)

    def direct(self, groups, seconds, at=None):
        """{group: Result} of these groups of parties, straight at the stores; or the Result of a
        list of parties. at: {about so many seconds into the measured part: what is done then}."""
        return self._run(groups, seconds, at, True)

    def through(self, groups, seconds, at=None):
        """The same, through the daemon."""
        return self._run(groups, seconds, at, False)

    def compare(self, parties, direct_s, through_s):
        """(direct, through): fills the stores, and does both, so long each."""
        self.fill(*parties)
        direct = self.direct(parties, direct_s)
        with self.front():
            return direct, self.through(parties, through_s)


class ClusterScene(Scene):
    """The masters of a Redis Cluster. Clients' keys are items of Headgate's; those of the direct
    load are plain values, beside them."""

    DIRECT = ["--protocol", "resp"]

    def __init__(self, cluster, threads=1):
        self.cluster = cluster
        super().__init__(cluster.masters(), [TENANT], threads)
        self.prefixes = [next("{%d}" % n for n in range(10000)
                              if cluster.where_is(b"{%d}" % n) is node) for node in self.stores]

    def _upstream(self):
        return {"kind": "redis-cluster",
                "servers": [{"address": where} for where in self.cluster.where]}

    def _head(self, party):
        return "direct:"

    def fill(self, *parties):
        """At the nodes, and through the daemon, which runs."""
        self._fill(parties, lambda party: self.stores[party.server].where, True)
        self._fill(parties, lambda party: self.daemon.where, False)


@contextlib.contextmanager
def scene(stores=1, tenants=(TENANT,), threads=1, **store):
    """A Scene of that many SlowStores with these options."""
    with contextlib.ExitStack() as stack:
        yield Scene([stack.enter_context(SlowStore(**store)) for _ in range(stores)],
                    list(tenants), threads)


@contextlib.contextmanager
def busy(count):
    """So many busy loops on the machine."""
    folder = temporary_directory("hg-busy-")
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.callback(Process([sys.executable, "-c", "while True: pass"], folder, "busy").kill)
        yield


@pytest.fixture
def tell(request, capsys):
    """tell(direct, through): one line with a scene's figures, and properties of the report."""
    def write(direct, through):
        request.node.user_properties += [("direct", str(direct)), ("headgate", str(through))]
        with capsys.disabled():
            print("\n%s: direct %s; headgate %s" % (request.node.name, direct, through), end="")
    return write
