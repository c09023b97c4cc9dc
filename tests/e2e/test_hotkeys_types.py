"""test_hotkeys_types - what counts as what among hot keys, operation by operation, and what a
client is told whose request is refused"""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib

import pytest

import hotkey_tools as hot
import mcbin
from credit_tools import admin, details, enter
from hotkey_tools import (Heater, STORES, counts_of, heat_get, listed, poll, rows_of_one_epoch,
                          start, tenant, until_refused, wait_listed)
from mcbin import Feature, Op, St, counter_extras, request, set_extras, show
from tablebin import (H, Rows, T, TABLE, cell, counters, deletion, entity_of, frame_of, item,
                      pb, read_of)

EPOCH_MS = 200


@pytest.fixture(scope="module", params=STORES)
def daemon(request, farm):
    with start([tenant("shop")], request.param, farm, epoch_ms=EPOCH_MS) as made:
        made.kind = request.param
        yield made


@pytest.fixture
def boss(daemon):
    with contextlib.closing(admin(daemon)) as client:
        yield client


@pytest.fixture
def client(daemon):
    with contextlib.closing(enter(daemon, "shop")) as made:
        yield made


def counted(boss, client, *acts):
    """{(type, table, key): count} of one epoch in which these were carried out."""
    return counts_of(rows_of_one_epoch(boss, "shop", lambda: [act() for act in acts]))


# ---- classic operations ----

def loud(opcode, value=b"", extras=b""):
    return lambda client, key: client.call(opcode, key, value, extras)


def quiet(opcode, value=b"", extras=b""):
    return lambda client, key: client.quiet(request(opcode, key, value, extras))


STORE, COUNT, EXPIRE = set_extras(), counter_extras(1, 1), b"\0\0\0\0"
CLASSIC = [("QUERY", op, b"", b"") for op in (Op.GET, Op.GETK, Op.GETQ, Op.GETKQ)] + \
    [("QUERY", op, b"", EXPIRE) for op in (Op.GAT, Op.GATK, Op.GATQ, Op.GATKQ)] + \
    [("INSERT", op, b"v", STORE) for op in (Op.SET, Op.SETQ, Op.ADD, Op.ADDQ)] + \
    [("UPDATE", op, b"v", STORE) for op in (Op.REPLACE, Op.REPLACEQ)] + \
    [("UPDATE", op, b"v", b"") for op in (Op.APPEND, Op.APPENDQ, Op.PREPEND, Op.PREPENDQ)] + \
    [("UPDATE", op, b"", COUNT) for op in (Op.INCR, Op.INCRQ, Op.DECR, Op.DECRQ)] + \
    [("UPDATE", Op.TOUCH, b"", EXPIRE)] + \
    [("DELETE", op, b"", b"") for op in (Op.DELETE, Op.DELETEQ)]
QUIET = set(mcbin.QUIET_TO_LOUD)


@pytest.mark.parametrize("present", (True, False))
def test_classic_operations(daemon, boss, client, present):
    """Each under its type and under ALL, once, whether it finds its item or not."""
    groups = [CLASSIC[i:i + 8] for i in range(0, len(CLASSIC), 8)]  # a type shows ten keys
    for group in groups:
        names = {op: b"%s-%d" % (op.name.encode(), present) for _, op, _, _ in group}
        for key in names.values():
            client.set(key, b"5") if present else client.delete(key)
        act = [lambda op=op, value=value, extras=extras:
               (quiet if op in QUIET else loud)(op, value, extras)(client, names[op])
               for _, op, value, extras in group]
        want = {}
        for kind, op, _, _ in group:
            for view in ("ALL", kind):
                want[view, "", names[op].decode()] = 1
        assert counted(boss, client, *act) == want


def test_what_has_no_key_is_not_counted(boss, client):
    assert counted(boss, client, client.noop, client.version, lambda: client.stat(),
                   lambda: client.hello(), lambda: client.get(b"k")) == \
        {("ALL", "", "k"): 1, ("QUERY", "", "k"): 1}


def test_invalid_requests_are_not_counted(boss, client):
    """Only what is handed to a store counts."""
    def wrong():
        frame = client.call(Op.SET, b"k", b"v", b"")  # no extras
        assert frame.status == St.EINVAL, show(frame)
    assert counted(boss, client, wrong, lambda: client.get(b"n")) == \
        {("ALL", "", "n"): 1, ("QUERY", "", "n"): 1}


