"""probe.py - what pylibmc makes of a status: one line "status saw good" for each

    probe.py HOST PORT OP STATUS...     OP: get set incr delete multi; STATUS: four hex digits

The server answers a key s<STATUS> with that status and every other key properly. After each
operation, on the same client, `good` is fetched.
"""
# SPDX-License-Identifier: BSD-3-Clause

import sys

import pylibmc


def attempt(action):
    try:
        return repr(action())
    except Exception as wrong:      # whatever an application would see
        return "%s: %s" % (type(wrong).__name__, wrong)


host, port, op = sys.argv[1:4]
for status in sys.argv[4:]:
    key = "s" + status
    mc = pylibmc.Client(["%s:%s" % (host, port)], binary=True)
    action = {"get": lambda: mc.get(key), "set": lambda: mc.set(key, "v"),
              "incr": lambda: mc.incr(key), "delete": lambda: mc.delete(key),
              "multi": lambda: sorted(mc.get_multi(["good1", key, "good2"]))}[op]
    mc.get("begin")
    saw = attempt(action)
    good = attempt(lambda: mc.get("good"))
    print("\t".join((status, " ".join(saw.split()), "ok" if good == "b'is good'" else good)),
          flush=True)
    mc.disconnect_all()
