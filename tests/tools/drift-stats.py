"""drift-stats - doc/operations.md names exactly the statistics that a running server sends (TAP)

Run by drift-stats.sh. A name counts as documented when it stands in `code` in the first column of a
table in the section of its group.
"""
# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import re
import sys

TOP = os.path.abspath(os.environ.get("top_srcdir", "."))
os.environ["HG_BUILD"] = os.path.abspath(os.environ.get("top_builddir", "build"))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
from mcbin import Client, poll          # noqa: E402
from servers import Headgate, free_port  # noqa: E402


def read(name):
    with open(os.path.join(TOP, "doc", name), encoding="utf-8") as page:
        return page.read()


PAGE = read("operations.md")


def section(title):
    found = re.search(r"^### %s\n(.*?)(?=^##)" % re.escape(title), PAGE, re.M | re.S)
    assert found, "no section '%s'" % title
    return found.group(1)


def first_column(text):
    names = set()
    for cell in re.findall(r"^\| ([^|]*) \|", text, re.M):
        names |= set(re.findall(r"`([^`]+)`", cell))
    return names


def listed(name):
    found = re.search(r"<!-- %s: begin -->\n(.*?)<!-- %s: end -->" % (name, name), PAGE, re.S)
    assert found, "no list '%s'" % name
    return first_column(found.group(1))


def same(sent, documented):
    """What is wrong, or nothing."""
    wrong = ["sent, not in the manual: " + name for name in sorted(sent - documented)]
    return wrong + ["in the manual, not sent: " + name for name in sorted(documented - sent)]


def fields(value):
    return set(re.findall(r"(?:^| )([a-z_]+)=", value))


# ---- one check for each group ----

def check_general(client):
    outcomes = {"outcome_" + name for name in listed("outcomes")}
    documented = first_column(section("stat")) - listed("outcomes") - {"connections"}
    return same(set(client.stat()), documented | outcomes)


def check_sum(client):
    stats = client.stat()
    total = sum(int(value) for name, value in stats.items() if name.startswith("outcome_"))
    if total == int(stats["cmd_total"]):
        return []
    return ["outcomes are %d, cmd_total is %s" % (total, stats["cmd_total"])]


def check_threads(client):
    return same({name.split(":")[1] for name in client.stat("threads")}, listed("workers"))


def check_buckets(client):
    rows = client.stat("buckets")
    return same(set(json.loads(rows["default"])), first_column(section("stat bucket_details")))


def check_details(client):
    one = json.loads(client.stat("bucket_details default")["default"])
    every = json.loads(client.stat("bucket_details")["bucket details"])["buckets"]
    wrong = same(set(one), first_column(section("stat bucket_details")))
    wrong += same(set(one["outcomes"]), listed("outcomes"))
    return wrong + ([] if len(every) == 2 else ["%d buckets" % len(every)])


def check_throttle(client):
    sent = {name.split(":")[-1] for name in client.stat("throttle")}
    return same(sent, first_column(section("stat throttle")))


def check_hotkeys(client):
    rows = client.stat("hotkeys history default")
    sent = set().union(*(set(json.loads(value)) for value in rows.values()))
    now = set().union(*(set(json.loads(value)) for value in client.stat("hotkeys").values()))
    documented = first_column(section("stat hotkeys"))
    documented -= {name for name in documented if not name.isupper() or name.startswith("TABLE_")}
    return same(sent, documented) + same(now | {"EPOCH", "END"} if now else documented, documented)


def check_engine(client):
    return same(set(client.stat("hotkey_engine")), first_column(section("stat hotkey_engine")))


def check_tickets(client):
    text = section("stat tickets")
    documented = first_column(text) - {"UPSTREAM:read", "UPSTREAM:write", "ingress",
                                       "UPSTREAM:server:ADDRESS:read",
                                       "UPSTREAM:server:ADDRESS:write",
                                       "tenant:NAME:ingress", "tenant:NAME:read",
                                       "tenant:NAME:write"}
    sent = set()
    for name in client.stat("tickets"):
        words = name.split(":")
        if words[0] == "tenant":
            sent.add(":".join(words[3:]))
        elif words[0] == "ingress":
            sent.add(":".join(words[1:]))
        elif words[1] in ("read", "write"):
            sent.add(":".join(words[2:]))
        elif words[1] == "server":
            name = name.split(":", 2)[2]
            sent.add(re.sub(r"^.*?:\d+:(read:|write:)?", "", name))
        else:
            sent.add(":".join(words[1:]))
    return same(sent, documented)


