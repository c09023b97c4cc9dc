#!/usr/bin/python3
"""overload - how much good work is done beyond capacity, by each control of the tickets

A real Headgate before a real memcached that is made slow (tests/lib/slowstore): its throughput
grows to a knee and falls beyond it, with noise. headgate-load asks in an open loop, so the load does
not wait for the answers, and latency counts from when a request was due. For each control:

    goodput      answers within the SLO a second, as a share of the capacity, at several offered loads
    p99          of what was answered, at the same
    settles in   seconds from a step of the load to four times as much, and from a halving of the
                 capacity, until the goodput stays near its final mean (see `settled`); and that
                 mean, as a share of what the store can do then
    Jain         of the goodput of many tenants, of whom one asks for as much as all
                 together may have; and what that one gets

See doc/performance.md. The machine should be idle.
"""
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = (0.8, 1, 2, 5, 10)
WINDOW_MS = 100
SMOOTH = 5          # windows that are looked at together: at 1,000 a second one alone is all noise
NEAR = 0.10         # of the final mean
HOLD_S = 2.0        # for so long
TENANTS = 50        # headgate-load knows 64


def controls(slots):
    """name -> options of the upstream. A fixed number as if the knee were known is the bar."""
    return {
        "fixed at the knee": {"execution_control": "fixed", "read_tickets": slots,
                              "write_tickets": slots},
        "fixed, 1024": {"execution_control": "fixed"},
        "probing": {"execution_control": "probing"},
        "adaptive": {"execution_control": "adaptive"},
    }