def test_counts_add_up_over_connections_and_types(daemon, boss):
    clients = enter(daemon, "shop", 4)  # on both workers where there are two

    def act():
        for client in clients:
            client.quiet(*[request(Op.SET, b"sum", b"1", STORE)] * 3,
                         *[request(Op.GET, b"sum")] * 5,
                         *[request(Op.INCR, b"sum", b"", COUNT)] * 2, request(Op.DELETE, b"sum"))
    found = counts_of(rows_of_one_epoch(boss, "shop", act))
    for client in clients:
        client.close()
    assert found == {("ALL", "", "sum"): 44, ("INSERT", "", "sum"): 12, ("QUERY", "", "sum"): 20,
                     ("UPDATE", "", "sum"): 8, ("DELETE", "", "sum"): 4}


def test_the_first_ten_of_each_type(boss, client):
    """25 keys got and set more and more often: each type shows the ten most frequent."""
    def act():
        client.quiet(*[request(Op.GET, b"t%02d" % n) for n in range(25) for _ in range(n + 1)],
                     *[request(Op.SET, b"s%02d" % n, b"v", STORE) for n in range(12)
                       for _ in range(n + 1)])
    found = rows_of_one_epoch(boss, "shop", act)
    shown = {kind: [(row["HOTKEY"], row["HOTKEY_FREQ"]) for row in found if row["TYPE"] == kind]
             for kind in hot.TYPES}
    assert shown == {"ALL": [("t%02d" % n, n + 1) for n in range(24, 14, -1)],
                     "QUERY": [("t%02d" % n, n + 1) for n in range(24, 14, -1)],
                     "INSERT": [("s%02d" % n, n + 1) for n in range(11, 1, -1)],
                     "UPDATE": [], "DELETE": []}
    assert all(row["ERROR"] == 0 for row in found), "fewer keys than counters"


# ---- rows ----

TABLE_TYPES = {T.GET: "QUERY", T.INSERT: "INSERT", T.DELETE: "DELETE", T.UPDATE: "UPDATE",
               T.INSERT_OR_UPDATE: "INSERT", T.REPLACE: "INSERT", T.INCREMENT: "UPDATE",
               T.APPEND: "UPDATE"}
HBASE_TYPES = {H.PUT: "INSERT", H.DELETE: "DELETE", H.GET: "QUERY", H.CHECK_AND_PUT: "INSERT",
               H.CHECK_AND_DELETE: "DELETE", H.APPEND: "UPDATE", H.INCREMENT: "UPDATE"}


def entity_for(operation):
    return {} if operation in (T.GET, T.DELETE) else \
        {"n": 1} if operation == T.INCREMENT else {"a": "x"}


def body_of(operation):
    columns = entity_for(operation)
    return pb.TableRequest(entity=entity_of(columns)) if columns else pb.TableRequest()


def both(kind, table, key, count=1):
    return {("ALL", table, key): count, (kind, table, key): count}


def test_table_operations(daemon, boss, client):
    rows = Rows(client, "people")
    for row in TABLE_TYPES:
        rows.delete("row-%d" % row)
    act = [lambda op=op: ok(rows.table(op, "row-%d" % op, body_of(op))) for op in TABLE_TYPES]
    want = {}
    for op, kind in TABLE_TYPES.items():
        want.update(both(kind, "people", "row-%d" % op))
    # INSERT answers that the row exists when an epoch's end made the acts run twice; it counts.
    assert counted(boss, client, *act) == want


def ok(reply):
    assert reply.status in (0, St.EEXISTS), reply
    return reply


def test_table_batch_counts_item_by_item(boss, client):
    """Each item under its own type and key, whatever became of it."""
    rows = Rows(client, "people")
    items = [item(op, "item-%d" % op, entity_for(op) or None) for op in TABLE_TYPES]
    items += [item(T.GET, "item-0"), item(T.GET, "item-0")]
    want = {}
    for op, kind in TABLE_TYPES.items():
        want.update(both(kind, "people", "item-%d" % op))
    want.update(both("QUERY", "people", "item-0", 3))
    assert counted(boss, client, lambda: ok(rows.batch(*items))) == want


