"""test_table - TableAPI operations on every store: one suite, whatever is behind

Each row of doc/tables.md is tested with the row missing and with it present, over the embedded store
over memcached, Redis and a Redis Cluster, with one worker and with two.
"""
# SPDX-License-Identifier: BSD-3-Clause

import math
import struct
import time
from random import Random

import pytest

import mcbin
import servers
from mcbin import Client, Op, St
from row_tools import CLIENTS, MAX_INT, MIN_INT, insist, refused, together
from tablebin import (HBASE, TABLE, H, Rows, T, all_of, any_of, columns_of, entity_of, filter_of,
                      frame_of, item, node, pb, rows_of)

pytestmark = pytest.mark.threaded

# ---- the table of operations: row missing, row present ----

def test_get(rows):
    assert rows.get("r") is None
    rows.insert("r", a="text", b=42, c=1.5, d=None)
    assert rows.get("r") == {"a": b"text", "b": 42, "c": 1.5, "d": None}
    assert rows.get("r", "b", "a") == {"a": b"text", "b": 42}
    assert rows.get("r", "b", "nothing") == {"b": 42}


def test_get_of_a_row_without_columns(rows):
    """It is there: an entity without columns is not an absent one."""
    assert rows.insert("r").affected == 1
    assert rows.get("r") == {}
    refused(rows.insert("r", a=1), St.EEXISTS)


def test_insert(rows):
    reply = rows.insert("r", a=1)
    assert (reply.status, reply.affected) == (0, 1)
    refused(rows.insert("r", a=2, b=3), St.EEXISTS)
    assert rows.get("r") == {"a": 1}


def test_delete(rows):
    reply = rows.delete("r")
    assert (reply.status, reply.affected) == (0, 0)
    rows.insert("r", a=1)
    reply = rows.delete("r")
    assert (reply.status, reply.affected) == (0, 1)
    assert rows.get("r") is None
    assert rows.insert("r", a=2).affected == 1


def test_update(rows):
    reply = rows.update("r", a=1)
    assert (reply.status, reply.affected) == (0, 0)
    assert rows.get("r") is None
    rows.insert("r", a=1, b=2)
    reply = rows.update("r", b=3, c=4)
    assert (reply.status, reply.affected) == (0, 1)
    assert rows.get("r") == {"a": 1, "b": 3, "c": 4}


def test_insert_or_update(rows):
    reply = rows.put("r", a=1, b=2)
    assert (reply.status, reply.affected) == (0, 1)
    reply = rows.put("r", b="two", c=3)
    assert (reply.status, reply.affected) == (0, 1)
    assert rows.get("r") == {"a": 1, "b": b"two", "c": 3}


def test_replace(rows):
    reply = rows.replace("r", a=1, b=2)
    assert (reply.status, reply.affected) == (0, 1)
    reply = rows.replace("r", c=3)
    assert (reply.status, reply.affected) == (0, 2)
    assert rows.get("r") == {"c": 3}


def test_increment(rows):
    reply = rows.increment("r", n=5)
    assert (reply.status, reply.affected) == (0, 1)
    assert columns_of(reply.body.entity) == {"n": 5}
    reply = rows.increment("r", n=-7, m=1)
    assert columns_of(reply.body.entity) == {"n": -2, "m": 1}
    rows.put("r", n=None, text="x")
    assert columns_of(rows.increment("r", n=3).body.entity) == {"n": 3}
    refused(rows.increment("r", text=1), St.DELTA_BADVAL)
    refused(rows.increment("r", n=1, text=1), St.DELTA_BADVAL)
    assert rows.get("r") == {"n": 3, "m": 1, "text": b"x"}
    reply = rows.increment("r", want=False, n=1)
    assert reply.status == 0 and not reply.body.HasField("entity")


@pytest.mark.parametrize("wrong", ["x", 1.5, None])
def test_increment_takes_integers(rows, wrong):
    refused(rows.increment("r", n=wrong), St.EINVAL)
    assert rows.get("r") is None


def test_increment_does_not_leave_64_bits(rows):
    rows.insert("r", n=MAX_INT)
    before = rows.get("r")
    reply = rows.increment("r", n=1)
    if reply.status == 0:
        assert columns_of(reply.body.entity) == {"n": MIN_INT}
    else:
        refused(reply, St.DELTA_BADVAL)
        assert rows.get("r") == before


def test_append(rows):
    reply = rows.append("r", a="one")
    assert (reply.status, reply.affected) == (0, 1)
    assert columns_of(reply.body.entity) == {"a": b"one"}
    assert columns_of(rows.append("r", a=",two", b=b"\x00").body.entity) == \
        {"a": b"one,two", "b": b"\x00"}
    rows.put("r", n=1, a=None)
    assert columns_of(rows.append("r", a="new").body.entity) == {"a": b"new"}
    refused(rows.append("r", n="x"), St.DELTA_BADVAL)
    assert rows.get("r") == {"a": b"new", "b": b"\x00", "n": 1}


@pytest.mark.parametrize("wrong", [1, 1.5, None])
def test_append_takes_bytes(rows, wrong):
    refused(rows.append("r", a=wrong), St.EINVAL)
    assert rows.get("r") is None


def test_values_are_exact(rows):
    """Every byte, the ends of the integers, reals to the last bit."""
    values = {"bytes": bytes(range(256)), "empty": b"", "max": MAX_INT, "min": MIN_INT,
              "tiny": 5e-324, "pi": math.pi, "inf": math.inf, "minus0": -0.0, "null": None}
    rows.insert("r", **values)
    found = rows.get("r")
    assert found == values
    assert math.copysign(1, found["minus0"]) == -1
    rows.put("r", nan=math.nan)
    assert math.isnan(rows.get("r", "nan")["nan"])


