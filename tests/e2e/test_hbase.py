"""test_hbase - HBase operations on every store: one suite, whatever is behind"""
# SPDX-License-Identifier: BSD-3-Clause

import itertools
import os
import struct
import time

import pytest

import mcbin
import servers
from conftest import ROW_TARGETS, has_order, row_config
from mcbin import St
from row_tools import CLIENTS, MAX_INT, insist, refused, together
from tablebin import (H, Rows, all_of, any_of, cell, cells_of, counters, deletion, filter_of,
                      hrows_of, node, pb, read_of, values_of)


def done(reply, affected=None):
    assert reply.status == 0, reply
    if affected is not None:
        assert reply.affected == affected, reply
    return reply.body


def now_ms():
    return int(time.time() * 1000)


def number(n):
    return struct.pack(">q", n)


# ---- put and get ----

def test_put_and_get(rows):
    assert rows.hget("r") == []
    before = now_ms()
    done(rows.hput("r", cell("b:y", "1"), cell("a:z", "2"), cell("a:x", b"\x00\xff")), 3)
    found = rows.hget("r")
    assert [(name, value) for name, _, value in found] == [
        ("a:x", b"\x00\xff"), ("a:z", b"2"), ("b:y", b"1")]
    assert len({ts for _, ts, _ in found}) == 1, "one row, one time"
    assert before - 1000 <= found[0][1] <= now_ms() + 1000


def test_a_later_put_wins(rows):
    done(rows.hput("r", cell("a:x", "old")))
    done(rows.hput("r", cell("a:x", "new")))
    assert values_of_row(rows, "r") == {"a:x": [b"new"]}


def values_of_row(rows, row, *columns, **fields):
    found = {}
    for name, _, value in rows.hget(row, *columns, **fields):
        found.setdefault(name, []).append(value)
    return found


def test_timestamps_order_versions(rows):
    """An older timestamp that is put later is not the newest; where one version is kept, it is the
    one with the largest timestamp."""
    done(rows.hput("r", cell("a:x", "ten", 10)))
    done(rows.hput("r", cell("a:x", "five", 5)))
    assert rows.hget("r") == [("a:x", 10, b"ten")]
    done(rows.hput("r", cell("a:x", "ten again", 10)))
    assert rows.hget("r") == [("a:x", 10, b"ten again")]


def test_select_of_a_get(rows):
    done(rows.hput("r", cell("a:x", "1"), cell("a:y", "2"), cell("b:x", "3"), cell("c:x", "4")))
    assert set(values_of_row(rows, "r", "a")) == {"a:x", "a:y"}
    assert set(values_of_row(rows, "r", "a:y", "b")) == {"a:y", "b:x"}
    assert set(values_of_row(rows, "r", "a:y", "a:nothing", "d")) == {"a:y"}
    assert values_of_row(rows, "r", "d") == {}


def test_time_range_of_a_get(rows):
    """From the lower bound on, to before the upper one."""
    done(rows.hput("r", cell("a:x", "1", 10), cell("a:y", "2", 20), cell("a:z", "3", 30)))
    assert set(values_of_row(rows, "r", lower=20)) == {"a:y", "a:z"}
    assert set(values_of_row(rows, "r", upper=20)) == {"a:x"}
    assert set(values_of_row(rows, "r", lower=10, upper=30)) == {"a:x", "a:y"}
    assert values_of_row(rows, "r", lower=31) == {}


def test_empty_names_and_values(rows):
    done(rows.hput("r", cell("a:", "no qualifier"), cell("a:e", b"")))
    assert values_of_row(rows, "r") == {"a:": [b"no qualifier"], "a:e": [b""]}