def test_atomic_batch_counts_its_items(boss, client):
    rows = Rows(client, "people")
    items = [item(T.REPLACE, "one", {"a": "x"}), item(T.INCREMENT, "one", {"n": 1}),
             item(T.GET, "one")]
    assert counted(boss, client, lambda: ok(rows.batch(*items, atomic=True))) == {
        ("ALL", "people", "one"): 3, ("INSERT", "people", "one"): 1, ("UPDATE", "people", "one"): 1,
        ("QUERY", "people", "one"): 1}


def test_queries_count_when_they_are_points(daemon, boss, client):
    """start == end, both inclusive: a QUERY of that row; any other range is not counted."""
    rows = Rows(client, "people")
    rows.put("p", a=1)
    acts = [lambda: ok(rows.ask("p", "p"))]
    if daemon.kind != "memcached":
        acts += [lambda: ok(rows.ask("a", "z")), lambda: ok(rows.ask()),
                 lambda: rows.ask("p", "p", start_exclusive=True),
                 lambda: rows.ask("p", "p", end_exclusive=True)]
    else:
        acts += [lambda: rows.ask("a", "z")]  # 0x83
    assert counted(boss, client, *acts) == both("QUERY", "people", "p")


def test_query_sessions_count_at_their_start(daemon, boss, client):
    rows = Rows(client, "paged")
    for n in range(6):
        rows.put("r%d" % n, a=n)

    def pages():
        reply = ok(rows.start("r0", "r9", batch_rows=2))
        assert reply.body.more, reply
        while reply.body.more:
            reply = ok(rows.next(reply.body.session))
    acts = [lambda: ok(rows.start("r3", "r3"))]
    if daemon.kind != "memcached":
        acts += [pages]
    assert counted(boss, client, *acts) == both("QUERY", "paged", "r3")


def hbase_request(op, row):
    if op in (H.PUT, H.APPEND):
        return pb.HBaseRequest(cells=[cell("f:q", b"v")])
    if op == H.INCREMENT:
        return pb.HBaseRequest(counters=counters({"f:n": 1}))
    if op == H.DELETE:
        return pb.HBaseRequest(deletions=[deletion()])
    if op == H.GET:
        return pb.HBaseRequest(read=read_of(["f"]))
    made = pb.HBaseRequest(cells=[cell("f:q", b"v")]) if op == H.CHECK_AND_PUT \
        else pb.HBaseRequest(deletions=[deletion()])
    made.check.family, made.check.qualifier = b"f", b"q"
    return made


def test_hbase_operations(boss, client):
    rows = Rows(client, "cells")
    acts = [lambda op=op: ok(rows.hbase(op, "row-%d" % op, hbase_request(op, "row-%d" % op)))
            for op in HBASE_TYPES]
    want = {}
    for op, kind in HBASE_TYPES.items():
        want.update(both(kind, "cells", "row-%d" % op))
    assert counted(boss, client, *acts) == want


def test_hbase_hybrid_counts_item_by_item(boss, client):
    rows = Rows(client, "cells")
    body = pb.HBaseRequest(items=[
        pb.HBaseItem(operation=H.PUT, row=b"h-put", cells=[cell("f:q", b"v")]),
        pb.HBaseItem(operation=H.GET, row=b"h-get"),
        pb.HBaseItem(operation=H.DELETE, row=b"h-delete", deletions=[deletion()]),
        pb.HBaseItem(operation=H.APPEND, row=b"h-append", cells=[cell("f:q", b"v")]),
        pb.HBaseItem(operation=H.INCREMENT, row=b"h-increment", counters=counters({"f:n": 1}))])
    want = {}
    for kind, key in (("INSERT", "h-put"), ("QUERY", "h-get"), ("DELETE", "h-delete"),
                      ("UPDATE", "h-append"), ("UPDATE", "h-increment")):
        want.update(both(kind, "cells", key))
    assert counted(boss, client, lambda: ok(rows.hbase(H.HYBRID, b"", body))) == want