def test_keys_are_bytes(rows):
    """Row keys and names with zeros and bytes above ASCII are told apart."""
    keys = [b"\x00", b"\x00\x00", b"a\x00b", b"a", b"\xff\xfe", "ü".encode(), b" "]
    for n, row in enumerate(keys):
        assert rows.insert(row, n=n).affected == 1
    for n, row in enumerate(keys):
        assert rows.get(row) == {"n": n}
    assert rows.change(T.INSERT, "names", {b"\x00\xff".decode("latin-1"): 1}).affected == 1


def test_columns_come_sorted(rows):
    rows.insert("r", c=1, a=2, b=3)
    assert list(rows.get("r")) == ["a", "b", "c"]
    assert list(rows.get("r", "c", "a")) == ["a", "c"]


def test_tables_are_apart(rows):
    rows.insert("r", a=1)
    other = Rows(rows.client, rows.name + "x")
    assert other.get("r") is None
    # the name's end is told by its length, not by what is in it
    longer = Rows(rows.client, rows.name + "r")
    assert longer.get("x") is None
    assert other.insert("r", a=2).affected == 1
    assert rows.get("r") == {"a": 1}


# ---- batches ----

def test_batch_of_many_rows(rows):
    rows.insert("there", n=1, text="x")
    reply = rows.batch(
        item(T.INSERT, "new", {"a": 1}), item(T.INSERT, "there", {"a": 1}),
        item(T.GET, "there", select=["n"]), item(T.GET, "missing"),
        item(T.INCREMENT, "there", {"n": 2}, want=True), item(T.INCREMENT, "there", {"text": 1}),
        item(T.APPEND, "there", {"text": "y"}, want=True), item(T.UPDATE, "missing", {"a": 1}),
        item(T.REPLACE, "there2", {"a": 1}), item(T.INSERT_OR_UPDATE, "new", {"b": 2}),
        item(T.DELETE, "new"), item(T.DELETE, "new"))
    assert reply.status == 0, reply
    got = [(r.status, r.affected, columns_of(r.entity) if r.HasField("entity") else None)
           for r in reply.body.items]
    assert got == [(0, 1, None), (St.EEXISTS, 0, None), (0, 0, {"n": 1}), (0, 0, None),
                   (0, 1, {"n": 3}), (St.DELTA_BADVAL, 0, None), (0, 1, {"text": b"xy"}),
                   (0, 0, None), (0, 1, None), (0, 1, None), (0, 1, None), (0, 0, None)]
    for r in reply.body.items:
        assert bool(r.message) == (r.status != 0), r
    assert rows.get("there") == {"n": 3, "text": b"xy"}
    assert rows.get("new") is None and rows.get("there2") == {"a": 1}


def test_batch_keeps_the_order_within_a_row(rows):
    count = 40
    reply = rows.batch(*[item(T.APPEND, "r", {"a": "%02d" % n}, want=True) for n in range(count)])
    assert [r.status for r in reply.body.items] == [0] * count
    whole = b"".join(b"%02d" % n for n in range(count))
    assert rows.get("r") == {"a": whole}


def test_a_large_batch(rows):
    """1000 items are taken, on two hundred rows."""
    reply = rows.batch(*[item(T.INCREMENT, "r%d" % (n % 200), {"n": 1}) for n in range(1000)])
    assert reply.status == 0 and len(reply.body.items) == 1000
    assert {r.status for r in reply.body.items} == {0}
    reply = rows.batch(*[item(T.GET, "r%d" % n) for n in range(200)])
    assert [columns_of(r.entity) for r in reply.body.items] == [{"n": 5}] * 200


def test_more_items_than_a_batch_takes(rows):
    refused(rows.batch(*[item(T.GET, "r") for _ in range(1001)]), St.EINVAL, "1000")


def test_an_empty_batch(rows):
    reply = rows.batch()
    assert reply.status in (0, St.EINVAL), reply
    if reply.status == 0:
        assert not reply.body.items


@pytest.mark.parametrize("operation", [T.QUERY, T.BATCH, T.QUERY_START, 13, 200])
def test_what_a_batch_does_not_take(rows, operation):
    refused(rows.batch(item(T.INSERT, "r", {"a": 1}), item(operation, "s")), St.EINVAL)
    assert rows.get("r") is None


def test_atomic_batch(rows):
    reply = rows.batch(item(T.INSERT, "r", {"n": 1}), item(T.INCREMENT, "r", {"n": 2}, want=True),
                       item(T.INSERT_OR_UPDATE, "r", {"a": "x"}),
                       item(T.GET, "r"), atomic=True)
    assert reply.status == 0, reply
    assert [r.status for r in reply.body.items] == [0] * 4
    assert columns_of(reply.body.items[1].entity) == {"n": 3}
    assert columns_of(reply.body.items[3].entity) == {"n": 3, "a": b"x"}
    assert rows.get("r") == {"n": 3, "a": b"x"}


