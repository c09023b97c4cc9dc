#!/usr/bin/python3
"""idle_tls - what an idle connection costs in memory, plain and with TLS.

    HG_BUILD=build tests/bench/idle_tls.py [--connections 10000] [--client-certificates]

Starts headgate with an embedded store, opens the connections, sends one NOOP on each, and compares
the resident memory of the process before and after, when it has settled. The client keeps only the
descriptors. The first 200 connections are opened before the measurement, for what is made once.
The limit of open files must allow as many, and some more.
"""
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import os
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from certs import Authority  # noqa: E402
from mcbin import Client  # noqa: E402
from servers import Headgate, free_port, user_row  # noqa: E402

WARM = 200
BARS = {"plain": 2048, "tls": 40 * 1024}


def resident_bytes(pid):
    with open("/proc/%d/statm" % pid) as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def settled_bytes(pid):
    """The least of three seconds: what is freed with a delay is freed."""
    least = resident_bytes(pid)
    for _ in range(30):
        time.sleep(0.1)
        least = min(least, resident_bytes(pid))
    return least


def open_connections(address, count, tls):
    kept = []
    for _ in range(count):
        client = Client(address, 30, tls)
        client.noop()
        kept.append(client.sock.detach())
    return kept


def measure(name, gate, address, count, tls):
    kept = open_connections(address, WARM, tls)
    before = settled_bytes(gate.pid)
    begun = time.monotonic()
    kept += open_connections(address, count, tls)
    took = time.monotonic() - begun
    after = settled_bytes(gate.pid)
    each = (after - before) / count
    print("%-6s %d connections: %.1f MiB before, %.1f MiB after, %.0f bytes each (bar: %d); "
          "opened in %.0f s" % (name, count, before / 2**20, after / 2**20, each, BARS[name], took))
    for fd in kept:
        os.close(fd)
    return each <= BARS[name]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--connections", type=int, default=10000)
    parser.add_argument("--client-certificates", action="store_true",
                        help="clients show a certificate and are users by it")
    options = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    if limit < options.connections + 5100:  # what the server asks for
        sys.exit("the limit of open files is %d: too few for %d connections"
                 % (limit, options.connections))
    ca = Authority()
    shown, shop = ca.issue("headgate"), ca.issue("shop", hosts=())
    tls = {"certificate": shown.certificate, "key": shown.key}
    users = None
    if options.client_certificates:
        tls.update(client_ca=ca.certificate, client_auth="required", client_user="cn")
        users = {"users": [user_row("shop")], "anonymous": {"bucket": "shop"}}
    port = free_port()
    fine = True
    for name in ("plain", "tls"):
        config = {"threads": 1, "max_connections": options.connections + 1000,
                  "tenants": [{"name": "shop"}, {"name": "default"}]}
        with Headgate(config, users=users, wait=False) as gate:
            gate.write_config(listen=[{"address": gate.where},
                                      {"address": "127.0.0.1:%d" % port, "tls": tls}])
            gate.start()
            if name == "plain":
                fine &= measure(name, gate, gate.address, options.connections, None)
            else:
                context = ca.context(shop if options.client_certificates else None)
                fine &= measure(name, gate, ("127.0.0.1", port), options.connections, context)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