def test_hbase_families_of_a_row_pool(boss, client):
    rows = Rows(client, "cells")
    assert counted(boss, client, lambda: ok(rows.hput("pool", cell("f:a", b"1"))),
                   lambda: ok(rows.hput("pool", cell("g:b", b"2")))) == \
        both("INSERT", "cells", "pool", 2)


def test_scans_count_when_they_are_points(daemon, boss, client):
    rows = Rows(client, "cells")
    rows.hput("s", cell("f:q", b"v"))
    acts = [lambda: ok(rows.scan("s", "s"))]
    if daemon.kind != "memcached":
        acts += [lambda: ok(rows.scan("a", "z")), lambda: ok(rows.scan())]
    assert counted(boss, client, *acts) == both("QUERY", "cells", "s")


def test_scan_sessions_are_not_counted(daemon, boss, client):
    if daemon.kind == "memcached":
        with_status = Rows(client, "cells").scan("a", "z").status
        assert with_status == St.NOT_SUPPORTED
        return
    rows = Rows(client, "scanned")
    for n in range(6):
        rows.hput("r%d" % n, cell("f:q", b"v"))

    def pages():
        reply = ok(rows.scan("r0", "r9", caching=2))
        assert reply.body.more, reply
        while reply.body.more:
            reply = ok(rows.scan_next(reply.body.session))
    assert counted(boss, client, pages, lambda: client.get(b"seen")) == both("QUERY", "", "seen")


def test_tables_keep_apart(boss, client):
    """The same bytes as a classic key, and cut between table and row in two ways."""
    assert counted(boss, client, lambda: client.get(b"abc"), lambda: Rows(client, "a").get("bc"),
                   lambda: Rows(client, "ab").get("c")) == {
        **both("QUERY", "", "abc"), **both("QUERY", "a", "bc"), **both("QUERY", "ab", "c")}


# ---- what a refused client is told ----

THRESHOLD = 20  # an epoch; the heater sends ten times that
REJECTS = ("tmpfail", "busy", "degrade")


@pytest.fixture(scope="module", params=STORES)
def hot_daemon(request, farm):
    """Three tenants, one for each reject_status, whose keys `hot`, t/hot and a counter are hot."""
    tenants = [tenant(name, THRESHOLD, "proportional", reject_status=name) for name in REJECTS]
    with start(tenants, request.param, farm, epoch_ms=200) as made, contextlib.ExitStack() as stack:
        made.kind = request.param
        requests = [heat_get(b"hot"), frame_of(TABLE, T.GET, "t", "hot", pb.TableRequest())]
        for name in REJECTS:
            stack.enter_context(Heater(enter(made, name), requests, burst=12, every_s=0.02))
        boss = admin(made)
        for name in REJECTS:
            wait_listed(boss, name, 2, at_least=50)
        yield made


def is_status(*statuses):
    return lambda frame: frame.status in statuses


def refuse(client, ask, *statuses):
    return until_refused(ask, is_status(*statuses))


@pytest.mark.parametrize("name", REJECTS)
@pytest.mark.parametrize("feature", (Feature.XERROR, Feature.NON_BLOCKING))
def test_named_with_context(hot_daemon, name, feature):
    """0xff01 for who asked for it, whatever reject_status is, with the facts as JSON."""
    with enter(hot_daemon, name, features=(feature, Feature.JSON)) as client:
        for ask, kind in ((lambda: client.get(b"hot"), "QUERY"),
                          (lambda: client.set(b"hot", b"v"), "INSERT"),
                          (lambda: client.replace(b"hot", b"v"), "UPDATE"),
                          (lambda: client.incr(b"hot"), "UPDATE"),
                          (lambda: client.delete(b"hot"), "DELETE"),
                          (lambda: client.gat(b"hot", 0), "QUERY")):
            frame = refuse(client, ask, St.HOT_KEY)
            body = mcbin.error_json(frame)["error"]
            assert "context" in body, body
            assert body["limit"] == "kv_hotkey_throttle_threshold", body
            assert body["tenant"] == name and body["type"] == "TABLE_HOTKEY_" + kind, body
            assert 50 <= body["percent"] <= 100 and 1 <= body["retry_after_ms"] <= 200, body
            assert name in body["context"] and str(body["percent"]) in body["context"], body