@pytest.mark.parametrize("chosen,wanted", [
    (filter_of(node("COLUMN_PREFIX", "x")), {"a:x", "a:xy", "b:x"}),
    (filter_of(node("COLUMN_RANGE", "x", "xy", high_exclusive=True)), {"a:x", "b:x"}),
    (filter_of(node("QUALIFIER", op="NOT_EQUAL", value="x")), {"a:xy", "a:z"}),
    (filter_of(node("VALUE", op="GREATER_OR_EQUAL", value="3")), {"a:z", "b:x"}),
    (filter_of(node("FIRST_KEY_ONLY")), {"a:x"}),
    (filter_of(node("TIMESTAMPS", timestamps=[20, 40])), {"a:xy", "b:x"}),
    (filter_of(node("PREFIX", "ro")), {"a:x", "a:xy", "a:z", "b:x"}),
    (filter_of(node("PREFIX", "x")), set()),
    (filter_of(node("SINGLE_COLUMN_VALUE", op="EQUAL", value="1", column="a:x", family=True)),
     {"a:x", "a:xy", "a:z", "b:x"}),
    (filter_of(node("SINGLE_COLUMN_VALUE", op="EQUAL", value="2", column="a:x", family=True)), set()),
    (filter_of(node("SINGLE_COLUMN_VALUE", op="EQUAL", value="2", column="a:none", family=True,
                    filter_if_missing=True)), set()),
    (all_of(node("COLUMN_PREFIX", "x"), node("VALUE", op="LESS", value="3")), {"a:x", "a:xy"}),
    (any_of(node("QUALIFIER", op="EQUAL", value="z"), node("VALUE", op="EQUAL", value="1")),
     {"a:x", "a:z"}),
], ids=["column prefix", "column range", "qualifier", "value", "first key only", "timestamps",
        "prefix", "other prefix", "single column", "single column no", "missing", "all", "any"])
def test_filters_of_a_get(rows, chosen, wanted):
    done(rows.hput("row", cell("a:x", "1", 10), cell("a:xy", "2", 20), cell("a:z", "3", 30),
                   cell("b:x", "4", 40)))
    assert set(values_of_row(rows, "row", filter=chosen)) == wanted


def test_key_only(rows):
    done(rows.hput("r", cell("a:x", "1"), cell("a:y", "2")))
    assert values_of_row(rows, "r", filter=filter_of(node("KEY_ONLY"))) == {
        "a:x": [b""], "a:y": [b""]}


# ---- delete ----

@pytest.mark.parametrize("what,left", [
    (deletion("ROW"), set()),
    (deletion("FAMILY", "a"), {"b:x"}),
    (deletion("COLUMNS", "a:x"), {"a:y", "b:x"}),
    (deletion("COLUMN", "a:x"), {"a:y", "b:x"}),
    (deletion("VERSION", "a:x", 10), {"a:y", "b:x"}),
    (deletion("VERSION", "a:x", 11), {"a:x", "a:y", "b:x"}),
    (deletion("ROW", ts=10), {"a:y", "b:x"}),
    (deletion("FAMILY", "a", 19), {"a:y", "b:x"}),
    (deletion("FAMILY", "a", 20), {"b:x"}),
    (deletion("COLUMNS", "a:y", 19), {"a:x", "a:y", "b:x"}),
    (deletion("COLUMN", "a:y", 20), {"a:x", "b:x"}),
    (deletion("COLUMNS", "a:nothing"), {"a:x", "a:y", "b:x"}),
    (deletion("FAMILY", "c"), {"a:x", "a:y", "b:x"}),
], ids=lambda x: None if isinstance(x, set) else "%s-%s-%s" % (
    pb.Deletion.Kind.Name(x.kind), x.qualifier.decode() or x.family.decode(),
    x.timestamp if x.HasField("timestamp") else "") if hasattr(x, "kind") else None)
def test_delete(rows, what, left):
    done(rows.hput("r", cell("a:x", "1", 10), cell("a:y", "2", 20), cell("b:x", "3", 30)))
    reply = rows.hdelete("r", what)
    done(reply, 3 - len(left))
    assert set(values_of_row(rows, "r")) == left
    if not left:
        done(rows.hdelete("r", what), 0)


def test_delete_of_a_missing_row(rows):
    done(rows.hdelete("r", deletion("ROW")), 0)
    done(rows.hdelete("r", deletion("COLUMNS", "a:x")), 0)
    assert rows.hget("r") == []


def test_a_delete_leaves_no_mark(rows):
    """A later put with an older timestamp is visible."""
    done(rows.hput("r", cell("a:x", "1", 100)))
    done(rows.hdelete("r", deletion("ROW")))
    done(rows.hput("r", cell("a:x", "older", 50)))
    assert rows.hget("r") == [("a:x", 50, b"older")]


def test_several_deletions_at_once(rows):
    done(rows.hput("r", cell("a:x", "1"), cell("a:y", "2"), cell("b:x", "3")))
    done(rows.hdelete("r", deletion("COLUMNS", "a:x"), deletion("FAMILY", "b")), 2)
    assert set(values_of_row(rows, "r")) == {"a:y"}


