#!/usr/bin/python3
"""scrape - what a scrape of /metrics costs, in CPU time of the whole process.

A server with so many tenants, each of which has had requests of several kinds, is scraped again and
again on one connection. What it uses without being asked (ticks, the second hand) is measured
first and taken off. Beside it: the requests for the dashboard.

    scrape.py --build build [--tenants 100] [--scrapes 200] [--threads 2] [--max-ms 5]
"""
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import http.client
import os
import sys
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path[:0] = [os.path.join(TOP, "tests", "lib")]


def cpu_s(pid):
    """User and system time of all threads, to a nanosecond."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as file:
            total += int(file.read().split()[0])
    return total / 1e9


def measure(daemon, place, path, count):
    """(CPU seconds a request, bytes)."""
    connection = http.client.HTTPConnection(*place, timeout=30)
    size = 0

    def ask():
        nonlocal size
        connection.request("GET", path)
        reply = connection.getresponse()
        size = len(reply.read())
        assert reply.status == 200, (path, reply.status)
    for _ in range(5):
        ask()
    began, cpu = time.monotonic(), cpu_s(daemon.pid)
    time.sleep(1)
    idle = (cpu_s(daemon.pid) - cpu) / (time.monotonic() - began)
    began, cpu = time.monotonic(), cpu_s(daemon.pid)
    for _ in range(count):
        ask()
    spent = cpu_s(daemon.pid) - cpu - idle * (time.monotonic() - began)
    connection.close()
    return spent / count, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--tenants", type=int, default=100)
    parser.add_argument("--scrapes", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--max-ms", type=float, default=5.0)
    args = parser.parse_args()
    os.environ["HG_BUILD"] = os.path.abspath(args.build)
    from webclient import place, serve
    names = ["tenant-%03d" % i for i in range(args.tenants)]
    config = {"tenants": [{"name": name, "reserved": 100, "hard_limit": 20000} for name in names],
              "threads": args.threads}
    with serve(config) as daemon:
        for name in names:
            with daemon.client(bucket=name) as client:
                for i in range(10):
                    client.set("k%d" % i, "v" * 100)
                    client.get("k%d" % i)
                    client.delete("none")
        print("%-24s %12s %12s" % ("path", "CPU ms", "bytes"))
        worst = None
        for path in ("/metrics", "/api/status.json", "/api/tenants.json", "/api/upstreams.json",
                     "/api/hotkeys.json", "/api/history.json"):
            spent, size = measure(daemon, place(daemon), path, args.scrapes)
            worst = spent * 1000 if worst is None else worst
            print("%-24s %12.3f %12d" % (path, spent * 1000, size))
    print("a scrape with %d tenants and %d workers: %.3f ms of CPU (at most %.1f)" % (
        args.tenants, args.threads, worst, args.max_ms))
    return 0 if worst <= args.max_ms else 1


if __name__ == "__main__":
    sys.exit(main())
