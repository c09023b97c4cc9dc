#!/usr/bin/python3
"""pairs - what one thing costs: Headgate with it against Headgate without

Two servers that differ in a few options only, before one memcached, under the same load (50
connections, depth 16, Zipf 0.99), in turns, everything pinned to one core; then both under
callgrind, for instructions. `refusal` compares a server that refuses all with one that forwards.
See doc/performance.md.
"""
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile

import compare

VALUE_BYTES = 32
# Requests; what they differ by is what the difference has cost. Classes are known by the first.
CALLGRIND_RUNS = (40000, 80000)


def pair(name, on, off):
    """Two targets; on and off: a label, and options of server, store and tenant, each a tuple."""
    def target(suffix, label, server=(), store=(), tenant=(), refuses=False):
        return type(suffix, (compare.Headgate,), {
            "name": name + "-" + suffix, "label": label, "server": server, "store": store,
            "tenant": tenant, "refuses": refuses})
    return target("on", **on), target("off", **off)


FIXED = ("execution_control: fixed",)
PAIRS = {
    "tracking": pair(
        "tracking",
        {"label": "hot-key tracking", "tenant": ("hotkey_tracking: true",
                                                 "kv_hotkey_throttle_threshold: 1000000000")},
        {"label": "none", "tenant": ("hotkey_tracking: false",)}),
    "tickets": pair(
        "tickets",
        {"label": "tickets and bind throttle", "store": FIXED,
         "tenant": ("ticket_mode: enforce", "bind_mode: enforce")},
        {"label": "none", "server": ("ingress_enabled: false",), "store": FIXED,
         "tenant": ("ticket_mode: off", "bind_mode: off")}),
    "adaptive": pair(
        "adaptive", {"label": "adaptive", "store": ("execution_control: adaptive",)},
        {"label": "fixed", "store": FIXED}),
    "refusal": pair(
        "refusal",
        {"label": "refused", "store": FIXED + ("read_tickets: 0", "write_tickets: 0",
                                               "execution_max_queue_depth: 0"), "refuses": True},
        {"label": "forwarded", "store": FIXED}),
}


def under_callgrind(base):
    """The target as a class that runs under valgrind and counts instructions."""

    class Counted(base):
        name = base.name + "-counted"

        def start(self, bench):
            self.out = os.path.join(bench.folder, self.name + ".out")
            wrapper = bench.write(self.name + ".sh", '#!/bin/sh\nexec valgrind --tool=callgrind '
                                  '--callgrind-out-file=%s "%s/headgate" "$@"\n'
                                  % (self.out, bench.options.build))
            os.chmod(wrapper, 0o755)
            os.symlink(wrapper, os.path.join(bench.folder, "headgate"))
            build, bench.options.build = bench.options.build, bench.folder
            try:
                with contextlib.suppress(FileExistsError):
                    os.symlink(os.path.join(build, "headgate-load"),
                               os.path.join(bench.folder, "headgate-load"))
                super().start(bench)
            finally:
                bench.options.build = build
                os.unlink(os.path.join(bench.folder, "headgate"))

        def instructions(self):
            """Ends the server and reads what it has executed."""
            os.kill(self.pid, signal.SIGTERM)
            for process in bench_process(self.pid):
                process.wait(60)
            with open(self.out, encoding="utf-8", errors="replace") as f:
                return int(re.search(r"^summary: (\d+)", f.read(), re.M).group(1))

    return Counted


PROCESSES = []


def bench_process(pid):
    return [process for process in PROCESSES if process.pid == pid]


def count_instructions(options, folder, base):
    """Instructions a request, as the difference of two lengths of run."""
    counts = []
    for requests in CALLGRIND_RUNS:
        sub = os.path.join(folder, "%s-%d" % (base.name, requests))
        os.mkdir(sub)
        with contextlib.ExitStack() as stack:
            bench = compare.Bench(options, sub)
            stack.callback(bench.stop)
            memcached, target = compare.Memcached(), under_callgrind(base)()
            memcached.start(bench)
            target.start(bench)
            PROCESSES[:] = bench.servers
            bench.load("-s", target.address, "-c", 50, "-p", 16, "-n", requests,
                       *compare.of_value(VALUE_BYTES), refused=target.refuses)
            counts.append(target.instructions())
    return (counts[1] - counts[0]) / (CALLGRIND_RUNS[1] - CALLGRIND_RUNS[0])


def measure_pairs(options, folder):
    with contextlib.ExitStack() as stack:
        bench = compare.Bench(options, folder)
        stack.callback(bench.stop)
        memcached = compare.Memcached()
        on, off = (target() for target in PAIRS[options.what])
        for target in memcached, on, off:
            target.start(bench)
        pairs = []
        for number in range(options.pairs):
            order = [on, off] if number % 2 == 0 else [off, on]
            found = {t.name: compare.measure(bench, t, (50, 16, VALUE_BYTES)) for t in order}
            pairs.append((found[on.name], found[off.name]))
            compare.say("pair %d of %d: CPU %.3f µs %s, %.3f µs %s" % (
                number + 1, options.pairs, found[on.name]["cpu_us"], on.label,
                found[off.name]["cpu_us"], off.label))
        compare.say("")
    return pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=sorted(PAIRS))
    parser.add_argument("--build", default=os.path.join(compare.ROOT, "build"))
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    parser.add_argument("--keys", type=int, default=100000)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--no-callgrind", action="store_true")
    options = parser.parse_args()
    options.build, options.values = os.path.abspath(options.build), [VALUE_BYTES]
    signal.signal(signal.SIGTERM, compare.end_by_signal)
    others = os.sched_getaffinity(0) - {options.core}
    if others:
        os.sched_setaffinity(0, others)
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        main_folder = os.path.join(folder, "pairs")
        os.mkdir(main_folder)
        pairs = measure_pairs(options, main_folder)
        ratios = sorted(a["cpu_us"] / b["cpu_us"] for a, b in pairs)
        speeds = sorted(a["ops_per_s"] / b["ops_per_s"] for a, b in pairs)
        on, off = (target.label for target in PAIRS[options.what])
        print("%s / %s" % (on, off))
        print("CPU an operation: median %.3f (%.3f–%.3f) of %d pairs; %.3f µs and %.3f µs" % (
            statistics.median(ratios), ratios[0], ratios[-1], len(pairs),
            statistics.median(a["cpu_us"] for a, _ in pairs),
            statistics.median(b["cpu_us"] for _, b in pairs)))
        print("throughput: median %.3f (%.3f–%.3f)" % (
            statistics.median(speeds), speeds[0], speeds[-1]))
        # Under valgrind any store is slow, and the adaptive control rightly holds back.
        if options.no_callgrind or options.what == "adaptive":
            return 0
        one, other = (count_instructions(options, folder, t) for t in PAIRS[options.what])
        print("instructions a request: %.0f %s, %.0f %s: %+.0f" % (
            one, on, other, off, one - other))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (compare.Skip, compare.Failed, subprocess.SubprocessError) as reason:
        sys.exit("pairs: %s" % reason)
