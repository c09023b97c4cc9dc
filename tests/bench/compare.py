#!/usr/bin/python3
"""compare - what a proxy costs: Headgate and its peers against the store spoken to directly

Everything that works (generator, proxy, store) is pinned to one core, so a ratio counts the CPU of
all three; this script sleeps meanwhile, on another core where there is one. Targets take turns
within a repetition, and a ratio compares with the direct run of the same repetition. See
doc/performance.md.
"""
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import contextlib
import ctypes
import itertools
import json
import os
import platform
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1

# What the design asks for: (connections, pipeline, value bytes) -> (ratio, CPU in microseconds).
BARS = {
    "headgate": {(1, 1, 32): (0.46, 19.5), (50, 1, 32): (0.95, 7.0), (50, 16, 32): (0.70, 0.77),
                 (500, 1, 32): (0.92, 9.0), (50, 1, 1024): (0.80, None),
                 (50, 16, 1024): (0.56, None)},
    "embedded": {(50, 1, 32): (0.95, None), (50, 16, 32): (0.70, None)},
    "headgate-redis": {(50, 16, 32): (0.66, 1.1)},
}

# Who must not be slower than whom, nor use more CPU: {target: (peer, workloads)}.
PEERS = {"headgate-redis": ("nutcracker-redis", [(50, 1, 32), (50, 16, 32)])}


# A run that had less of the core than this was disturbed.
BUSY_ENOUGH = 0.9


class Skip(Exception):
    """A target cannot run; the text says why."""


class Failed(Exception):
    """A run of the generator went wrong."""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


class Bench:
    """One call: the core, the scratch folder, and the servers that must be ended."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.servers = []
        self.stores = {}  # name -> (port, pid) of those that stand behind others

    def prepare_child(self):
        """In the child: pin it, and let it die with this script, however that ends."""
        os.sched_setaffinity(0, {self.options.core})
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def start(self, name, command, port):
        """Starts a server in a session of its own and waits until it accepts connections."""
        log_path = os.path.join(self.folder, name + ".log")
        with open(log_path, "wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       cwd=self.folder, start_new_session=True,
                                       preexec_fn=self.prepare_child)
        self.servers.append(process)
        end = time.monotonic() + 10
        while not listens(port):
            if process.poll() is not None or time.monotonic() > end:
                with open(log_path, encoding="utf-8", errors="replace") as log:
                    lines = log.read().strip().splitlines()
                state = ("does not listen" if process.poll() is None
                         else "ended with %d" % process.returncode)
                raise Skip("%s %s%s" % (name, state, ": " + lines[-1] if lines else ""))
            time.sleep(0.02)
        return process.pid

    def stop(self):
        for process in self.servers:
            if process.poll() is None:
                process.terminate()
        for process in self.servers:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.servers = []

    def load(self, *words, refused=False):
        """One run of the generator, pinned as well; its report. `refused`: whether that may be."""
        command = [os.path.join(self.options.build, "headgate-load"), "--json", "--interval", "0",
                   "--keys", str(self.options.keys), "--key-bytes", "16", "--zipf", "0.99",
                   "--mix", "get=90,set=10", *[str(word) for word in words]]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, cwd=self.folder, start_new_session=True,
                                   preexec_fn=self.prepare_child)
        try:
            out, err = process.communicate(timeout=600)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode != 0:
            raise Failed(err.strip().splitlines()[0] if err.strip()
                         else "headgate-load ended with %d" % process.returncode)
        report = json.loads(out)
        if report["total"]["refused"] > 0 and not refused:
            raise Failed("refused: %s" % report["total"]["statuses"])
        return report

    def fill(self, target):
        for value in self.options.values:
            self.load("-s", target.address, "--fill", "-n", 0, "-c", 8, "-p", 16, "--protocol",
                      target.protocol, *of_value(value))


def of_value(value):
    """Each value size has keys of its own, so that one store holds them side by side."""
    return "--value-bytes", str(value), "--key-prefix", "v%d-" % value


def need(program):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if path is None:
        raise Skip("%s is not installed" % program)
    return path


class Target:
    """A thing to measure. `start` brings it up, sets address and pid, or raises Skip."""

    name = label = None
    protocol = "binary"
    behind = "memcached"  # the store that it stands before; None: it has its own
    reference = "memcached"  # what its ratio is to

    def __init__(self):
        self.address = None
        self.pid = None

    def listen_at(self, port):
        self.address = "127.0.0.1:%d" % port


class Memcached(Target):
    name, label = "memcached", "memcached direct"
    behind = None

    def start(self, bench):
        port = free_port()
        user = ["-u", "root"] if os.geteuid() == 0 else []
        self.pid = bench.start(self.name, [need("memcached"), "-t", "1", "-l", "127.0.0.1", "-p",
                                           str(port), "-U", "0", "-m", "1024", "-c", "4096", *user],
                               port)
        self.listen_at(port)
        bench.stores[self.name] = port, self.pid
        bench.fill(self)


class Redis(Target):
    """One thread, nothing on disk."""

    name, label = "redis", "Redis direct"
    protocol = "resp"
    behind, reference = None, "redis"

    def start(self, bench):
        port = free_port()
        self.pid = bench.start(self.name, [need("redis-server"), "--bind", "127.0.0.1", "--port",
                                           str(port), "--save", "", "--appendonly", "no",
                                           "--maxclients", "4096", "--dir", bench.folder], port)
        self.listen_at(port)
        bench.stores[self.name] = port, self.pid
        bench.fill(self)


class Haproxy(Target):
    name, label = "haproxy", "haproxy, TCP mode"

    def start(self, bench):
        port = free_port()
        path = bench.write("haproxy.cfg", """
