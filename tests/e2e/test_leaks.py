"""test_leaks - valgrind finds no leak and no error after a thousand connections that came, were
throttled, and went."""
# SPDX-License-Identifier: BSD-3-Clause

import re
import threading

import pytest

from conftest import store_config
from credit_tools import admin, details, start
from mcbin import Feature, Op, poll, request, scaled, set_extras

pytestmark = [pytest.mark.deep("valgrind slows everything, and runs no build with sanitizers"),
              pytest.mark.patient(600)]

CONNECTIONS = 1000


def come_and_go(daemon, number):
    """One of several ways to come, be throttled and go."""
    with daemon.client(timeout=60) as client:
        if number % 10 == 0:
            client.login("shop", "pw", ("PLAIN", "SCRAM-SHA-256")[number // 10 % 2])
        if number % 3 == 0:
            client.hello(Feature.NON_BLOCKING, Feature.JSON)
        client.send(b"".join(request(Op.SET, b"k%d" % n, b"v" * 100, set_extras(), opaque=n)
                             for n in range(4)) + request(Op.GETK, b"k1", opaque=4))
        if number % 4 == 0:
            return              # gone while it is held
        if number % 4 == 1:
            client.sock.shutdown(1)
            client.recv_until_closed(60)
            return
        client.recv(60)


@pytest.mark.parametrize("store", ["embedded", "mc1", "cluster"])
def test_no_leak(farm, store):
    wrapper = ["valgrind", "--leak-check=full", "--show-leak-kinds=definite,indirect",
               "--errors-for-leak-kinds=definite,indirect", "--error-exitcode=99",
               "--num-callers=30"]
    daemon = start([{"name": "shop", "hard_limit": 20}, {"name": "default", "hard_limit": 100}],
                   store=store_config(store, farm), threads=2, wrapper=wrapper,
                   throttle_slot_ms=50, throttle_max_wait_ms=200, node_capacity=2000)
    failed = []

    def part(first):
        try:
            for number in range(first, CONNECTIONS, 4):
                come_and_go(daemon, number)
        except Exception as wrong:      # in a thread: told at the end
            failed.append(repr(wrong))
    try:
        threads = [threading.Thread(target=part, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(scaled(240))
            assert not thread.is_alive()
        assert not failed, failed[:3]
        with admin(daemon) as boss:
            throttled = sum(details(boss, name)["num_throttled"] for name in ("shop", "default"))
            assert throttled > 100, throttled
            poll(lambda: int(boss.stat()["curr_connections"]) == 1, 20, what="connections gone")
    finally:
        daemon.process.signal(15)
        code = daemon.process.wait(120)
        log = daemon.stderr()
        daemon.stop(check=False)
    summary = re.findall(r"ERROR SUMMARY: (\d+) errors", log)
    assert summary and summary[-1] == "0", log[-6000:]
    lost = re.findall(r"(definitely|indirectly) lost: ([\d,]+) bytes", log)
    assert all(count == "0" for _, count in lost), log[-6000:]
    assert code == 0, log[-3000:]
