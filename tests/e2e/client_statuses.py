#!/usr/bin/python3
"""client_statuses - makes the table "what each client does with each status" by running them

    client_statuses.py [-o FILE]        FILE: doc/clients.md, whose generated part is replaced

A scripted server answers the key s<STATUS> with that status and an error text, and every other key
as memcached would. Each client library runs its probe (clients/probe.*) against it: get, set,
increment, delete and a multi-get of three keys whose middle one fails, each on a client of its own,
followed by a plain get. The server notes on which connection the requests came, so the table says
too whether the connection survived. Needs HG_BUILD (probe_c, and memjs in clients/).
"""
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), HERE]

from client_tools import client_command, versions  # noqa: E402
from mcbin import Op, scaled  # noqa: E402
from servers import FakeBackend  # noqa: E402

STATUSES = [0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x08, 0x0C, 0x20, 0x24, 0x32, 0x35, 0x50, 0x80,
            0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0xFF01, 0xFF02, 0xFF03, 0xFF04, 0xFF05, 0xFF06,
            0xFF07, 0xFF08]
NAMES = {0x01: "not found", 0x02: "exists", 0x03: "too large", 0x04: "invalid", 0x05: "not stored",
         0x06: "not a number", 0x08: "no bucket", 0x0C: "would throttle", 0x20: "login failed",
         0x24: "no access", 0x32: "too many connections", 0x35: "bucket full", 0x50: "bucket paused",
         0x80: "frame info", 0x81: "unknown command", 0x82: "out of memory", 0x83: "not supported",
         0x84: "internal", 0x85: "busy", 0x86: "temporary failure", 0xFF01: "hot key",
         0xFF02: "bind throttle", 0xFF03: "bind eviction", 0xFF04: "queue full",
         0xFF05: "queue timeout", 0xFF06: "backend down", 0xFF07: "backend timeout",
         0xFF08: "throttled too long"}
CLIENTS = ("libmemcached", "pylibmc", "php", "dalli", "memjs")
TITLES = {"libmemcached": "libmemcached (C)", "pylibmc": "pylibmc", "php": "PHP memcached",
          "dalli": "Dalli", "memjs": "memjs"}
OPS = ("get", "set", "incr", "delete", "multi")
HEADINGS = {"get": "Get", "set": "Set", "incr": "Increment", "delete": "Delete",
            "multi": "Multi-get of three keys, the middle one refused"}
QUIET = {Op.GETQ: Op.GET, Op.GETKQ: Op.GETK, Op.SETQ: Op.SET, Op.DELETEQ: Op.DELETE}


def scripted(connection, frame):
    """The server of the probes."""
    key = frame.key.decode("latin-1")
    if re.fullmatch("s[0-9a-f]{4}", key):
        status = int(key[1:], 16)
        with_key = frame.key if status == 1 and frame.opcode == Op.GETK else b""
        if status == 1 and frame.opcode in (Op.GETQ, Op.GETKQ):
            return
        connection.reply(frame, status, value=b"" if with_key else b"refused", key=with_key)
        time.sleep(0.01)        # what follows comes in a segment of its own, as on a network
    elif frame.opcode in (Op.GET, Op.GETK, Op.GETQ, Op.GETKQ):
        with_key = frame.key if frame.opcode in (Op.GETK, Op.GETKQ) else b""
        connection.reply(frame, value=b"is " + frame.key, extras=bytes(4), cas=1, key=with_key)
    elif frame.opcode == Op.VERSION:
        connection.reply(frame, value=b"1.6.18")
    elif frame.opcode in (Op.QUIT, Op.QUITQ):
        connection.close()
    else:
        connection.reply(frame, cas=1)


def run_some(name, op, statuses):
    """The rows of one process: it may die in the middle."""
    fake = FakeBackend(scripted)
    argv, env = client_command(name, "probe")
    try:
        done = subprocess.run([*argv, "127.0.0.1", str(fake.port), op, *statuses], env=env,
                              capture_output=True, text=True, timeout=scaled(120))
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        # Per attempt the server saw: begin, the failing key, good (if it was asked at all).
        kept, begun, failed = {}, None, None
        for _, number, frame in fake.seen:
            if frame.key == b"begin":
                begun, failed = number, None
            elif re.fullmatch(b"s[0-9a-f]{4}", frame.key):
                failed = frame.key[1:].decode()
            elif frame.key == b"good" and failed:
                kept[failed] = number == begun
        found = {status: (saw, kept.get(status, False) if good == "ok" else None, good)
                 for status, saw, good in rows}
        return found, done
    finally:
        fake.stop()


def run(name):
    """{(op, status): (what the application saw, whether the connection survived, the next get)}"""
    results = {}
    for op in OPS:
        if (name, op) == ("memjs", "multi"):
            continue
        left = ["%04x" % status for status in STATUSES]
        while left:
            found, done = run_some(name, op, left)
            left = left[len(found):]
            if left and done.returncode < 0:
                found[left.pop(0)] = ("**the process is aborted**", True, "ok")
            elif left:
                raise SystemExit("%s %s: %s" % (name, op, done.stderr))
            results.update({(op, int(status, 16)): row for status, row in found.items()})
    return results


def cell(result):
    """What an application sees, without what differs from one status to the next."""
    saw, survived, good = (" ".join(part.split()) if isinstance(part, str) else part
                           for part in result)
    wrong = re.match(r"([A-Za-z:]*(?:Error|Failure|Exists|TooBig|NotFound)): ?(MemJS|Memcached)?",
                     saw)
    if wrong:
        saw = "raises " + (wrong.group(1).split("::")[-1] if not wrong.group(2) else "an Error")
    saw = saw.replace("|", "\\|")
    if survived is None:
        return "%s; **the next request: %s**" % (saw, good.replace("|", "\\|")[:60])
    return saw + ("" if survived else "; reconnects")


def table(results, op):
    """Statuses with which all clients do the same share a row."""
    names = [name for name in CLIENTS if any(key[0] == op for key in results[name])]
    rows = {}
    for status in STATUSES:
        if op == "multi" and status in (0x02, 0x05, 0x06):
            continue
        cells = tuple(cell(results[name][op, status]) for name in names)
        rows.setdefault(cells, []).append(status)
    lines = ["| status | " + " | ".join(TITLES[name] for name in names) + " |",
             "| --- |" + " --- |" * len(names)]
    for cells, statuses in rows.items():
        lines.append("| %s | %s |" % (", ".join("0x%02x" % s for s in statuses),
                                      " | ".join(cells)))
    return "\n".join(lines)


def meanings():
    return ", ".join("0x%02x %s" % item for item in NAMES.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", help="file whose generated part is replaced")
    args = parser.parse_args()
    results = {name: run(name) for name in CLIENTS}
    parts = ["Run with %s." % ", ".join(versions()), "Statuses: %s." % meanings()]
    for op in OPS:
        parts.append("### %s\n\n%s" % (HEADINGS[op], table(results, op)))
    text = "\n\n".join(parts)
    if not args.output:
        print(text)
        return
    with open(args.output) as page:
        before, rest = page.read().split("<!-- begin: client_statuses -->\n")
        after = rest.split("<!-- end: client_statuses -->\n")[1]
    with open(args.output, "w") as page:
        page.write(before + "<!-- begin: client_statuses -->\n" + text
                   + "\n<!-- end: client_statuses -->\n" + after)


if __name__ == "__main__":
    main()