global
    maxconn 4096
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen memcached
    bind 127.0.0.1:%d
    server memcached 127.0.0.1:%d
""" % (port, bench.stores["memcached"][0]))
        self.pid = bench.start(self.name, [need("haproxy"), "-db", "-q", "-f", path], port)
        self.listen_at(port)


class Nutcracker(Target):
    """With buffers of 2 KiB: 16 KiB a message, its default, make it half as fast at depth 16."""

    name, label = "nutcracker", "nutcracker → memcached, text"
    protocol = "text"
    options = ""

    def start(self, bench):
        port = free_port()
        path = bench.write(self.name + ".yml", """
cache:
  listen: 127.0.0.1:%d%s
  hash: fnv1a_64
  distribution: ketama
  auto_eject_hosts: false
  client_connections: 4096
  server_connections: 1
  servers:
   - 127.0.0.1:%d:1
""" % (port, self.options, bench.stores[self.behind][0]))
        self.pid = bench.start(self.name, [need("nutcracker"), "-c", path, "-a", "127.0.0.1", "-s",
                                           str(free_port()), "-v", "3", "-m", "2048"], port)
        self.listen_at(port)


class NutcrackerRedis(Nutcracker):
    name, label = "nutcracker-redis", "nutcracker → Redis"
    protocol = "resp"
    behind = reference = "redis"
    options = "\n  redis: true"


class Headgate(Target):
    """One worker, one metered tenant: capacity, reservation and limit are finite, and far off."""

    name, label = "headgate", "Headgate → memcached"
    server, store, tenant = (), (), ()  # further options
    refuses = False  # all that is asked, and that is what is measured

    def upstream(self, bench):
        return "{name: store, kind: memcached, servers: [{address: 127.0.0.1:%d}]%s}" % (
            bench.stores[self.behind][0], "".join(", " + text for text in self.store))

    def start(self, bench):
        program = os.path.join(bench.options.build, "headgate")
        if not os.access(program, os.X_OK):
            raise Skip("%s does not exist" % program)
        port = free_port()
        data = os.path.join(bench.folder, self.name + "-data")
        os.mkdir(data)
        path = bench.write(self.name + ".yaml", """
listen:
  - {address: 127.0.0.1:%d}
threads: 1
data_dir: %s
node_capacity: 1000000000
%s
upstreams:
  - %s
tenants:
  - {name: default, upstream: store, reserved: 1000, hard_limit: 900000000%s}