def test_atomic_batch_does_all_or_nothing(rows):
    rows.insert("r", n=1, text="x")
    reply = rows.batch(item(T.UPDATE, "r", {"n": 2}), item(T.INCREMENT, "r", {"text": 1}),
                       item(T.DELETE, "r"), atomic=True)
    if reply.status == 0:
        assert reply.body.items[1].status == St.DELTA_BADVAL, reply
        assert all(r.status != 0 for r in reply.body.items), reply
    else:
        refused(reply, St.DELTA_BADVAL)
    assert rows.get("r") == {"n": 1, "text": b"x"}


def test_atomic_batch_is_of_one_row(rows):
    refused(rows.batch(item(T.INSERT, "r", {"a": 1}), item(T.INSERT, "s", {"a": 1}), atomic=True),
            St.EINVAL, "row")
    assert rows.get("r") is None and rows.get("s") is None


# ---- ranges ----

KEYS = ["a", "b", "b\x00", "ba", "c", "c1", "d"]


@pytest.fixture
def filled(ordered):
    for n, row in enumerate(KEYS):
        ordered.insert(row, n=n, name="row " + row, **({"extra": 1} if n % 2 else {}))
    # neighbours in the store that do not belong to the table
    Rows(ordered.client, ordered.name[:-1]).insert("z", n=100)
    Rows(ordered.client, ordered.name + "\x01").insert("a", n=101)
    return ordered


def names(found):
    return [row for row, _ in found]


def test_query_of_the_whole_table(filled):
    found = filled.query()
    assert names(found) == KEYS
    assert found[1][1] == {"n": 1, "name": b"row b", "extra": 1}
    assert names(filled.query(reverse=True)) == KEYS[::-1]


@pytest.mark.parametrize("start,end,start_exclusive,end_exclusive,wanted", [
    ("b", "c", False, False, ["b", "b\x00", "ba", "c"]),
    ("b", "c", True, False, ["b\x00", "ba", "c"]),
    ("b", "c", False, True, ["b", "b\x00", "ba"]),
    ("b", "c", True, True, ["b\x00", "ba"]),
    ("", "b", False, False, ["a", "b"]), ("c1", "", False, False, ["c1", "d"]),
    ("bb", "bz", False, False, []), ("c", "b", False, False, []), ("b", "b", False, False, ["b"]),
    ("x", "", False, False, []), ("", "0", False, False, []),
])
def test_query_of_a_range(filled, start, end, start_exclusive, end_exclusive, wanted):
    bounds = dict(start_exclusive=start_exclusive, end_exclusive=end_exclusive)
    assert names(filled.query(start, end, **bounds)) == wanted
    assert names(filled.query(start, end, reverse=True, **bounds)) == wanted[::-1]


@pytest.mark.parametrize("limit,offset,reverse", [
    (2, 0, False), (2, 3, False), (3, 2, True), (0, 5, False), (100, 0, False), (1, 100, False)])
def test_limit_and_offset(filled, limit, offset, reverse):
    wanted = (KEYS[::-1] if reverse else KEYS)[offset:]
    wanted = wanted[:limit] if limit else wanted
    assert names(filled.query(limit=limit, offset=offset, reverse=reverse)) == wanted


def test_select_of_a_query(filled):
    assert filled.query("b", "b", select=["n", "nothing"]) == [("b", {"n": 1})]
    assert filled.query("a", "b", select=["extra"]) in (
        [("a", {}), ("b", {"extra": 1})], [("b", {"extra": 1})])


def test_a_deleted_row_is_in_no_range(filled):
    filled.delete("ba")
    assert "ba" not in names(filled.query()) and len(filled.query()) == len(KEYS) - 1