# ---- append and increment ----

def test_append(rows):
    body = done(rows.happend("r", cell("a:x", "one")), 1)
    assert values_of(body.cells) == {"a:x": [b"one"]}
    body = done(rows.happend("r", cell("a:x", "two"), cell("a:y", "new")), 2)
    assert values_of(body.cells) == {"a:x": [b"onetwo"], "a:y": [b"new"]}
    assert values_of_row(rows, "r") == {"a:x": [b"onetwo"], "a:y": [b"new"]}


def test_increment(rows):
    body = done(rows.hincrement("r", {"a:n": 5}), 1)
    assert values_of(body.cells) == {"a:n": [number(5)]}
    body = done(rows.hincrement("r", {"a:n": -7, "b:m": 1}), 2)
    assert values_of(body.cells) == {"a:n": [number(-2)], "b:m": [number(1)]}
    assert values_of_row(rows, "r") == {"a:n": [number(-2)], "b:m": [number(1)]}


@pytest.mark.parametrize("wrong", [b"", b"1", b"1234567", b"123456789"])
def test_a_counter_has_8_bytes(rows, wrong):
    done(rows.hput("r", cell("a:n", wrong), cell("a:other", number(1))))
    refused(rows.hincrement("r", {"a:other": 1, "a:n": 1}), St.DELTA_BADVAL)
    assert values_of_row(rows, "r") == {"a:n": [wrong], "a:other": [number(1)]}


def test_a_counter_may_be_put(rows):
    done(rows.hput("r", cell("a:n", number(MAX_INT - 1))))
    body = done(rows.hincrement("r", {"a:n": 1}))
    assert values_of(body.cells) == {"a:n": [number(MAX_INT)]}


def test_the_new_version_is_newer(rows):
    """max(now, the old timestamp + 1), also when the old one lies in the future."""
    future = now_ms() + 3600_000
    done(rows.hput("r", cell("a:n", number(1), future), cell("a:x", "1", future)))
    [(_, ts, value)] = cells_of(done(rows.hincrement("r", {"a:n": 1})).cells)
    assert (ts, value) == (future + 1, number(2))
    [(_, ts, value)] = cells_of(done(rows.happend("r", cell("a:x", "2"))).cells)
    assert (ts, value) == (future + 1, b"12")
    assert [ts for _, ts, _ in rows.hget("r")] == [future + 1] * 2


# ---- check and put, check and delete ----

@pytest.mark.parametrize("op,expected,holds", [
    ("EQUAL", "5", True), ("EQUAL", "6", False), ("NOT_EQUAL", "6", True),
    ("NOT_EQUAL", "5", False), ("LESS", "4", True), ("LESS", "5", False),
    ("LESS_OR_EQUAL", "5", True), ("LESS_OR_EQUAL", "6", False), ("GREATER", "6", True),
    ("GREATER", "5", False), ("GREATER_OR_EQUAL", "5", True), ("GREATER_OR_EQUAL", "4", False),
    ("NOT_EQUAL", None, True), ("EQUAL", None, False), ("EQUAL", "", False)])
def test_check_of_a_value(rows, op, expected, holds):
    """The expected value stands on the left of the operator, as HBase has it."""
    done(rows.hput("r", cell("a:x", "5"), cell("a:y", "old")))
    reply = rows.check(H.CHECK_AND_PUT, "r", "a:x", op, expected, cells=[cell("a:y", "new")])
    assert done(reply, int(holds)).processed is holds
    assert values_of_row(rows, "r", "a:y") == {"a:y": [b"new" if holds else b"old"]}
    reply = rows.check(H.CHECK_AND_DELETE, "r", "a:x", op, expected,
                       deletions=[deletion("COLUMNS", "a:y")])
    assert done(reply, int(holds)).processed is holds
    assert ("a:y" in values_of_row(rows, "r")) is not holds


def test_check_of_what_is_missing(rows):
    body = done(rows.check(H.CHECK_AND_PUT, "r", "a:x", "EQUAL", "1", cells=[cell("a:x", "2")]))
    assert body.processed is False and rows.hget("r") == []
    body = done(rows.check(H.CHECK_AND_PUT, "r", "a:x", "NOT_EQUAL", None,
                           cells=[cell("a:x", "2")]))
    assert body.processed is False and rows.hget("r") == []
    body = done(rows.check(H.CHECK_AND_PUT, "r", "a:x", "EQUAL", None, cells=[cell("a:x", "2")]))
    assert body.processed is True and values_of_row(rows, "r") == {"a:x": [b"2"]}
    body = done(rows.check(H.CHECK_AND_PUT, "r", "a:x", "EQUAL", None, cells=[cell("a:x", "3")]))
    assert body.processed is False and values_of_row(rows, "r") == {"a:x": [b"2"]}