""" % (port, data, "\n".join(self.server), self.upstream(bench), "".join(", " + text for text in self.tenant)))
        self.pid = bench.start(self.name, [program, "-c", path, "-t", "1"], port)
        self.listen_at(port)
        self.warm(bench)

    def warm(self, bench):
        """Shows that it works at all before anything is measured."""
        bench.load("-s", self.address, "-n", 200, "-c", 1, *of_value(bench.options.values[0]),
                   refused=self.refuses)


class Embedded(Headgate):
    name, label = "embedded", "Headgate, embedded store"
    behind = None

    def upstream(self, bench):
        return "{name: store, kind: embedded, embedded_max_bytes: 2 GiB}"

    def warm(self, bench):
        bench.fill(self)


class HeadgateRedis(Headgate):
    """In a database of its own: its items have a header that those of the others have not."""

    name, label = "headgate-redis", "Headgate → Redis"
    behind = reference = "redis"

    def upstream(self, bench):
        return "{name: store, kind: redis, database: 1, servers: [{address: 127.0.0.1:%d}]}" % (
            bench.stores[self.behind][0])

    def warm(self, bench):
        bench.fill(self)


TARGETS = {t.name: t for t in (Memcached, Haproxy, Nutcracker, Headgate, Embedded, Redis,
                               NutcrackerRedis, HeadgateRedis)}
REFERENCES = [t.name for t in TARGETS.values() if t.name == t.reference]


def start_targets(bench, names):
    """(running targets, {name: why it is skipped})"""
    running, skipped = [], {}
    for name in names:
        target = TARGETS[name]()
        try:
            if target.behind is not None and target.behind not in bench.stores:
                raise Skip("it needs " + target.behind)
            target.start(bench)
            running.append(target)
        except (Skip, Failed, OSError) as reason:
            skipped[name] = str(reason)
            print("skipped: %s: %s" % (target.label, reason), file=sys.stderr)
    return running, skipped


def measure(bench, target, workload):
    connections, pipeline, value = workload
    options = bench.options
    words = ["-s", target.address, "-c", connections, "-p", pipeline, "--protocol", target.protocol,
             "-t", options.seconds, "--warmup", options.warmup, *of_value(value), "--cpu-of",
             target.pid]
    if target.behind is not None:
        words += ["--cpu-of", bench.stores[target.behind][1]]
    report = bench.load(*words, refused=getattr(target, "refuses", False))
    cpu = [process["us_per_op"] for process in report["cpu"]["processes"]]
    all_cpu = sum(cpu) + report["cpu"]["own_us_per_op"]
    ops_per_s = report["total"]["ops_per_s"]
    return {"ops_per_s": ops_per_s, "cpu_us": cpu[0], "all_cpu_us": all_cpu,
            "busy": ops_per_s * all_cpu / 1e6,
            "store_cpu_us": cpu[1] if len(cpu) > 1 else None,
            "load_cpu_us": report["cpu"]["own_us_per_op"],
            "p50_us": report["total"]["latency_us"]["p50"],
            "p99_us": report["total"]["latency_us"]["p99"]}


def run_all(bench, running, workloads):
    """{(target, workload): [a result or None for each repetition]}, and the failures in words."""
    results = {(t.name, w): [] for t in running for w in workloads}
    failures = []
    steps = bench.options.repetitions * len(workloads)
    for step, (repetition, workload) in enumerate(
            itertools.product(range(bench.options.repetitions), workloads)):
        say("%d of %d: repetition %d, %s" % (step + 1, steps, repetition + 1, in_words(workload)))
        turn = repetition % len(running)
        for target in running[turn:] + running[:turn]:
            try:
                result = measure(bench, target, workload)
            except Failed as reason:
                result = None
                failures.append("%s, %s, repetition %d: %s" % (target.label, in_words(workload),
                                                               repetition + 1, reason))
            results[target.name, workload].append(result)
    say("")
    return results, failures


def say(text):
    """Progress, on one line of a terminal."""
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def in_words(workload):
    connections, pipeline, value = workload
    return "%d connection%s, depth %d, %d bytes" % (connections, "s" * (connections > 1), pipeline,
                                                   value)


def ratio_of(options, mine, direct):
    """Throughput over direct throughput; with --by-cpu, what it would be on a core of their own."""
    if options.by_cpu:
        return direct["all_cpu_us"] / mine["all_cpu_us"]
    return mine["ops_per_s"] / direct["ops_per_s"]


def summarize(options, results, running, workloads):
    """One row for each target and workload: medians, the ratio to the store direct, its spread."""
    rows = []
    for target, workload in itertools.product(running, workloads):
        mine = results[target.name, workload]
        direct = results.get((target.reference, workload), [None] * len(mine))
        ratios = [ratio_of(options, m, d) for m, d in zip(mine, direct) if m and d]
        good = [m for m in mine if m]
        row = {"target": target.name, "connections": workload[0], "pipeline": workload[1],
               "value_bytes": workload[2], "runs": len(good)}
        if good:
            for field in "ops_per_s", "cpu_us", "load_cpu_us", "busy", "p50_us", "p99_us":
                row[field] = statistics.median(m[field] for m in good)
            store = [m["store_cpu_us"] for m in good if m["store_cpu_us"] is not None]
            row["store_cpu_us"] = statistics.median(store) if store else None
        if ratios:
            row.update(ratio=statistics.median(ratios), ratio_min=min(ratios),
                       ratio_max=max(ratios))
        rows.append(row)
    return rows


def figure(number):
    return "%.2f" % number if number < 10 else "%.1f" % number


def table(title, targets, workloads, cell):
    """A table in Markdown: a row for each target, a column for each workload of one value size."""
    lines = ["", title, ""]
    heads = ["%d conn., depth %d" % w[:2] if w[0] > 1 else "1 connection, depth %d" % w[1]
             for w in workloads]
    lines.append("| | " + " | ".join(heads) + " |")
    lines.append("| --- |" + " --- |" * len(workloads))
    for target in targets:
        lines.append("| %s | " % target.label +
                     " | ".join(cell(target, workload) for workload in workloads) + " |")
    return lines


def show(options, running, skipped, failures, rows, workloads, results):
    index = {(r["target"], (r["connections"], r["pipeline"], r["value_bytes"])): r for r in rows}

    def ratio(target, workload):
        row = index[target.name, workload]
        if "cpu_us" not in row:
            return "failed"
        part = figure(row["cpu_us"])
        if target.name == target.reference:
            return "1 / " + part
        return "%s / %s" % (figure(row["ratio"]) if "ratio" in row else "?", part)

    def spread(target, workload):
        row = index[target.name, workload]
        return "%.2f–%.2f" % (row["ratio_min"], row["ratio_max"]) if "ratio" in row else "–"

    def detail(target, workload):
        row = index[target.name, workload]
        if "cpu_us" not in row:
            return "failed"
        store = row["store_cpu_us"]
        return "%s, %.3f, %s, %s, %.0f %%" % (
            "{:,.0f}".format(row["ops_per_s"]), row["p50_us"] / 1000, figure(row["load_cpu_us"]),
            figure(store) if store is not None else "–", row["busy"] * 100)

    lines = ["%s, core %d of %d, Linux %s; %g s and %d repetition%s each, %d keys" % (
        cpu_model(), options.core, os.cpu_count(), platform.release(), options.seconds,
        options.repetitions, "s" * (options.repetitions > 1), options.keys)]
    for value, reference in itertools.product(options.values, REFERENCES):
        some = [w for w in workloads if w[2] == value]
        those = [t for t in running if t.reference == reference]
        if not those:
            continue
        title = "%d-byte values: " % value
        lines += table(title + "× of %s / CPU µs of the target an operation"
                       % TARGETS[reference].label, those, some, ratio)
        lines += table(title + "lowest and highest ×", those, some, spread)
        lines += table(title + "operations a second, median latency in ms, CPU µs of the "
                       "generator, of the store behind, share of the core used", those, some, detail)
    lines += ["", *bars_lines(index), *peers_lines(index), *disturbed_lines(options, results)]
    lines += ["skipped: %s: %s" % (TARGETS[n].label, why) for n, why in skipped.items()]
    lines += ["failed: " + text for text in failures]
    print("\n".join(lines))


def bars_lines(index):
    lines = []
    for (name, workload), row in index.items():
        ratio, cpu = BARS.get(name, {}).get(workload, (None, None))
        if ratio is None or "ratio" not in row:
            continue
        fine = row["ratio"] >= ratio and (cpu is None or row["cpu_us"] <= cpu)
        text = "%s × (bar %.2f)" % (figure(row["ratio"]), ratio)
        if cpu is not None:
            text += ", %s µs (bar %s)" % (figure(row["cpu_us"]), figure(cpu))
        lines.append("%s: %s, %s: %s" % ("reached" if fine else "MISSED", TARGETS[name].label,
                                         in_words(workload), text))
    return lines


def peers_lines(index):
    lines = []
    for name, (peer, workloads) in PEERS.items():
        for workload in workloads:
            mine, other = index.get((name, workload), {}), index.get((peer, workload), {})
            if "ratio" not in mine or "ratio" not in other:
                continue
            fine = mine["ratio"] >= other["ratio"] and mine["cpu_us"] <= other["cpu_us"]
            lines.append("%s: %s, %s: %s × and %s µs, %s has %s × and %s µs" % (
                "reached" if fine else "MISSED", TARGETS[name].label, in_words(workload),
                figure(mine["ratio"]), figure(mine["cpu_us"]), TARGETS[peer].label,
                figure(other["ratio"]), figure(other["cpu_us"])))
    return lines


def disturbed_lines(options, results):
    """A closed loop keeps its core busy; where it did not, somebody else used it (or a disk was
    waited for), and throughput says little."""
    runs = [(target, r["busy"]) for (target, _), found in results.items() for r in found if r]
    few = [busy for _, busy in runs if busy < BUSY_ENOUGH]
    if not few:
        return []
    advice = "" if options.by_cpu else "; --by-cpu compares without them"
    return ["disturbed: %d of %d runs had less than %.0f %% of the core, one only %.0f %%%s" % (
        len(few), len(runs), BUSY_ENOUGH * 100, min(few) * 100, advice)]


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def numbers(text):
    return [int(word) for word in text.split(",")]


def target_names(text):
    names = text.split(",")
    for name in names:
        if name not in TARGETS:
            raise argparse.ArgumentTypeError("'%s' is none of %s" % (name, ", ".join(TARGETS)))
    return [name for name in TARGETS if name in names]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(ROOT, "build"),
                        help="folder of headgate and headgate-load (%(default)s)")
    parser.add_argument("--quick", action="store_true",
                        help="a short look: one repetition of half a second, 32-byte values")
    parser.add_argument("--repetitions", type=int, default=None, help="(5)")
    parser.add_argument("--seconds", type=float, default=None, help="length of a run (2)")
    parser.add_argument("--warmup", type=float, default=0.3, help="seconds before it (%(default)s)")
    parser.add_argument("--connections", type=numbers, default=[1, 50, 500], help="(1,50,500)")
    parser.add_argument("--pipelines", type=numbers, default=[1, 16], help="(1,16)")
    parser.add_argument("--values", type=numbers, default=None, help="bytes (32,1024)")
    parser.add_argument("--keys", type=int, default=100000, help="(%(default)s)")
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)),
                        help="the core that everything runs on (%(default)s)")
    parser.add_argument("--targets", type=target_names, default=list(TARGETS),
                        help="some of " + ",".join(TARGETS))
    parser.add_argument("--by-cpu", action="store_true",
                        help="compare the CPU of generator, target and store an operation instead "
                             "of throughput: for a machine that others use too")
    parser.add_argument("--json", metavar="FILE", help="write all results there as well")
    options = parser.parse_args()
    options.repetitions = options.repetitions or (1 if options.quick else 5)
    options.seconds = options.seconds or (0.5 if options.quick else 2.0)
    options.values = options.values or ([32] if options.quick else [32, 1024])
    options.build = os.path.abspath(options.build)
    if not os.access(os.path.join(options.build, "headgate-load"), os.X_OK):
        parser.error("no headgate-load in '%s'; build it first" % options.build)
    if options.core not in os.sched_getaffinity(0):
        parser.error("core %d is none of %s" % (options.core, sorted(os.sched_getaffinity(0))))
    return options


def end_by_signal(number, frame):
    raise KeyboardInterrupt


def main():
    options = parse_options()
    signal.signal(signal.SIGTERM, end_by_signal)
    others = os.sched_getaffinity(0) - {options.core}
    if others:
        os.sched_setaffinity(0, others)
    workloads = [(c, p, v) for v in options.values for p in options.pipelines
                 for c in options.connections]
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        with contextlib.ExitStack() as stack:
            bench = Bench(options, folder)
            stack.callback(bench.stop)
            running, skipped = start_targets(bench, options.targets)
            if not running:
                return 1
            results, failures = run_all(bench, running, workloads)
    rows = summarize(options, results, running, workloads)
    show(options, running, skipped, failures, rows, workloads, results)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump({"cpu": cpu_model(), "kernel": platform.release(), "core": options.core,
                       "seconds": options.seconds, "repetitions": options.repetitions,
                       "keys": options.keys, "by_cpu": options.by_cpu, "rows": rows,
                       "skipped": skipped, "failures": failures,
                       "runs": [{"target": name, "connections": w[0], "pipeline": w[1],
                                 "value_bytes": w[2], "results": found}
                                for (name, w), found in results.items()]}, f, indent=1)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nended early", file=sys.stderr)
        sys.exit(130)
