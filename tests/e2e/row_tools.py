"""row_tools - what the suites of row operations share: refusals, and many clients at one row"""
# SPDX-License-Identifier: BSD-3-Clause

import threading

from mcbin import St, scaled
from tablebin import Rows

CLIENTS = 16
MAX_INT, MIN_INT = (1 << 63) - 1, -(1 << 63)


def refused(reply, status, *words):
    """A refusal with this status whose text has these words."""
    assert reply.status == status, reply
    assert reply.text, reply
    for word in words:
        assert word in reply.text, (word, reply)
    return reply


def together(row_target, table, work):
    """work(rows, client number) in CLIENTS threads, each with a connection of its own."""
    failures, gate = [], threading.Barrier(CLIENTS)

    def run(number):
        try:
            with row_target.client(timeout=20) as client:
                gate.wait(scaled(20))
                work(Rows(client, table), number)
        except Exception as wrong:  # noqa: BLE001 - told to the test's thread
            failures.append((number, repr(wrong)))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(scaled(60))
        assert not thread.is_alive()
    assert not failures, failures[:3]


def insist(call):
    """Again where the row was too busy (0x85): that is a refusal, and nothing was done."""
    for _ in range(200):
        reply = call()
        if reply.status != St.EBUSY:
            return reply
    raise AssertionError("busy 200 times: %r" % reply)