def test_check_looks_at_the_newest(rows):
    done(rows.hput("r", cell("a:x", "old", 10)))
    done(rows.hput("r", cell("a:x", "new", 20)))
    body = done(rows.check(H.CHECK_AND_DELETE, "r", "a:x", "EQUAL", "old",
                           deletions=[deletion("ROW")]))
    assert body.processed is False
    body = done(rows.check(H.CHECK_AND_DELETE, "r", "a:x", "EQUAL", "new",
                           deletions=[deletion("ROW")]))
    assert body.processed is True and rows.hget("r") == []


# ---- hybrid batches ----

def hitem(operation, row, **fields):
    return pb.HBaseItem(operation=operation, row=mcbin._b(row), **fields)


def test_hybrid(rows):
    done(rows.hput("there", cell("a:x", "1"), cell("a:n", number(4))))
    reply = rows.hbase(H.HYBRID, b"", pb.HBaseRequest(items=[
        hitem(H.PUT, "new", cells=[cell("a:x", "2")]),
        hitem(H.GET, "there", read=read_of(["a:x"])), hitem(H.GET, "missing", read=read_of()),
        hitem(H.INCREMENT, "there", counters=counters({"a:n": 1})),
        hitem(H.INCREMENT, "there", counters=counters({"a:x": 1})),
        hitem(H.APPEND, "there", cells=[cell("a:x", "!")]),
        hitem(H.DELETE, "new", deletions=[deletion("ROW")]),
        hitem(H.GET, "new", read=read_of())]))
    items = done(reply).items
    assert [r.status for r in items] == [0, 0, 0, 0, St.DELTA_BADVAL, 0, 0, 0]
    assert [values_of(r.cells) for r in items] == [
        {}, {"a:x": [b"1"]}, {}, {"a:n": [number(5)]}, {}, {"a:x": [b"1!"]}, {}, {}]
    assert [r.affected for r in items] == [1, 0, 0, 1, 0, 1, 1, 0]
    assert items[4].message


@pytest.mark.parametrize("operation", [H.SCAN, H.HYBRID, H.CHECK_AND_PUT, H.SCAN_NEXT, 99])
def test_what_hybrid_does_not_take(rows, operation):
    reply = rows.hbase(H.HYBRID, b"", pb.HBaseRequest(items=[
        hitem(H.PUT, "r", cells=[cell("a:x", "2")]), hitem(operation, "r")]))
    refused(reply, St.EINVAL)
    assert rows.hget("r") == []


# ---- scans ----

KEYS = ["a", "b", "b\x00", "ba", "c", "d"]


@pytest.fixture
def filled(ordered):
    for n, row in enumerate(KEYS):
        done(ordered.hput(row, *[cell("f:q%d" % q, "%d.%d" % (n, q)) for q in range(3)],
                          cell("g:n", str(n))))
    return ordered


def walk(rows, reply):
    results, pages = [], []
    session = reply.body.session if reply.status == 0 else 0
    while True:
        assert reply.status == 0, reply
        results += list(reply.body.rows)
        pages.append(len(reply.body.rows))
        if not reply.body.more:
            return results, pages, session
        assert session != 0
        reply = rows.scan_next(session)


def keys_of(results):
    return [result.row.decode() for result in results]


