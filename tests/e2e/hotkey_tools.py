"""hotkey_tools - what the suites of hot keys share: daemons with short epochs, a recorder of the
epochs' rows and times, a heater that keeps keys hot, and the load generator's intervals."""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import json
import os
import subprocess
import threading
import time

import credit_tools
from mcbin import Op, St, poll, request, scaled, set_extras, show
from servers import BUILD

LOAD = os.path.join(BUILD, "headgate-load")
TYPES = ("ALL", "INSERT", "DELETE", "UPDATE", "QUERY")
COLUMNS = {"TENANT", "TABLE", "SVR_IP", "SVR_PORT", "HOTKEY", "HOTKEY_TYPE", "HOTKEY_FREQ", "ERROR",
           "THROTTLE_PERCENT", "REJECTED"}
PARAM = "tenant.%s.%s"
PASSWORD = {"HEADGATE_PASSWORD": "pw"}
STORES = ("embedded", "embedded2", "memcached", "redis")


def start(tenants, kind="embedded", farm=None, epoch_ms=200, **options):
    """A daemon over one of STORES; users as in credit_tools.start."""
    store = {"upstreams": [{"name": "store", "kind": "embedded", "embedded_max_bytes": 1 << 28}]}
    if kind == "memcached":
        store = {"upstreams": [{"name": "store", "kind": "memcached",
                                "servers": [{"address": farm.servers(1)[0].where}]}]}
    if kind == "redis":
        server, database = farm.redis()
        store = {"upstreams": [{"name": "store", "kind": "redis", "database": database,
                                "servers": [{"address": server.where}]}]}
    options.setdefault("threads", 1 if kind == "embedded" else 2)
    rows = [dict(row) for row in tenants]
    if not any(row["name"] == "default" for row in rows):
        rows.append({"name": "default"})
    if kind in ("memcached", "redis"):
        for row in rows:
            row.setdefault("upstream", "store")
    return credit_tools.start(rows, store=store, hotkey_epoch_ms=epoch_ms, **options)


def tenant(name, threshold=0, control="step", **options):
    return dict({"name": name, "kv_hotkey_throttle_threshold": threshold,
                 "hotkey_control": control}, **options)


def set_param(client, bucket, option, value):
    frame = client.call(Op.SET_PARAM, PARAM % (bucket, option), str(value))
    assert frame.status == 0, show(frame)


def ctl(daemon, *args, user="admin", check=True):
    return daemon.ctl(*args, user=user, env=PASSWORD, check=check)


# ---- views ----

def rows_of(client, view="hotkeys"):
    """The rows of a view, which ends with exactly one empty packet; numbered without a gap."""
    frames, last = client.stat_frames(view)
    assert last.status == 0 and not last.key and not last.value, show(last)
    rows = []
    for number, frame in enumerate(frames, 1):
        assert frame.key == b"hotkeys:%d" % number, show(frame)
        row = json.loads(frame.value)
        more = {"EPOCH", "END"} if "history" in view else set()
        assert set(row) == COLUMNS | more, row
        row["TYPE"] = row["HOTKEY_TYPE"].rsplit("_", 1)[1]
        assert row["TYPE"] in TYPES, row
        assert 0 <= row["ERROR"] <= row["HOTKEY_FREQ"] and 0 <= row["THROTTLE_PERCENT"] <= 100, row
        rows.append(row)
    return rows


def engine(client):
    return {name: int(value) for name, value in client.stat("hotkey_engine").items()}


def next_epoch(client, more=1):
    """Waits until so many more epochs have ended; the number of the last one."""
    first = engine(client)["last_epoch"]
    return poll(lambda: (lambda now: now if now >= first + more else 0)(
        engine(client)["last_epoch"]), timeout=30.0, what="an epoch's end")