def check_binds(client):
    sent = {name for name in client.stat("bindthrottle") if ":" not in name}
    wrong = same(sent, listed("binds"))
    mine = {name.split(":")[2] for name in client.stat("bindthrottle") if name.startswith("tenant:")}
    return wrong + same(mine, {name for name in listed("tenants") if name.startswith(("bind_", "key_share_"))})


def check_ops(client):
    text = section("stat ops")
    rows = [name.split(":") for name in client.stat("ops")]
    wrong = ["operation not in the manual: " + op for op in sorted({op for op, _ in rows})
             if not re.search(r"\b%s\b" % op, text)]
    documented = set(re.findall(r"`([a-z0-9_]+)`", text))
    return wrong + same({name for _, name in rows}, documented)


def check_upstreams(client):
    rows = [name.split(":") for name in client.stat("upstreams")]
    wrong = same({row[1] for row in rows if row[0] == "file"}, listed("embedded") | {"kind"})
    wrong += same({row[1] for row in rows if row[0] == "slots" and len(row) == 2},
                  listed("cluster") | {"kind"})
    sent = {row[-1] for row in rows if row[0] == "cache" and len(row) == 3}
    wrong += same(sent, listed("upstream") | {"address", "state", "connect_target", "last_error"})
    text = section("stat upstreams")
    return wrong + [word + " is not explained" for word in ("kind", "address", "state", "connect_target", "last_error")
                    if not re.search(r"`(UPSTREAM:)?%s`" % word, text)]


def check_pool(client):
    rows = [name.split(":") for name in client.stat("pool")]
    wrong = [] if {row[0] for row in rows} == {"cache", "slots"} else ["rows of %s" % rows[:1]]
    wrong += [":".join(row) for row in rows if len(row) != 4 or row[2] != "own"]
    return wrong + same({row[3] for row in rows}, listed("pool"))


def check_connections(client):
    rows = client.stat("connections")
    return same(set().union(*map(fields, rows.values())), first_column(section("stat connections")))


def check_slow(client):
    rows = client.stat("slow")
    if not rows:
        return ["no slow request was listed"]
    return same(set().union(*map(fields, rows.values())), first_column(section("stat slow")))


def check_settings(client):
    documented = set(re.findall(r"^\| `([a-z_]+)` \|", read("configuration.md"), re.M))
    return ["setting not in configuration.md: " + name for name in client.stat("settings")
            if name.split(".")[-1] not in documented]


CHECKS = [("stat", check_general), ("sum of the outcomes", check_sum), ("threads", check_threads),
          ("buckets", check_buckets), ("bucket_details", check_details),
          ("throttle", check_throttle), ("hotkeys", check_hotkeys),
          ("hotkey_engine", check_engine), ("tickets", check_tickets),
          ("bindthrottle", check_binds), ("ops", check_ops), ("upstreams", check_upstreams), ("pool", check_pool),
          ("connections", check_connections), ("slow", check_slow), ("settings", check_settings)]

CONFIG = {
    "throttle_slot_ms": 50,
    "slow_request_ms": 1,
    "hotkey_epoch_ms": 100,
    "upstreams": [{"name": "file", "kind": "embedded"},
                  {"name": "cache", "kind": "memcached",
                   "servers": [{"address": "127.0.0.1:%d" % free_port()}]},
                  {"name": "slots", "kind": "redis-cluster",
                   "servers": [{"address": "127.0.0.1:%d" % free_port()}]}],
    "tenants": [{"name": "default", "upstream": "file", "hard_limit": 20},
                {"name": "other", "upstream": "cache"}],
}


def make_a_slow_request(client):
    """More than a slot allows, so that one is held and then listed."""
    for _ in range(3):
        client.set("key", "value")
    return client.stat("slow")


def main():
    print("1..%d" % len(CHECKS))
    failed = 0
    with Headgate(CONFIG) as headgate, Client(headgate.address) as client:
        poll(lambda: make_a_slow_request(client), what="a slow request")
        poll(lambda: client.stat("hotkeys history"), what="a hot key")
        for number, (what, check) in enumerate(CHECKS, 1):
            wrong = check(client)
            failed += bool(wrong)
            print("%sok %d - %s" % ("not " if wrong else "", number, what))
            for line in wrong:
                print("# " + line)
    return 1 if failed else 0


sys.exit(main())