@pytest.mark.parametrize("start,stop,fields,wanted", [
    ("", "", {}, KEYS), ("b", "c", {}, ["b", "b\x00", "ba"]),
    ("b", "c", {"stop_inclusive": True}, ["b", "b\x00", "ba", "c"]),
    ("b", "c", {"start_exclusive": True}, ["b\x00", "ba"]), ("c", "", {}, ["c", "d"]),
    ("", "b", {}, ["a"]), ("c", "b", {}, []), ("x", "", {}, []),
    ("b", "b", {}, ["b"]), ("bx", "bx", {}, []),
    ("b", "b", {"stop_inclusive": True}, ["b"]), ("", "", {"limit": 2}, ["a", "b"]),
    ("", "", {"reversed": True}, KEYS[::-1]),
    ("c", "b", {"reversed": True}, ["c", "ba", "b\x00"]),
    ("c", "b", {"reversed": True, "stop_inclusive": True}, ["c", "ba", "b\x00", "b"]),
    ("c", "a", {"reversed": True, "start_exclusive": True, "limit": 2}, ["ba", "b\x00"]),
    ("cc", "", {"reversed": True, "limit": 1}, ["c"]),
], ids=str)
def test_scan(filled, start, stop, fields, wanted):
    results, _, _ = walk(filled, filled.scan(start, stop, **fields))
    assert keys_of(results) == wanted
    results, pages, _ = walk(filled, filled.scan(start, stop, caching=1, **fields))
    assert keys_of(results) == wanted and max(pages) <= 1


def test_what_a_scan_reads(filled):
    results, _, _ = walk(filled, filled.scan("b", "b", columns=["f:q1", "g"]))
    assert [(r.row, values_of(r.cells)) for r in results] == [
        (b"b", {"f:q1": [b"1.1"], "g:n": [b"1"]})]
    results, _, _ = walk(filled, filled.scan(columns=["nothing"]))
    assert results == []
    keep = filter_of(node("SINGLE_COLUMN_VALUE", op="GREATER", value="2", column="g:n",
                          family=True))
    results, _, _ = walk(filled, filled.scan(read={"filter": keep}))
    assert keys_of(results) == KEYS[3:]
    results, _, _ = walk(filled, filled.scan(read={"filter": filter_of(node("PAGE", count=4))},
                                             caching=3))
    assert keys_of(results) == KEYS[:4]
    results, _, _ = walk(filled, filled.scan(read={"filter": filter_of(node("PREFIX", "b"))}))
    assert keys_of(results) == ["b", "b\x00", "ba"]


def test_a_wide_row_comes_in_parts(filled):
    """batch: cells of one result; a row's last part is not partial; the limit counts rows."""
    results, _, _ = walk(filled, filled.scan("a", "b\x00", batch=3))
    assert [(r.row.decode(), len(r.cells), r.partial) for r in results] == [
        ("a", 3, True), ("a", 1, False), ("b", 3, True), ("b", 1, False)]
    results, _, _ = walk(filled, filled.scan(batch=3, limit=1, caching=1))
    assert [(r.row.decode(), len(r.cells)) for r in results] == [("a", 3), ("a", 1)]
    results, _, _ = walk(filled, filled.scan("a", "b", batch=1, caching=2))
    assert b"".join(c.value for r in results for c in r.cells) == b"0.00.10.20"


def test_a_scan_of_many_rows(ordered):
    for at in range(0, 230, 46):
        items = [hitem(H.PUT, "%03d" % n, cells=[cell("f:n", str(n))]) for n in range(at, at + 46)]
        done(ordered.hbase(H.HYBRID, b"", pb.HBaseRequest(items=items)))
    results, pages, session = walk(ordered, ordered.scan())
    assert keys_of(results) == ["%03d" % n for n in range(230)]
    assert len(pages) == 3 and max(pages) == 100 and session != 0
    refused(ordered.scan_next(session), ordered.scan_next(session).status, "s")
    reply = ordered.scan(caching=10)
    done(ordered.scan_end(reply.body.session))
    gone = ordered.scan_next(reply.body.session)
    assert gone.status != 0 and ("session" in gone.text or "scan" in gone.text), gone


def test_scans_need_order(row_target, rows):
    done(rows.hput("r", cell("a:x", "1")))
    assert hrows_of(done(rows.scan("r", "r"))) == [("r", {"a:x": [b"1"]})]
    assert hrows_of(done(rows.scan("q", "q"))) == []
    reply = rows.scan("a", "z")
    if row_target.ordered:
        assert hrows_of(done(reply)) == [("r", {"a:x": [b"1"]})]
    else:
        refused(reply, St.NOT_SUPPORTED)
        refused(rows.scan(), St.NOT_SUPPORTED)


# ---- what is wrong with a request ----

def test_requests_without_what_they_need(rows):
    for operation in (H.PUT, H.APPEND, H.INCREMENT):
        refused(rows.hbase(operation, "r"), St.EINVAL)
    refused(rows.hbase(H.CHECK_AND_PUT, "r", pb.HBaseRequest(cells=[cell("a:x", "1")])), St.EINVAL)
    assert rows.hget("r") == []