def rows_of_one_epoch(client, bucket, act, tries=20):
    """Does a few things, all of them in one epoch, and returns that epoch's rows. When an epoch's
    end came between them, or a worker handed over late, they are done once more."""
    epoch_s, workers = engine(client)["epoch_ms"] / 1000, int(client.stat()["threads"])
    for _ in range(tries):
        next_epoch(client)
        before, begin = engine(client), time.monotonic()
        act()
        if time.monotonic() - begin > 0.6 * epoch_s or \
                engine(client)["last_epoch"] != before["last_epoch"]:
            continue
        next_epoch(client)
        after = engine(client)
        if after["last_epoch"] != before["last_epoch"] + 1 or \
                after["late_handovers"] != before["late_handovers"] or \
                after["handovers"] != before["handovers"] + workers:
            continue
        return [row for row in rows_of(client, "hotkeys history " + bucket)
                if row["EPOCH"] == after["last_epoch"]]
    raise AssertionError("no epoch was long enough")


def counts_of(rows):
    """{(type, table, key): (freq)} of rows; each at most once."""
    found = {}
    for row in rows:
        name = (row["TYPE"], row["TABLE"], row["HOTKEY"])
        assert name not in found, rows
        found[name] = row["HOTKEY_FREQ"]
    return found


Seen = collections.namedtuple("Seen", "epoch end observed length late rows")


class Recorder:
    """Looks at the engine all the time, and remembers of each epoch when it was first seen ended
    and what its rows are. Times are of the wall clock, in seconds.

    An epoch's end lies in [end of the one before + its length] by the server's own measure; where
    the chain begins is known from the quickest look: no look sees an end before it has come."""

    def __init__(self, client, step=0.02):
        self.client, self.step = client, step
        self.looks, self.rows, self.error = {}, {}, None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        last = None
        try:
            while not self.stopping.is_set():
                now = engine(self.client)
                if now["last_epoch"] != last:
                    last, when = now["last_epoch"], time.time()
                    for row in rows_of(self.client, "hotkeys history"):
                        self.rows.setdefault(row["EPOCH"], {})[
                            row["TENANT"], row["TYPE"], row["TABLE"], row["HOTKEY"]] = row
                    self.looks[last] = (when, now["last_length_us"] / 1e6, now["late_handovers"])
                self.stopping.wait(self.step)
        except BaseException as wrong:  # pylint: disable=broad-except
            self.error = wrong

    def stop(self):
        self.stopping.set()
        self.thread.join(scaled(20))
        assert not self.thread.is_alive(), "the recorder does not end"
        if self.error:
            raise self.error
        return self.epochs()

    def epochs(self):
        """[Seen], oldest first, without gaps. When one went by unseen since the machine stood
        still, what came before it is left out."""
        looks = dict(self.looks)
        numbers = [max(looks)]
        while numbers[0] - 1 in looks:
            numbers.insert(0, numbers[0] - 1)
        ends, at = {}, 0.0
        for number in numbers:
            at += looks[number][1] if number != numbers[0] else 0.0
            ends[number] = at
        begin = min(looks[n][0] - ends[n] for n in numbers)
        return [Seen(n, begin + ends[n], *looks[n], self.rows.get(n, {})) for n in numbers]


def check_steps(epochs, bucket, key, threshold, epoch_s):
    """The rule of `step`, from what the rows of a key say: +10 while the mean of four epochs is
    above T, -10 while it is below 0.7 T, nothing between. ([changes], [percents]).

    Counts are lower bounds, scaled from the length of their epoch; where there is no row, the key
    had at most as many as the tenth."""
    changes, percents = [], []
    window = []
    for epoch in epochs:
        row = epoch.rows.get((bucket, "ALL", "", key))
        scale = 2 if epoch.length < epoch_s / 2 else epoch_s / epoch.length
        tenth = min((r["HOTKEY_FREQ"] for (name, kind, *_), r in epoch.rows.items()
                     if name == bucket and kind == "ALL"), default=0)
        count = row["HOTKEY_FREQ"] - row["ERROR"] if row else None
        window = [(0, tenth * scale) if count is None else (count * scale,) * 2] + window[:3]
        now = row["THROTTLE_PERCENT"] if row else 0
        percents.append(now)
        if len(window) < 4 or len(percents) < 2:
            continue
        least = sum(low for low, _ in window) / 4 * 0.999
        most = sum(high for _, high in window) / 4 * 1.001
        before, allowed = percents[-2], set()
        if most > threshold:
            allowed.add(min(100, before + 10))
        if least < 0.7 * threshold:
            allowed.add(max(0, before - 10))
        if least <= threshold and most >= 0.7 * threshold:
            allowed.add(before)
        assert now in allowed, "epoch %d: %d -> %d %%, mean %.0f..%.0f, T %d" % (
            epoch.epoch, before, now, least, most, threshold)
        changes.append(now - before)
    return changes, percents