class Bench:
    def __init__(self, options):
        self.options = options
        self.capacity = options.slots * 1000.0 / options.service_ms

    @contextlib.contextmanager
    def front(self, control, tenants=("default",)):
        from servers import Headgate
        from slowstore import SlowStore
        with SlowStore(service_ms=self.options.service_ms, slots=self.options.slots,
                       knee_fall=self.options.knee_fall, noise=self.options.noise) as store:
            row = dict({"name": "store", "kind": "memcached",
                        "servers": [{"address": store.where}]}, **control)
            with Headgate({"upstreams": [row], "threads": 1,
                           "tenants": [{"name": name} for name in tenants]}) as daemon:
                yield daemon, store

    def load(self, daemon, seconds, tenants, warmup=None):
        """tenants: {bucket: (rate, connections)}; the report."""
        argv = [os.path.join(self.options.build, "headgate-load"), "-s", daemon.where, "--json",
                "--interval", "0", "--interval-ms", str(WINDOW_MS), "--arrivals", "poisson",
                "--waiting", "1000", "--slo-ms", str(self.options.slo_ms), "--zipf", "0",
                "--mix", "get=1", "--keys", "1000", "-t", str(seconds),
                "--warmup", str(self.options.warmup if warmup is None else warmup),
                "--cpu-of", str(daemon.pid)]
        for bucket, (rate, connections) in tenants.items():
            argv += ["--tenant", "name=%s,bucket=%s,rate=%s,connections=%d,hello=xerror" % (
                bucket, bucket, rate, connections)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            raise RuntimeError("headgate-load: " + (done.stderr or "exit %d" % done.returncode))
        return json.loads(done.stdout)

    # -- the measurements --

    def level(self, control, times):
        rate = times * self.capacity
        with self.front(control) as (daemon, _):
            report = self.load(daemon, self.options.seconds,
                               {"default": (round(rate), self.connections(rate))})
        row = report["total"]
        return {"goodput": row["within_slo"] / report["seconds"] / self.capacity,
                "p99_ms": row["latency_us"]["p99"] / 1000,
                "shed": row["shed"] / max(1, row["intended"])}

    def connections(self, rate):
        """Enough that refusals after 20 ms never leave a request without one."""
        return int(self.options.slots * 4 + rate * 0.05)

    def step_up(self, control):
        low, high = 0.5 * self.capacity, 2 * self.capacity
        at, seconds = 3, 3 + self.options.settle
        with self.front(control) as (daemon, _):
            report = self.load(daemon, seconds, {
                "default": ("%d@0/%d@%d" % (low, high, at), self.connections(high))})
        return self.show_settled(windows(report), at, self.capacity)

    def halving(self, control):
        rate, at = 2 * self.capacity, 3
        seconds = at + self.options.settle
        with self.front(control) as (daemon, store):
            begin = threading.Timer(self.options.warmup + at, lambda: store.set(
                slots=self.options.slots // 2))
            begin.start()
            report = self.load(daemon, seconds, {"default": (round(rate), self.connections(rate))})
            begin.join()
        return self.show_settled(windows(report), at, self.capacity / 2)

    @staticmethod
    def show_settled(rates, at_s, capacity):
        seconds, final = settled(rates, at_s)
        return "%s, %.2f" % ("never" if seconds is None else "%.1f s" % seconds, final / capacity)

    def tenants(self, control):
        names = ["t%02d" % n for n in range(TENANTS)]
        share = self.capacity / TENANTS
        asked = {name: (share, 3) for name in names[1:]}
        asked[names[0]] = (round(self.capacity), self.connections(self.capacity))
        with self.front(control, names) as (daemon, _):
            report = self.load(daemon, max(self.options.seconds, 10), asked)
        found = {row["name"]: row["within_slo"] / max(1, row["intended"])
                 for row in report["tenants"]}
        from flood import jain
        return jain([found[name] for name in names[1:]]), found[names[0]] * self.capacity


def windows(report):
    """Answers within the SLO, a second, of each window from the start of the measured part."""
    rows = report["total"]["intervals"]
    return [row["other"]["within_slo"] * 1000 / WINDOW_MS for row in rows]


def settled(rates, at_s):
    """Seconds from the step until the mean of SMOOTH windows stays within NEAR of the final mean for
    HOLD_S, and that mean; None: it did not settle. The last window is cut off, as it is not whole."""
    begin = int(at_s * 1000 / WINDOW_MS)
    rates = rates[begin:-1]
    tail = rates[len(rates) // 2:]
    final = statistics.fmean(tail)
    smooth = [statistics.fmean(rates[i:i + SMOOTH]) for i in range(len(rates) - SMOOTH + 1)]
    need, run = int(HOLD_S * 1000 / WINDOW_MS), 0
    for index, rate in enumerate(smooth):
        run = run + 1 if abs(rate - final) <= NEAR * final else 0
        if run == need:
            return (index - need + 1) * WINDOW_MS / 1000, final
    return None, final


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--service-ms", type=float, default=20)
    parser.add_argument("--slots", type=int, default=20)
    parser.add_argument("--knee-fall", type=float, default=0.25)
    parser.add_argument("--noise", type=float, default=3, help="percent")
    parser.add_argument("--slo-ms", type=float, default=100)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--warmup", type=float, default=3)
    parser.add_argument("--settle", type=float, default=10, help="seconds after a step")
    parser.add_argument("--levels", type=lambda text: [float(x) for x in text.split(",")],
                        default=list(LEVELS), help="offered loads, as multiples of the capacity")
    parser.add_argument("--control", action="append", help="only this; may be repeated")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    os.environ["HG_BUILD"] = options.build
    sys.path.insert(0, os.path.join(HERE, "..", "lib"))
    bench = Bench(options)
    wanted = {name: row for name, row in controls(options.slots).items()
              if not options.control or name in options.control}
    if not wanted:
        parser.error("no such control (accepted: %s)" % ", ".join(controls(1)))

    print("Capacity %.0f a second (%d slots of %g ms), falling by %g beyond the knee, noise %g %%; "
          "SLO %g ms.\n" % (bench.capacity, options.slots, options.service_ms, options.knee_fall,
                            options.noise, options.slo_ms))
    heads = ["%gx" % level for level in options.levels]
    print("| control | " + " | ".join("goodput " + h for h in heads) + " | "
          + " | ".join("p99 " + h for h in heads)
          + " | 4x step | halving | Jain, greedy |")
    print("| --- " * (4 + 2 * len(heads)) + "|")
    for name, control in wanted.items():
        levels = [bench.level(control, times) for times in options.levels]
        up, halved = bench.step_up(control), bench.halving(control)
        index, greedy = bench.tenants(control)
        print("| %s | %s | %s | %s | %s | %.3f, %.0f/s |" % (
            name, " | ".join("%.2f" % row["goodput"] for row in levels),
            " | ".join("%.0f ms" % row["p99_ms"] for row in levels),
            up, halved, index, greedy), flush=True)
        shed = max(row["shed"] for row in levels)
        if shed > 0.01:
            print("overload: %.0f %% were not sent, for want of connections" % (100 * shed),
                  file=sys.stderr)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, AssertionError, subprocess.SubprocessError) as reason:
        sys.exit("overload: %s" % reason)