def test_names_that_are_too_long(rows):
    refused(rows.hput("r", cell("f:" + "q" * 251, "1")), St.EINVAL)
    refused(rows.hput("r", cell("f" * 251 + ":q", "1")), St.EINVAL)
    done(rows.hput("r", cell("f:" + "q" * 250, "1")))


def test_a_row_over_the_limit(rows):
    done(rows.hput("r", cell("a:x", b"x" * 700000)))
    refused(rows.hput("r", cell("a:y", b"y" * 700000)), St.E2BIG)
    refused(rows.happend("r", cell("a:x", b"y" * 700000)), St.E2BIG)
    assert values_of_row(rows, "r") == {"a:x": [b"x" * 700000]}


# ---- row atomicity ----

ROUNDS = 20


def test_increments_of_16_clients(row_target, rows):
    seen = []

    def work(mine, who):
        for _ in range(ROUNDS):
            body = done(insist(lambda: mine.hincrement("r", {"a:n": 1, "b:c%d" % who: 1})))
            seen.append(struct.unpack(">q", values_of(body.cells)["a:n"][0])[0])

    together(row_target, rows.name, work)
    wanted = {"b:c%d" % n: [number(ROUNDS)] for n in range(CLIENTS)}
    wanted["a:n"] = [number(CLIENTS * ROUNDS)]
    assert values_of_row(rows, "r") == wanted
    assert sorted(seen) == list(range(1, CLIENTS * ROUNDS + 1))


def test_appends_of_16_clients(row_target, rows):
    def work(mine, who):
        for n in range(ROUNDS):
            done(insist(lambda: mine.happend("r", cell("a:x", "%02d:%02d;" % (who, n)))))

    together(row_target, rows.name, work)
    [whole] = values_of_row(rows, "r")["a:x"]
    parts = whole.decode().split(";")[:-1]
    assert len(parts) == CLIENTS * ROUNDS
    for who in range(CLIENTS):
        assert [p for p in parts if p.startswith("%02d:" % who)] == \
            ["%02d:%02d" % (who, n) for n in range(ROUNDS)]


def test_check_and_put_of_16_clients(row_target, rows):
    """A counter made of check-and-put: every step is taken by exactly one client."""
    done(rows.hput("r", cell("a:n", "0")))
    won = []

    def work(mine, who):
        for _ in range(ROUNDS):
            while True:
                [(_, _, value)] = mine.hget("r", "a:n")
                n = int(value)
                body = done(insist(lambda: mine.check(
                    H.CHECK_AND_PUT, "r", "a:n", "EQUAL", str(n),
                    cells=[cell("a:n", str(n + 1)), cell("a:by", str(who))])))
                if body.processed:
                    won.append(n)
                    break

    together(row_target, rows.name, work)
    assert sorted(won) == list(range(CLIENTS * ROUNDS))
    assert values_of_row(rows, "r", "a:n") == {"a:n": [str(CLIENTS * ROUNDS).encode()]}


# ---- families: time to live and versions ----

@pytest.fixture(scope="module", params=ROW_TARGETS)
def family_daemon(request, farm):
    families = [{"table": "t", "name": "keep3", "max_versions": 3},
                {"table": "t", "name": "short", "ttl_s": 1, "max_versions": 5},
                {"table": "other", "name": "plain", "max_versions": 2}]
    with servers.Headgate(row_config(request.param, farm, families=families)) as daemon:
        yield request.param, daemon


@pytest.fixture
def families(family_daemon):
    with family_daemon[1].client() as client:
        yield Rows(client, "t")


_rows = itertools.count(1)


@pytest.fixture
def row():
    return "row%d-%d" % (os.getpid(), next(_rows))


def test_versions_of_a_family(families, row):
    for n in range(1, 6):
        done(families.hput(row, cell("keep3:x", "v%d" % n, n * 10), cell("one:x", str(n), n * 10)))
    assert families.hget(row, versions=10) == [
        ("keep3:x", 50, b"v5"), ("keep3:x", 40, b"v4"), ("keep3:x", 30, b"v3"),
        ("one:x", 50, b"5")]
    assert families.hget(row) == [("keep3:x", 50, b"v5"), ("one:x", 50, b"5")]
    assert families.hget(row, "keep3", versions=2) == [
        ("keep3:x", 50, b"v5"), ("keep3:x", 40, b"v4")]
    assert families.hget(row, "keep3", versions=2, upper=50) == [
        ("keep3:x", 40, b"v4"), ("keep3:x", 30, b"v3")]