def test_named_without_json(hot_daemon):
    """The text says why; no JSON for who did not ask for it."""
    with enter(hot_daemon, "tmpfail", features=(Feature.XERROR,)) as client:
        frame = refuse(client, lambda: client.get(b"hot"), St.HOT_KEY)
        assert b"tmpfail" in frame.value and not frame.value.startswith(b"{"), show(frame)


@pytest.mark.parametrize("name, status", (("tmpfail", St.ETMPFAIL), ("busy", St.EBUSY)))
def test_plain_statuses(hot_daemon, name, status):
    with enter(hot_daemon, name) as client:
        for ask in (lambda: client.get(b"hot"), lambda: client.set(b"hot", b"v"),
                    lambda: client.incr(b"hot"), lambda: client.delete(b"hot")):
            frame = until_refused(ask, lambda f: f.status in (St.ETMPFAIL, St.EBUSY, St.HOT_KEY))
            assert frame.status == status, show(frame)


def test_degrade(hot_daemon):
    """A miss for gets, not stored for stores, else a temporary failure; the item exists, and a
    connection without limits sees it."""
    with hot_daemon.client(15) as fast, enter(hot_daemon, "degrade") as client:
        fast.login("fast", "pw")
        assert fast.select("degrade").status == 0
        assert fast.set(b"hot", b"5").status == 0
        for ask, status in ((lambda: client.get(b"hot"), St.ENOENT),
                            (lambda: client.gat(b"hot", 0), St.ENOENT),
                            (lambda: client.set(b"hot", b"5"), St.NOT_STORED),
                            (lambda: client.add(b"hot", b"5"), St.NOT_STORED),
                            (lambda: client.replace(b"hot", b"5"), St.NOT_STORED),
                            (lambda: client.incr(b"hot"), St.ETMPFAIL),
                            (lambda: client.decr(b"hot"), St.ETMPFAIL),
                            (lambda: client.call(Op.APPEND, b"hot", b"5"), St.ETMPFAIL),
                            (lambda: client.touch(b"hot", 0), St.ETMPFAIL)):
            frame = until_refused(ask, lambda f: f.status not in (0, St.EEXISTS))
            assert frame.status == status, show(frame)
        # A quiet get that is refused is a silent miss, so of many only few are answered.
        answered = client.quiet(*[request(Op.GETQ, b"hot")] * 100)
        assert len(answered) < 60 and all(f.status == 0 for f in answered), len(answered)
        # A quiet set is told that nothing was stored.
        told = client.quiet(*[request(Op.SETQ, b"hot", b"5", set_extras())] * 100)
        assert told and {f.status for f in told} == {St.NOT_STORED}


def test_quiet_gets_are_told_otherwise(hot_daemon):
    with enter(hot_daemon, "tmpfail") as client:
        client.quiet(request(Op.DELETEQ, b"hot"))
        told = client.quiet(*[request(Op.GETQ, b"hot")] * 100)
        assert len([f for f in told if f.status == St.ETMPFAIL]) > 40, len(told)


def test_order_is_kept_among_refusals(hot_daemon):
    """Refused and carried out, the replies come in the order of the requests."""
    with enter(hot_daemon, "tmpfail", features=(Feature.XERROR,)) as client:
        data, marks = b"", []
        for n in range(200):
            marks.append(client.opaque())
            data += request(Op.GET, b"hot" if n % 2 else b"cold%d" % n, opaque=marks[-1])
        client.send(data)
        frames = [client.recv() for _ in marks]
        assert [f.opaque for f in frames] == marks
        assert {f.status for f in frames[::2]} == {St.ENOENT}, "cold keys are not refused"
        assert St.HOT_KEY in {f.status for f in frames[1::2]}


def test_row_operations_are_refused(hot_daemon):
    with enter(hot_daemon, "tmpfail", features=(Feature.XERROR, Feature.JSON)) as client:
        rows = Rows(client, "t")
        for ask in (lambda: rows.table(T.GET, "hot"), lambda: rows.put("hot", a=1),
                    lambda: rows.ask("hot", "hot"), lambda: rows.start("hot", "hot"),
                    lambda: rows.hbase(H.GET, "hot", pb.HBaseRequest(read=read_of(["f"])))):
            reply = until_refused(lambda: ask().frame, is_status(St.HOT_KEY))
            body = mcbin.error_json(reply)["error"]
            assert body["limit"] == "kv_hotkey_throttle_threshold", body
        assert rows.table(T.GET, "cold").status == 0
        assert Rows(client, "other").table(T.GET, "hot").status == 0, "another table's row"
    with enter(hot_daemon, "degrade") as client:
        rows = Rows(client, "t")
        frame = until_refused(lambda: rows.table(T.GET, "hot").frame, lambda f: f.status != 0)
        assert frame.status == St.ETMPFAIL, show(frame)


