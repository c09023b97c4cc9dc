"""scenario.py - what an application does with pylibmc (libmemcached) over the binary protocol

    scenario.py HOST PORT USER|- PASSWORD|- PREFIX

Prints PASS, or fails on the first step that is not as memcached would have it.
"""
# SPDX-License-Identifier: BSD-3-Clause

import sys
import time

import pylibmc

host, port, user, password, prefix = sys.argv[1:6]
login = {} if user == "-" else {"username": user, "password": password}
mc = pylibmc.Client(["%s:%s" % (host, port)], binary=True, behaviors={"cas": True}, **login)
k = lambda name: prefix + name


def step(name, got, want):
    assert got == want, "%s: got %r, want %r" % (name, got, want)


step("get missing", mc.get(k("a")), None)
step("set", mc.set(k("a"), "one"), True)
step("get", mc.get(k("a")), "one")
step("bytes", (mc.set(k("b"), b"\x00\xff\r\n" * 100), mc.get(k("b"))), (True, b"\x00\xff\r\n" * 100))
step("number", (mc.set(k("n"), 41), mc.get(k("n"))), (True, 41))
step("big", (mc.set(k("big"), b"x" * 500000), mc.get(k("big"))), (True, b"x" * 500000))
step("empty", (mc.set(k("e"), b""), mc.get(k("e"))), (True, b""))
step("add there", mc.add(k("a"), "two"), False)
step("add new", mc.add(k("c"), "three"), True)
step("replace", mc.replace(k("c"), "four"), True)
try:
    step("replace missing", mc.replace(k("zz"), "x"), False)
except pylibmc.NotFound:
    pass
step("set_multi", mc.set_multi({"m%d" % n: "v%d" % n for n in range(100)}, key_prefix=prefix), [])
many = mc.get_multi(["m%d" % n for n in range(120)], key_prefix=prefix)
step("get_multi", many, {"m%d" % n: "v%d" % n for n in range(100)})
step("delete_multi", mc.delete_multi(["m%d" % n for n in range(100)], key_prefix=prefix), True)
step("get_multi of nothing", mc.get_multi(["m1", "m2"], key_prefix=prefix), {})
mc.set(k("i"), 5)
step("incr", mc.incr(k("i"), 3), 8)
step("decr", mc.decr(k("i"), 10), 0)
try:
    mc.incr(k("missing"))
    raise AssertionError("incr of a missing key")
except pylibmc.NotFound:
    pass
value, cas = mc.gets(k("a"))
step("gets", value, "one")
step("cas", mc.cas(k("a"), "new", cas), True)
step("cas again", mc.cas(k("a"), "newer", cas), False)
step("after cas", mc.get(k("a")), "new")
mc.set(k("s"), "middle")
step("append", mc.append(k("s"), "-end"), True)
step("prepend", mc.prepend(k("s"), "start-"), True)
step("appended", mc.get(k("s")), "start-middle-end")
step("touch", mc.touch(k("s"), 3600), True)
step("touch missing", mc.touch(k("zz"), 3600), False)
step("delete", mc.delete(k("a")), True)
step("delete missing", mc.delete(k("a")), False)
mc.set(k("t"), "short", time=1)
end = time.time() + 10
while mc.get(k("t")) is not None:
    assert time.time() < end, "expiry"
    time.sleep(0.05)
assert mc.get_stats()
print("PASS")