# ---- traffic ----

class Heater:
    """Sends a burst of the same requests every so often and reads the replies, in a thread."""

    def __init__(self, client, requests, burst=20, every_s=0.02):
        self.client, self.every_s = client, every_s
        self.data = b"".join(requests[i % len(requests)] for i in range(burst))
        self.burst = burst
        self.sent, self.statuses, self.error = 0, collections.Counter(), None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        try:
            due = time.monotonic()
            while not self.stopping.is_set():
                self.client.send(self.data)
                self.sent += self.burst
                for _ in range(self.burst):
                    self.statuses[self.client.recv().status] += 1
                due = max(due + self.every_s, time.monotonic() - self.every_s)
                self.stopping.wait(max(0.0, due - time.monotonic()))
        except BaseException as wrong:  # pylint: disable=broad-except
            self.error = wrong

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *unused):
        self.stopping.set()
        self.thread.join(scaled(20))
        if kind is None and self.error:
            raise self.error

    @property
    def ok(self):
        return self.statuses[0] + self.statuses[St.ENOENT]

    @property
    def refused(self):
        return sum(self.statuses.values()) - self.ok


def heat_get(key):
    return request(Op.GET, key)


def heat_set(key):
    return request(Op.SET, key, b"v", set_extras())


def listed(client, bucket, at_least=1):
    """The throttled rows of type ALL, or [] when no key is refused `at_least` percent."""
    return [row for row in rows_of(client, "hotkeys " + bucket)
            if row["TYPE"] == "ALL" and row["THROTTLE_PERCENT"] >= at_least]


def wait_listed(client, bucket, count=1, at_least=1, timeout=20.0):
    return poll(lambda: (lambda rows: rows if len(rows) >= count else None)(
        listed(client, bucket, at_least)), timeout, what="%d throttled keys" % count)


def until_refused(ask, is_refused, tries=400):
    """Asks until it is refused: each of a throttled key's requests is, with some probability."""
    for _ in range(tries):
        frame = ask()
        if is_refused(frame):
            return frame
    raise AssertionError("%d requests of a throttled key, none refused: %s" % (tries, show(frame)))


# ---- the load generator ----

class Load:
    """headgate-load in the background; report() waits for it."""

    def __init__(self, address, *options):
        argv = [LOAD, "-s", address, "--json", "--interval", "0", *map(str, options)]
        self.child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)

    def report(self, timeout):
        try:
            out, err = self.child.communicate(timeout=scaled(timeout))
        finally:
            if self.child.poll() is None:
                self.child.kill()
                self.child.wait()
        assert self.child.returncode == 0, "exit %d\n%s%s" % (self.child.returncode, err,
                                                              out[:2000])
        return json.loads(out)


def tally(intervals, length_s, group, field, begin, end, whole):
    """Sum of a field over the intervals that lie in [begin, end], or (whole False) touch it."""
    total = 0
    for interval in intervals:
        at = interval["t"] / 1000
        inside = begin <= at and at + length_s <= end
        touches = at < end and at + length_s > begin
        if inside if whole else touches:
            total += interval[group][field]
    return total