def test_batch_refuses_items(hot_daemon):
    """A refused item has its status among the results; the others are carried out."""
    with enter(hot_daemon, "tmpfail", features=(Feature.XERROR,)) as client, \
            enter(hot_daemon, "tmpfail") as plain:
        for connection, status in ((client, St.HOT_KEY), (plain, St.ETMPFAIL)):
            rows = Rows(connection, "t")

            def refused_batch():
                rows.delete("b1")
                reply = rows.batch(item(T.INSERT, "b1", {"a": 1}), item(T.GET, "hot"),
                                   item(T.INSERT_OR_UPDATE, "b2", {"a": 2}))
                assert reply.status == 0, reply
                found = [i.status for i in reply.body.items]
                assert len(found) == 3 and found[0] == found[2] == 0, found
                assert rows.get("b1") == {"a": 1} and rows.get("b2") == {"a": 2}
                return reply.body.items[1] if found[1] else None
            one = poll(refused_batch, 10.0, what="a refused item")
            assert one.status == status, one
            assert b"tmpfail" in one.message


def test_atomic_batch_is_refused_as_a_whole(hot_daemon):
    with enter(hot_daemon, "tmpfail", features=(Feature.XERROR, Feature.JSON)) as client, \
            hot_daemon.client(15) as fast:
        fast.login("fast", "pw")
        assert fast.select("tmpfail").status == 0
        rows, truth = Rows(client, "t"), Rows(fast, "t")

        def refused_whole():
            truth.replace("hot", n=0)
            reply = rows.batch(item(T.INCREMENT, "hot", {"n": 1}),
                               item(T.INCREMENT, "hot", {"n": 1}), atomic=True)
            now = truth.get("hot")["n"]
            assert now == (2 if reply.status == 0 else 0), (reply, now)
            return reply if reply.status else None
        reply = poll(refused_whole, 10.0, what="a refused batch")
        assert reply.status == St.HOT_KEY
        assert mcbin.error_json(reply.frame)["error"]["type"] == "TABLE_HOTKEY_UPDATE"


def test_refusals_are_counted(hot_daemon):
    """By key and by tenant, under outcomes too."""
    with contextlib.closing(admin(hot_daemon)) as boss:
        rows = poll(lambda: (lambda found: found if len(found) == 2 else None)(
            [row for row in listed(boss, "tmpfail", 50) if row["REJECTED"] > 0]), 20.0,
            what="refusals of both keys")
        assert {(row["TABLE"], row["HOTKEY"]) for row in rows} == {("", "hot"), ("t", "hot")}
        found = details(boss, "tmpfail")
        assert found["hotkey_rejected"] > 0
        assert found["outcomes"]["hot_key"] > 0
        assert found["hotkey_would_reject"] == 0


def test_unthrottled_passes_and_counts(hot_daemon):
    with hot_daemon.client(15) as fast, contextlib.closing(admin(hot_daemon)) as boss:
        fast.login("fast", "pw")
        assert fast.select("busy").status == 0
        wait_listed(boss, "busy", 2, at_least=50)
        def burst():
            answers = fast.quiet(*[request(Op.GET, b"hot")] * 300)
            assert {f.status for f in answers} <= {0, St.ENOENT}
            rows = Rows(fast, "t")
            reply = rows.batch(*[item(T.GET, "hot")] * 300)
            assert reply.status == 0 and {i.status for i in reply.body.items} == {0}
        rows = rows_of_one_epoch(boss, "busy", burst)
        found = {(row["TYPE"], row["TABLE"], row["HOTKEY"]): row["HOTKEY_FREQ"] for row in rows}
        assert found["ALL", "", "hot"] >= 300 and found["QUERY", "t", "hot"] >= 300, found