def test_an_older_version_takes_its_place(families, row):
    for ts in (10, 20, 30, 40):
        done(families.hput(row, cell("keep3:x", str(ts), ts)))
    done(families.hput(row, cell("keep3:x", "25", 25)))
    assert [ts for _, ts, _ in families.hget(row, versions=9)] == [40, 30, 25]
    done(families.hput(row, cell("keep3:x", "5", 5)))
    assert [ts for _, ts, _ in families.hget(row, versions=9)] == [40, 30, 25]


@pytest.mark.parametrize("what,left", [
    (deletion("COLUMN", "keep3:x"), [20, 10]), (deletion("VERSION", "keep3:x", 20), [30, 10]),
    (deletion("COLUMN", "keep3:x", 20), [30, 10]), (deletion("COLUMNS", "keep3:x", 20), [30]),
    (deletion("FAMILY", "keep3", 10), [30, 20]), (deletion("COLUMNS", "keep3:x"), []),
    (deletion("ROW", ts=20), [30])],
    ids=["newest", "version", "column at", "columns to", "family to", "columns", "row to"])
def test_deletion_of_versions(families, row, what, left):
    for ts in (10, 20, 30):
        done(families.hput(row, cell("keep3:x", str(ts), ts)))
    done(families.hdelete(row, what), 3 - len(left))
    assert [ts for _, ts, _ in families.hget(row, versions=9)] == left


def test_a_family_is_of_its_table(family_daemon, row):
    with family_daemon[1].client() as client:
        other = Rows(client, "other")
        for n in range(1, 5):
            done(other.hput(row, cell("plain:x", str(n), n), cell("keep3:x", str(n), n)))
        assert other.hget(row, versions=9) == [
            ("keep3:x", 4, b"4"), ("plain:x", 4, b"4"), ("plain:x", 3, b"3")]


def test_time_to_live(families, row):
    """A cell past it is not seen, whatever else is in its row; it was seen before."""
    start = time.monotonic()
    done(families.hput(row, cell("short:x", "gone soon"), cell("keep3:x", "stays")))
    done(families.hput(row, cell("short:old", "gone already", now_ms() - 5000)))
    found = dict(families_values(families, row))
    if time.monotonic() - start < 0.8:
        assert found == {"short:x": [b"gone soon"], "keep3:x": [b"stays"]}
    mcbin.poll(lambda: families_values(families, row) == {"keep3:x": [b"stays"]}, within=6,
               what="cell gone")
    assert time.monotonic() - start > 0.8
    assert families_values(families, row, "short") == {}


def families_values(rows, row, *columns):
    return values_of_row(rows, row, *columns, versions=9)


def test_what_is_past_its_time_is_not_there_for_changes(families, row):
    done(families.hput(row, cell("short:n", number(5)), cell("short:x", "a")))
    mcbin.poll(lambda: families.hget(row) == [], within=6, what="row gone")
    body = done(families.hincrement(row, {"short:n": 1}))
    assert values_of(body.cells) == {"short:n": [number(1)]}
    body = done(families.check(H.CHECK_AND_PUT, row, "short:x", "EQUAL", None,
                               cells=[cell("short:x", "b")]))
    assert body.processed is True


def test_a_row_past_its_time_is_in_no_scan(family_daemon, families, row):
    if not has_order(family_daemon[0]):
        scanned = lambda: done(families.scan(row, row)).rows
    else:
        scanned = lambda: done(families.scan(row, row + "\xff")).rows
    done(families.hput(row, cell("short:x", "1")))
    mcbin.poll(lambda: len(scanned()) == 0, within=6, what="row out of the scan")


def test_versions_survive_a_restart():
    config = {"tenants": [{"name": "default", "families": [
        {"table": "t", "name": "keep3", "max_versions": 3}]}]}
    with servers.Headgate(config) as daemon:
        with daemon.client() as client:
            for ts in (1, 2, 3):
                done(Rows(client).hput("r", cell("keep3:x", str(ts), ts)))
        daemon.restart()
        with daemon.client() as client:
            assert [ts for _, ts, _ in Rows(client).hget("r", versions=9)] == [3, 2, 1]