FILTERS = {
    "prefix": (filter_of(node("PREFIX", "b")), ["b", "b\x00", "ba"]),
    "row range": (filter_of(node("ROW_RANGE", "b", "c", high_exclusive=True)),
                  ["b", "b\x00", "ba"]),
    "equal": (filter_of(node("SINGLE_COLUMN_VALUE", op="EQUAL", value=3, column="n")), ["ba"]),
    "not equal": (filter_of(node("SINGLE_COLUMN_VALUE", op="NOT_EQUAL", value=3, column="n")),
                  [k for k in KEYS if k != "ba"]),
    "less": (filter_of(node("SINGLE_COLUMN_VALUE", op="LESS", value=2, column="n")), ["a", "b"]),
    "less or equal": (filter_of(node("SINGLE_COLUMN_VALUE", op="LESS_OR_EQUAL", value=1.5,
                                     column="n")), ["a", "b"]),
    "greater": (filter_of(node("SINGLE_COLUMN_VALUE", op="GREATER", value=4, column="n")),
                ["c1", "d"]),
    "greater or equal": (filter_of(node("SINGLE_COLUMN_VALUE", op="GREATER_OR_EQUAL", value=5,
                                        column="n")), ["c1", "d"]),
    "missing passes": (filter_of(node("SINGLE_COLUMN_VALUE", op="EQUAL", value=1,
                                      column="extra")), KEYS),
    "missing does not": (filter_of(node("SINGLE_COLUMN_VALUE", op="EQUAL", value=1,
                                        column="extra", filter_if_missing=True)),
                         ["b", "ba", "c1"]),
    "all": (all_of(node("PREFIX", "b"),
                   node("SINGLE_COLUMN_VALUE", op="GREATER", value=1, column="n")),
            ["b\x00", "ba"]),
    "any": (any_of(node("PREFIX", "c"),
                   node("SINGLE_COLUMN_VALUE", op="EQUAL", value=0, column="n")),
            ["a", "c", "c1"]),
    "page": (filter_of(node("PAGE", count=3)), KEYS[:3]),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_of_rows(filled, name):
    chosen, wanted = FILTERS[name]
    found = filled.query(filter=chosen)
    assert names(found) == wanted
    for row, columns in found:
        assert columns["n"] == KEYS.index(row) and columns["name"] == b"row " + row.encode()


@pytest.mark.parametrize("chosen,wanted", [
    (filter_of(node("COLUMN_PREFIX", "n")), {"n", "name"}),
    (filter_of(node("COLUMN_RANGE", "e", "n")), {"extra", "n"}),
    (filter_of(node("COLUMN_RANGE", "e", "n", high_exclusive=True)), {"extra"}),
    (filter_of(node("QUALIFIER", op="EQUAL", value="name")), {"name"}),
    (filter_of(node("VALUE", op="EQUAL", value=1)), {"extra", "n"}),
    (filter_of(node("FIRST_KEY_ONLY")), {"extra"}),
    (all_of(node("COLUMN_PREFIX", "n"), node("QUALIFIER", op="NOT_EQUAL", value="n")), {"name"}),
], ids=["column prefix", "column range", "exclusive", "qualifier", "value", "first key only", "all"])
def test_filters_of_columns(filled, chosen, wanted):
    [(row, columns)] = filled.query("b", "b", filter=chosen)
    assert row == "b" and set(columns) == wanted


def test_key_only(filled):
    [(row, columns)] = filled.query("b", "b", filter=filter_of(node("KEY_ONLY")))
    assert row == "b" and set(columns) == {"n", "name", "extra"}
    assert not any(columns.values()), columns


@pytest.mark.parametrize("nodes", [
    [node("ALL", operands=2), node("PREFIX", "a")], [node("PREFIX", "a"), node("PREFIX", "b")],
    [node("PREFIX", "a"), node("ALL", operands=2)], [node("ALL", operands=0)],
    [node("PREFIX", "a")] * 9 + [node("ALL", operands=9)],
    [node("PREFIX", "a")] + [node("ALL", operands=1)] * 64,
], ids=["prefix order", "two results", "too few", "none", "nine open", "65 nodes"])
def test_filters_that_are_none(rows, nodes):
    refused(rows.ask("r", "r", filter=filter_of(*nodes)), St.EINVAL, "filter")


def test_a_range_of_one_row_works_everywhere(rows):
    rows.insert("r", n=1, m=2)
    rows.insert("s", n=2)
    assert rows.query("r", "r") == [("r", {"n": 1, "m": 2})]
    assert rows.query("r", "r", select=["m"]) == [("r", {"m": 2})]
    assert rows.query("q", "q") == []
    keep = filter_of(node("SINGLE_COLUMN_VALUE", op="EQUAL", value=9, column="n"))
    assert rows.query("r", "r", filter=keep) == []
    reply = rows.start("r", "r")
    assert reply.status == 0 and rows_of(reply.body) == [("r", {"n": 1, "m": 2})]
    assert not reply.body.more


def test_ranges_need_order(row_target, rows):
    """memcached has no order of keys, nor has a cluster unless it was asked for; a range says so."""
    rows.insert("r", n=1)
    if row_target.ordered:
        assert rows.query("a", "z") == [("r", {"n": 1})]
        return
    empty = rows.ask("r", "r", end_exclusive=True)
    assert empty.status == St.NOT_SUPPORTED or not empty.body.rows, empty
    for reply in (rows.ask("a", "z"), rows.ask(), rows.start("a", "z")):
        refused(reply, St.NOT_SUPPORTED)
        assert "order" in reply.text or "range" in reply.text, reply


# ---- sessions ----

@pytest.fixture
def many(ordered):
    for at in range(0, 250, 50):
        reply = ordered.batch(*[item(T.INSERT, "%03d" % n, {"n": n}) for n in range(at, at + 50)])
        assert {r.status for r in reply.body.items} == {0}
    return ordered


def walk(rows, reply):
    found, pages = [], []
    session = reply.body.session
    while True:
        assert reply.status == 0, reply
        found += rows_of(reply.body)
        pages.append(len(reply.body.rows))
        if not reply.body.more:
            return found, pages, session
        assert session != 0
        reply = rows.next(session)


def test_a_session_brings_all_rows(many):
    found, pages, session = walk(many, many.start())
    assert [columns["n"] for _, columns in found] == list(range(250))
    assert max(pages) <= 100 and session != 0
    found, pages, _ = walk(many, many.start(batch_rows=7))
    assert [columns["n"] for _, columns in found] == list(range(250)) and max(pages) == 7


def test_a_session_keeps_limit_offset_and_filter(many):
    keep = filter_of(node("SINGLE_COLUMN_VALUE", op="GREATER_OR_EQUAL", value=100, column="n"))
    found, _, _ = walk(many, many.start(filter=keep, limit=30, offset=5, batch_rows=4))
    assert [columns["n"] for _, columns in found] == list(range(105, 135))
    found, _, _ = walk(many, many.start(filter=keep, limit=30, offset=5, batch_rows=4,
                                        reverse=True))
    assert [columns["n"] for _, columns in found] == list(range(244, 214, -1))
    page = filter_of(node("PAGE", count=11))
    found, _, _ = walk(many, many.start(filter=page, batch_rows=4))
    assert len(found) == 11


def test_a_session_in_one_page_is_none(many):
    reply = many.start("000", "009")
    assert len(reply.body.rows) == 10 and not reply.body.more and reply.body.session == 0


def test_a_session_ends(many):
    session = many.start(batch_rows=10).body.session
    assert many.end(session).status == 0
    for reply in (many.next(session), many.end(session)):
        assert reply.status != 0, reply
        assert "session" in reply.text, reply
    _, _, session = walk(many, many.start(batch_rows=100))
    assert "session" in many.next(session).text


def test_sessions_are_not_guessed(many):
    for session in (0, 1, (1 << 64) - 1):
        reply = many.next(session)
        assert reply.status != 0 and "session" in reply.text, reply


def test_a_session_sees_what_is_written_meanwhile_or_not(many):
    """Rows ahead may be new, deleted or old; none comes twice or out of order, none is torn."""
    reply = many.start(batch_rows=10)
    many.delete("050")
    many.insert("0505", n=-1)
    many.delete("005")
    found, _, _ = walk(many, reply)
    assert names(found) == sorted(set(names(found)))
    assert set("%03d" % n for n in range(250)) - set(names(found)) <= {"050"}


def test_a_session_of_another_connection(ordered_target, many):
    """It belongs to the tenant or to the connection: another connection gets all of its rows or a
    refusal that says why."""
    session = many.start(batch_rows=100).body.session
    with ordered_target.client() as client:
        reply = Rows(client, many.name).next(session)
        if reply.status == 0:
            assert len(reply.body.rows) == 100
        else:
            assert "session" in reply.text, reply


def test_a_session_used_in_parallel(many):
    """One request at a time: of two that come together each is answered, with rows or a refusal,
    and no row comes twice."""
    session = many.start(batch_rows=20).body.session
    client = many.client
    opaques = [client.opaque() for _ in range(4)]
    body = pb.TableRequest(session=session)
    client.send(b"".join(frame_of(TABLE, T.QUERY_NEXT, many.name, b"", body, opaque=o)
                         for o in opaques))
    found = []
    for opaque in opaques:
        frame = client.recv()
        assert frame.opaque == opaque
        if frame.status == 0:
            found += names(rows_of(pb.TableReply.FromString(frame.value)))
        else:
            assert b"session" in frame.value, mcbin.show(frame)
    assert found == sorted(set(found)) and found


def test_sessions_have_a_cap(many):
    """A client that starts sessions and leaves them is refused in the end, and others' requests go
    on; what it ends is free again."""
    sessions = []
    for _ in range(5000):
        reply = many.start(batch_rows=1)
        if reply.status != 0:
            assert "session" in reply.text, reply
            assert reply.status in (St.EBUSY, St.ETMPFAIL), reply
            break
        sessions.append(reply.body.session)
    else:
        raise AssertionError("5000 sessions at a time")
    assert len(set(sessions)) == len(sessions)
    assert many.get("000") == {"n": 0}
    for session in sessions:
        assert many.end(session).status == 0
    assert many.start(batch_rows=1).status == 0


def test_sessions_that_nobody_uses_end():
    """After table_session_idle_s; using one keeps it, and only so many are open at a time."""
    config = {"tenants": [{"name": "default", "table_sessions": 3, "table_session_idle_s": 1}]}
    with servers.Headgate(config) as daemon, daemon.client() as client:
        rows = Rows(client)
        rows.batch(*[item(T.INSERT, "%03d" % n, {"n": n}) for n in range(400)])
        sessions = [rows.start(batch_rows=1).body.session for _ in range(3)]
        assert "session" in rows.start(batch_rows=1).text
        used = sessions[0]
        start = time.monotonic()

        def others_ended():
            assert rows.next(used).status == 0
            return rows.start(batch_rows=1).status == 0

        mcbin.poll(others_ended, within=8, step=0.05, what="an idle session ended")
        assert time.monotonic() - start > 0.8
        assert "session" in rows.next(sessions[1]).text
        assert rows.next(used).status == 0


# ---- at random, against a model ----

class Model:
    """TableAPI as doc/tables.md has it, on a dictionary."""

    def __init__(self):
        self.rows = {}

    def apply(self, operation, row, columns):
        """(status, affected, entity or None)"""
        old = self.rows.get(row)
        if operation == T.GET:
            return 0, 0, None if old is None else dict(old)
        if operation == T.DELETE:
            return 0, int(self.rows.pop(row, None) is not None), None
        if operation == T.INSERT:
            if old is not None:
                return St.EEXISTS, None, None
            self.rows[row] = dict(columns)
            return 0, 1, None
        if operation == T.UPDATE:
            if old is not None:
                old.update(columns)
            return 0, int(old is not None), None
        if operation == T.INSERT_OR_UPDATE:
            self.rows.setdefault(row, {}).update(columns)
            return 0, 1, None
        if operation == T.REPLACE:
            self.rows[row] = dict(columns)
            return 0, 2 if old is not None else 1, None
        kind = int if operation == T.INCREMENT else bytes
        before = old or {}
        if any(before.get(c) is not None and not isinstance(before[c], kind) for c in columns):
            return St.DELTA_BADVAL, None, None
        new = {c: x if before.get(c) is None else before[c] + x for c, x in columns.items()}
        self.rows.setdefault(row, {}).update(new)
        return 0, 1, new


def some_columns(random, operation):
    def value():
        return random.choice([random.randrange(-9, 9), b"x" * random.randrange(4), 0.5, None])

    names = random.sample("abc", random.randrange(1, 4))
    if operation == T.INCREMENT:
        return {c: random.randrange(-99, 99) for c in names}
    if operation == T.APPEND:
        return {c: b"+" * random.randrange(1, 3) for c in names}
    return {c: value() for c in names}


@pytest.mark.parametrize("seed", range(3))
def test_random_operations_do_what_the_model_does(row_target, rows, seed):
    """Singly and in batches, on few rows; and the rows at the end are the model's, in order."""
    random, model = Random(seed), Model()

    def draw():
        operation = random.choice([T.GET, T.INSERT, T.DELETE, T.UPDATE, T.INSERT_OR_UPDATE,
                                   T.REPLACE, T.INCREMENT, T.APPEND])
        columns = None if operation in (T.GET, T.DELETE) else some_columns(random, operation)
        return operation, "r%d" % random.randrange(5), columns

    def check(step, wanted, status, affected, entity, has_entity):
        assert status == wanted[0], (step, wanted, status)
        if wanted[0] == 0:
            assert affected == wanted[1], (step, wanted, affected)
            assert (columns_of(entity) if has_entity else None) == wanted[2], (step, wanted, entity)

    for _ in range(150):
        if random.random() < 0.7:
            step = draw()
            request = pb.TableRequest(return_entity=step[0] in (T.INCREMENT, T.APPEND))
            if step[2] is not None:
                request.entity.CopyFrom(entity_of(step[2]))
            wanted = model.apply(*step)
            reply = rows.table(step[0], step[1], request)
            check(step, wanted, reply.status, reply.affected, reply.body and reply.body.entity,
                  reply.body and reply.body.HasField("entity"))
            continue
        steps = [draw() for _ in range(random.randrange(1, 12))]
        wanted = [model.apply(*step) for step in steps]
        reply = rows.batch(*[item(*step, want=step[0] in (T.INCREMENT, T.APPEND))
                               for step in steps])
        assert reply.status == 0, reply
        for step, want, got in zip(steps, wanted, reply.body.items):
            check(step, want, got.status, got.affected, got.entity, got.HasField("entity"))
    for n in range(5):
        assert rows.get("r%d" % n) == model.rows.get("r%d" % n)
    if row_target.ordered:
        assert rows.query() == sorted(model.rows.items())


# ---- what is wrong with a request ----

def test_what_an_operation_does_not_read(rows):
    """A field that would be ignored is refused: its sender expects something else."""
    entity = entity_of({"a": 1})
    for operation, body, name in (
            (T.GET, pb.TableRequest(entity=entity), "entity"),
            (T.DELETE, pb.TableRequest(entity=entity), "entity"),
            (T.INSERT, pb.TableRequest(entity=entity, return_entity=True), "return_entity"),
            (T.INSERT, pb.TableRequest(entity=entity, select=[b"a"]), "select"),
            (T.GET, pb.TableRequest(atomic=True), "atomic"),
            (T.GET, pb.TableRequest(session=5), "session"),
            (T.GET, pb.TableRequest(items=[item(T.GET, "r")]), "items")):
        refused(rows.table(operation, "r", body), St.EINVAL, name)
    refused(rows.batch(item(T.GET, "r", {"a": 1})), St.EINVAL, "items[0]", "entity")
    assert rows.get("r") is None



def test_bodies_that_are_no_protobuf(rows):
    good = pb.TableRequest(entity=entity_of({"a": "text"})).SerializeToString()
    bodies = [b"\xff", b"\x0a\xff", b"\x0a\x05abc", b"\x0b", b"\x0a" + b"\xff" * 10, b"\x07",
              b"\x00", good[:-1], good[:3]]
    for body in bodies:
        frame = rows.raw(TABLE, T.INSERT, "r", body)
        assert frame.status == St.EINVAL and frame.value, (body, mcbin.show(frame))
        frame = rows.raw(HBASE, H.PUT, "r", body)
        assert frame.status == St.EINVAL and frame.value, (body, mcbin.show(frame))
    assert rows.get("r") is None


@pytest.mark.parametrize("operation", [13, 14, 100, 255])
def test_unknown_operations(rows, operation):
    frame = rows.raw(TABLE, operation, "r", b"")
    assert frame.status in (St.EINVAL, St.UNKNOWN_COMMAND, St.NOT_SUPPORTED), mcbin.show(frame)
    assert b"operation" in frame.value and b"accepted" in frame.value, mcbin.show(frame)


@pytest.mark.parametrize("operation", [0, 2, 4, 6, 7, 8, 10, 14, 17, 20, 255])
def test_unknown_operations_of_hbase(rows, operation):
    frame = rows.raw(HBASE, operation, "r", b"")
    assert frame.status in (St.EINVAL, St.UNKNOWN_COMMAND, St.NOT_SUPPORTED), mcbin.show(frame)
    assert b"operation" in frame.value and b"accepted" in frame.value, mcbin.show(frame)


@pytest.mark.parametrize("fields", [
    {"flags": 1}, {"reserved": 1}, {"table_len": 0}, {"table_len": 999}, {"table": b"x" * 101},
    {"table": b"a\x00b"}, {"table": b""}, {"row": b""}, {"row": b"r" * 250}, {"cas": 5},
    {"datatype": 1}], ids=str)
def test_frames_that_are_wrong(rows, fields):
    fields = dict(fields)
    row = fields.pop("row", b"r")
    frame = rows.raw(TABLE, T.GET, row, b"", **fields)
    assert frame.status == St.EINVAL and frame.value, mcbin.show(frame)


@pytest.mark.parametrize("extras", [b"", b"\x00" * 7, b"\x00" * 9])
def test_extras_have_8_bytes(rows, extras):
    frame = rows.client.call(TABLE, "tr", b"", extras)
    assert frame.status == St.EINVAL, mcbin.show(frame)


@pytest.mark.parametrize("operation", [T.QUERY, T.BATCH, T.QUERY_START, T.QUERY_NEXT, T.QUERY_END])
def test_operations_without_a_row(rows, operation):
    body = pb.TableRequest(items=[item(T.GET, "r")]) if operation == T.BATCH \
        else pb.TableRequest(query=Rows.query_of("r", "r"), session=1)
    frame = rows.raw(TABLE, operation, b"row", body)
    assert frame.status == St.EINVAL, mcbin.show(frame)


def test_names_that_are_too_long_or_twice(rows):
    assert rows.change(T.INSERT, "r", {"c" * 250: 1}).status == 0
    refused(rows.change(T.INSERT, "s", {"c" * 251: 1}), St.EINVAL)
    entity = pb.Entity(columns=[pb.Column(name=b"a", value=pb.Value(integer=n)) for n in (1, 2)])
    refused(rows.table(T.INSERT, "s", pb.TableRequest(entity=entity)), St.EINVAL)
    assert rows.get("s") is None
    row = b"r" * (249 - len(rows.name))
    assert rows.insert(row, a=1).affected == 1 and rows.get(row) == {"a": 1}
    assert rows.raw(TABLE, T.GET, row + b"r", b"").status == St.EINVAL


def test_a_row_over_the_limit(rows):
    """1 MiB is the limit of an item; what does not fit leaves the row as it was."""
    assert rows.insert("r", a=b"x" * 700000).status == 0
    refused(rows.put("r", b=b"y" * 700000), St.E2BIG)
    refused(rows.append("r", a=b"z" * 700000), St.E2BIG)
    refused(rows.insert("s", a=b"x" * (1 << 20)), St.E2BIG)
    assert rows.get("r") == {"a": b"x" * 700000} and rows.get("s") is None
    reply = rows.batch(item(T.INSERT_OR_UPDATE, "r", {"b": b"y" * 500000}),
                       item(T.INSERT, "t", {"a": 1}))
    assert [r.status for r in reply.body.items] == [St.E2BIG, 0], reply


# ---- rows and classic items ----

def stored_key(rows, row):
    return mcbin._b(rows.name) + b"\x00" + mcbin._b(row)


def test_classic_operations_on_a_row(rows):
    rows.insert("r", n=1)
    key, client = stored_key(rows, "r"), rows.client
    calls = {
        Op.GET: {}, Op.GETK: {}, Op.SET: {"value": b"v", "extras": mcbin.set_extras()},
        Op.REPLACE: {"value": b"v", "extras": mcbin.set_extras()}, Op.APPEND: {"value": b"v"},
        Op.PREPEND: {"value": b"v"}, Op.INCR: {"extras": mcbin.counter_extras(1)},
        Op.DECR: {"extras": mcbin.counter_extras(1)}, Op.DELETE: {},
        Op.TOUCH: {"extras": struct.pack(">I", 100)}, Op.GAT: {"extras": struct.pack(">I", 100)}}
    for opcode, fields in calls.items():
        frame = client.call(opcode, key, **fields)
        assert frame.status == St.NOT_SUPPORTED, (opcode, mcbin.show(frame))
    frame = client.call(Op.ADD, key, b"v", mcbin.set_extras())
    assert frame.status in (St.EEXISTS, St.NOT_SUPPORTED), mcbin.show(frame)
    assert rows.get("r") == {"n": 1}


def test_row_operations_on_a_classic_item(rows):
    key, client = stored_key(rows, "r"), rows.client
    client.ok(Op.SET, key, b"plain", mcbin.set_extras(5))
    for reply in (rows.table(T.GET, "r"), rows.insert("r", a=1), rows.update("r", a=1),
                  rows.put("r", a=1), rows.replace("r", a=1), rows.increment("r", a=1),
                  rows.append("r", a="x"), rows.delete("r"), rows.ask("r", "r")):
        refused(reply, St.NOT_SUPPORTED)
    reply = rows.batch(item(T.GET, "r"), item(T.INSERT, "s", {"a": 1}))
    assert [r.status for r in reply.body.items] == [St.NOT_SUPPORTED, 0]
    frame = client.ok(Op.GET, key)
    assert frame.value == b"plain" and frame.extras == struct.pack(">I", 5)


def test_the_two_apis_do_not_share_rows(rows):
    """A row of TableAPI has columns, one of HBase cells: what one stored, the other refuses."""
    from tablebin import cell
    rows.insert("r", n=1)
    refused(rows.hput("r", cell("f:q", "x")), St.NOT_SUPPORTED)
    rows.hput("s", cell("f:q", "x"))
    refused(rows.insert("s", n=1), St.NOT_SUPPORTED)
    refused(rows.table(T.GET, "s"), St.NOT_SUPPORTED)
    assert rows.get("r") == {"n": 1} and len(rows.hget("s")) == 1


# ---- row atomicity ----

ROUNDS = 25


def test_increments_of_16_clients(row_target, rows):
    seen = []

    def work(mine, number):
        for _ in range(ROUNDS):
            reply = insist(lambda: mine.increment("r", n=1, **{"c%d" % number: 1}))
            assert reply.status == 0, reply
            seen.append(columns_of(reply.body.entity)["n"])

    together(row_target, rows.name, work)
    wanted = dict({"c%d" % n: ROUNDS for n in range(CLIENTS)}, n=CLIENTS * ROUNDS)
    assert rows.get("r") == wanted
    assert sorted(seen) == list(range(1, CLIENTS * ROUNDS + 1))


def test_appends_of_16_clients(row_target, rows):
    def work(mine, number):
        for n in range(ROUNDS):
            reply = insist(lambda: mine.append("r", want=False, a="%02d:%02d;" % (number, n)))
            assert reply.status == 0, reply

    together(row_target, rows.name, work)
    parts = rows.get("r")["a"].decode().split(";")[:-1]
    assert len(parts) == CLIENTS * ROUNDS
    for number in range(CLIENTS):
        mine = [part for part in parts if part.startswith("%02d:" % number)]
        assert mine == ["%02d:%02d" % (number, n) for n in range(ROUNDS)]


def test_one_of_16_inserts(row_target, rows):
    won = []

    def work(mine, number):
        for n in range(ROUNDS):
            reply = insist(lambda: mine.insert("r%d" % n, who=number))
            if reply.status == 0:
                won.append((n, number))
            else:
                assert reply.status == St.EEXISTS, reply

    together(row_target, rows.name, work)
    assert sorted(n for n, _ in won) == list(range(ROUNDS))
    for n, number in won:
        assert rows.get("r%d" % n) == {"who": number}


def test_atomic_batches_of_16_clients(row_target, rows):
    """Two columns that are always changed together are always seen alike."""
    def work(mine, number):
        for _ in range(ROUNDS):
            reply = insist(lambda: mine.batch(item(T.INCREMENT, "r", {"a": 1}),
                                              item(T.INCREMENT, "r", {"b": 1}),
                                              item(T.GET, "r"), atomic=True))
            assert reply.status == 0, reply
            assert [r.status for r in reply.body.items] == [0, 0, 0], reply
            seen = columns_of(reply.body.items[2].entity)
            assert seen["a"] == seen["b"], seen

    together(row_target, rows.name, work)
    assert rows.get("r") == {"a": CLIENTS * ROUNDS, "b": CLIENTS * ROUNDS}


# ---- pipelines ----

def test_a_pipeline_is_answered_in_order(rows):
    """Row and classic operations of one connection, many at a time."""
    client, sent = rows.client, []
    data = b""
    for n in range(60):
        opaque = client.opaque()
        sent.append(opaque)
        if n % 3 == 0:
            data += mcbin.request(Op.NOOP, opaque=opaque)
        elif n % 3 == 1:
            data += frame_of(TABLE, T.APPEND, rows.name, "r",
                             pb.TableRequest(entity=entity_of({"a": "%02d" % n})), opaque=opaque)
        else:
            data += frame_of(TABLE, T.GET, rows.name, "r", pb.TableRequest(), opaque=opaque)
    client.send(data)
    expected = b""
    for n, opaque in enumerate(sent):
        frame = client.recv()
        assert (frame.opaque, frame.status) == (opaque, 0), mcbin.show(frame)
        if n % 3 == 1:
            expected += b"%02d" % n
        elif n % 3 == 2:
            got = columns_of(pb.TableReply.FromString(frame.value).entity)
            assert got == {"a": expected}, (n, got)


def test_a_client_that_leaves_amid_a_batch(row_target, rows):
    """Nothing is left behind that would keep others from the rows."""
    for _ in range(10):
        with row_target.client() as client:
            client.send(frame_of(TABLE, T.BATCH, rows.name, b"", pb.TableRequest(
                items=[item(T.INCREMENT, "r%d" % n, {"n": 1}) for n in range(200)])))
    mcbin.poll(lambda: insist(lambda: rows.increment("r0", n=1)).status == 0, what="row free")


# ---- the rest of the server ----

def test_rows_survive_a_restart():
    with servers.Headgate() as daemon:
        with daemon.client() as client:
            assert Rows(client).insert("r", a=1, b="x").affected == 1
        daemon.restart()
        with daemon.client() as client:
            rows = Rows(client)
            assert rows.get("r") == {"a": 1, "b": b"x"}
            assert rows.query() == [("r", {"a": 1, "b": b"x"})]


def test_privileges():
    """Reading needs Read, changing Write; a batch that does both needs both."""
    users = {"users": [servers.user_row("reader", buckets={"shop": ["Read"]}),
                       servers.user_row("writer", buckets={"shop": ["Write"]})]}
    with servers.Headgate({"tenants": [{"name": "shop"}]}, users=users) as daemon:
        def as_user(name):
            client = Client(daemon.address).login(name, "pw")
            assert client.select("shop").status == 0
            return Rows(client)

        reader, writer = as_user("reader"), as_user("writer")
        refused(reader.insert("r", a=1), St.EACCESS)
        assert writer.change(T.INSERT, "r", {"a": 1}).affected == 1
        assert reader.get("r") == {"a": 1}
        refused(writer.table(T.GET, "r"), St.EACCESS)
        refused(reader.batch(item(T.DELETE, "r")), St.EACCESS)
        assert reader.batch(item(T.GET, "r")).status == 0
        assert reader.get("r") == {"a": 1}


def test_operations_are_counted():
    """`stat ops` has a row for each operation that was used."""
    with servers.Headgate() as daemon, daemon.client() as client:
        rows = Rows(client)
        rows.insert("r", a=1)
        rows.get("r")
        rows.batch(item(T.GET, "r"))
        found = client.stat("ops")
        for name in ("table_insert", "table_get", "table_batch"):
            assert any(key.startswith(name) for key in found), (name, sorted(found))
