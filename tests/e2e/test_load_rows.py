"""test_load_rows - headgate-load's operations of TableAPI and HBase, its key that turns hot, and its
counts by intervals, against the real server and against servers that answer wrongly"""
# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import struct
import subprocess
import time

import pytest

import servers
from mcbin import scaled
from servers import BUILD, FakeBackend
from tablebin import EXTRAS, H, Rows, T, pb

LOAD = os.path.join(BUILD, "headgate-load")


def load(where, *args, code=0):
    """The report, and what was on standard error."""
    argv = [LOAD, "-s", where, "-c", "4", "--interval", "0", "--json", *args]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode == code, (argv, done)
    assert "Sanitizer" not in done.stderr, done.stderr
    return (json.loads(done.stdout) if done.stdout else None), done.stderr


@pytest.fixture(scope="module")
def daemon():
    with servers.Headgate({"threads": 2}) as server:
        yield server


@pytest.mark.parametrize("args,names", [
    (["--mix", "table_get=1"], "--table"), (["--mix", "hbase_get=1", "--table", "t"], "--hbase"),
    (["--table", "t" * 101], "100"), (["--table", "t", "--key-bytes", "249"], "249"),
    (["--mix", "table_batch=1", "--table", "t"], "table_batch"),
    (["--table", "t", "--protocol", "text"], "text"),
    (["--hot-rate", "10", "--hot-key", "100", "--keys", "100"], "0 to 99"),
    (["--hot-rate", "10", "--hot-at", "5", "--hot-until", "5"], "hot-until"),
    (["--hot-rate", "10", "--hot-at", "3", "-t", "2"], "hot-at"),
    (["--hot-rate", "10", "--hot-op", "frob"], "frob"), (["--hot-rate", "x"], "'x'"),
    (["--hot-rate", "10", "--hot-op", "table_get"], "--table"),
    (["--hot-rate", "10", "--hot-op", "touch", "--protocol", "text"], "text"),
    (["--interval-ms", "0.5"], "0.5"), (["--interval-ms", "3600001"], "3600000"),
], ids=lambda x: " ".join(x)[:40] if isinstance(x, list) else "")
def test_usage(args, names):
    _, said = load("127.0.0.1:1", *args, code=2)
    assert names in said and said.startswith("headgate-load: "), said


# ---- operations on rows ----

def test_what_a_load_of_tables_stores(daemon):
    """Every row that --fill stored is there, and its value is that of the classic key."""
    report, _ = load(daemon.where, "--table", "fill", "--keys", "300", "--fill", "-n", "600",
                     "--value-bytes", "0-2000")
    assert report["total"]["wrong"] == 0 and report["total"]["missed"] == 0
    load(daemon.where, "--keys", "300", "--fill", "-n", "0", "--value-bytes", "0-2000")
    with daemon.client() as client:
        rows = Rows(client, "fill")
        for n in (0, 1, 150, 299):
            key = "k%015d" % n
            assert rows.get(key) == {"v": client.get(key).value}
        assert len(rows.query(select=["nothing"])) in (0, 300)


@pytest.mark.parametrize("mix,names", [
    ("table_get=40,table_insert=10,table_delete=10,table_update=10,table_insert_or_update=10,"
     "table_replace=10,table_increment=10", 7),
    ("hbase_get=40,hbase_put=20,hbase_delete=20,hbase_increment=20", 4),
    ("get=10,set=10,append=10,incr=10,table_get=10,table_increment=10,hbase_get=10,hbase_put=10", 8),
])
def test_mixes_of_rows(daemon, mix, names):
    """Nothing is wrong; each operation was done, and what can miss has missed."""
    report, said = load(daemon.where, "--table", "mix", "--hbase", "mix", "--mix", mix, "--keys", "50",
                        "--fill", "-n", "20000", "-p", "8", "--value-bytes", "0-300")
    total = report["total"]
    assert (total["wrong"], total["refused"], total["operations"]) == (0, 0, 20000), (total, said)
    assert len([op for op, n in total["by_operation"].items() if n["done"] > 0
                and op != "start"]) == names
    for op, n in total["by_operation"].items():
        can_miss = op in ("table_get", "table_insert", "table_delete", "table_update", "hbase_get",
                          "hbase_delete")
        if "delete" in mix and can_miss:
            assert n["missed"] > 0, (op, n)
        if not can_miss:
            assert n["missed"] == 0 or op == "append", (op, n)


def test_counters_count_what_was_done(daemon):
    report, _ = load(daemon.where, "--table", "count", "--hbase", "count", "--keys", "3", "-n", "3000",
                     "--mix", "table_increment=1,hbase_increment=1", "--threads", "2", "-p", "4")
    done = {op: n["done"] for op, n in report["total"]["by_operation"].items()}
    with daemon.client() as client:
        rows = Rows(client, "count")
        counted = sum((rows.get("c%015d" % n) or {"n": 0})["n"] for n in range(3))
        assert counted == done["table_increment"]
        counted = sum(struct.unpack(">q", rows.hget("i%015d" % n)[0][2])[0] for n in range(3))
        assert counted == done["hbase_increment"]
    assert sum(done.values()) == 3000


def test_rows_without_a_mix(daemon):
    report, _ = load(daemon.where, "--hbase", "h", "-n", "200", "--fill", "--keys", "20")
    assert set(report["total"]["by_operation"]) == {"hbase_get", "hbase_put"}
    report, _ = load(daemon.where, "--table", "t", "-n", "200", "--fill", "--keys", "20")
    assert set(report["total"]["by_operation"]) == {"table_get", "table_insert_or_update"}


# ---- servers that answer wrongly ----

def entity(**columns):
    made = pb.Entity()
    for name, value in columns.items():
        column = made.columns.add(name=name.encode())
        if value is not None:
            setattr(column.value, "integer" if isinstance(value, int) else "bytes", value)
    return made


def extras(operation, affected=0):
    return EXTRAS.pack(operation, 0, affected, 0)


@pytest.mark.parametrize("op,answer,words", [
    ("table_get", {"extras": extras(T.GET), "value": b"\xff"}, "no reply"),
    ("table_get", {"extras": extras(T.GET), "value": pb.TableReply(
        entity=entity(v=b"x")).SerializeToString()}, "not the row"),
    ("table_get", {"extras": extras(T.GET), "value": pb.TableReply(
        entity=entity()).SerializeToString()}, "not the row"),
    ("table_get", {"extras": extras(T.GET, 1)}, "affected 1"),
    ("table_get", {"extras": extras(T.DELETE)}, "operation 2"),
    ("table_get", {}, "extras"), ("table_get", {"extras": b"1234"}, "extras"),
    ("table_get", {"extras": extras(T.GET), "key": b"k"}, "key"),
    ("table_get", {"status": 0x01, "value": "no"}, "0x01"),
    ("table_get", {"status": 0x02, "value": "no"}, "0x02"),
    ("table_insert_or_update", {"extras": extras(T.INSERT_OR_UPDATE)}, "affected 0"),
    ("table_insert_or_update", {"extras": extras(T.INSERT_OR_UPDATE, 1), "value": pb.TableReply(
        entity=entity(v=b"x")).SerializeToString()}, "no reply"),
    ("table_replace", {"extras": extras(T.REPLACE, 3)}, "affected 3"),
    ("table_delete", {"extras": extras(T.DELETE, 2)}, "affected 2"),
    ("table_increment", {"extras": extras(T.INCREMENT, 1)}, "no reply"),
    ("table_increment", {"extras": extras(T.INCREMENT, 1), "value": pb.TableReply(
        entity=entity(n=b"1")).SerializeToString()}, "not the row"),
    ("table_increment", {"status": 0x06, "value": "no"}, "0x06"),
    ("hbase_get", {"extras": extras(H.GET), "value": pb.HBaseReply(
        cells=[pb.Cell(family=b"f", qualifier=b"v", value=b"x")]).SerializeToString()}, "not the row"),
    ("hbase_put", {"extras": extras(H.PUT, 0)}, "affected 0"),
    ("hbase_increment", {"extras": extras(H.INCREMENT, 1), "value": pb.HBaseReply(
        cells=[pb.Cell(family=b"f", qualifier=b"n", value=b"1234567")]).SerializeToString()},
     "not the row"),
])
def test_wrong_replies(op, answer, words):
    fake = FakeBackend(lambda connection, frame: connection.reply(frame, **answer))
    try:
        report, said = load(fake.where, "--table", "t", "--hbase", "t", "--mix", op + "=1", "-n", "8",
                            code=1)
        assert report["total"]["wrong"] == 8
        assert "wrong reply" in said and op in said and words in said, said
    finally:
        fake.stop()


def test_refusals_are_not_wrong():
    fake = FakeBackend(lambda connection, frame: connection.reply(frame, status=0x86, value="later"))
    try:
        report, _ = load(fake.where, "--table", "t", "-n", "8", "--interval-ms", "1000")
        assert (report["total"]["wrong"], report["total"]["refused"]) == (0, 8)
        assert sum(i["other"]["statuses"].get("0x86", 0) for i in report["total"]["intervals"]) == 8
    finally:
        fake.stop()


# ---- a key that turns hot, and intervals ----

def sums(intervals, group, field):
    return sum(interval[group][field] for interval in intervals)


def assert_late(intervals, field, measured):
    """Intervals have all that was sent, also what was answered after the measured part: at most one
    request of each connection."""
    assert 0 <= sums(intervals, "hot", field) + sums(intervals, "other", field) - measured <= 4


@pytest.mark.alone
def test_a_key_turns_hot_and_cools(daemon):
    """At its second and until its second, at its rate, with everything counted once."""
    before = time.time() * 1000
    report, _ = load(daemon.where, "-t", "3", "--keys", "100", "--fill", "--rate", "400", "--zipf", "0",
                     "--hot-rate", "600", "--hot-key", "99", "--hot-at", "1", "--hot-until", "2",
                     "--interval-ms", "100", "--threads", "2")
    total = report["total"]
    intervals = total["intervals"]
    start = report["start_ms"]
    assert before - 1 <= start <= time.time() * 1000
    assert total["interval_ms"] == 100 and all(i["t"] % 100 == 0 for i in intervals)
    assert [i["t"] for i in intervals] == list(range(intervals[0]["t"], intervals[-1]["t"] + 1, 100))
    assert intervals[0]["t"] <= start < intervals[0]["t"] + 200
    # the hot key is read by the others too, one time in a hundred
    quiet = [i for i in intervals if i["t"] + 100 <= start + 1000 or i["t"] >= start + 2100]
    loud = [i for i in intervals if start + 1000 <= i["t"] and i["t"] + 100 <= start + 2000]
    assert sums(quiet, "hot", "sent") < 40
    rate = sums(loud, "hot", "sent") / (len(loud) / 10)
    assert 400 < rate <= 640, rate
    assert_late(intervals, "ok", total["operations"])
    for group in ("hot", "other"):
        assert sums(intervals, group, "sent") == sums(intervals, group, "ok") == \
            sum(i[group]["statuses"].get("0x00", 0) for i in intervals)
        assert sums(intervals, group, "refused") == sums(intervals, group, "missed") == 0
    [tenant] = report["tenants"]
    assert tenant["hot"] == {"key": "k000000000000099", "operation": "get", "rate": 600, "at": 1,
                             "until": 2}
    assert tenant["intervals"] == intervals


@pytest.mark.parametrize("op,space", [("table_increment", "c"), ("hbase_put", "h"), ("touch", "k")])
def test_what_is_done_to_the_hot_key(daemon, op, space):
    report, _ = load(daemon.where, "-n", "300", "--keys", "100", "--fill", "--rate", "100",
                     "--table", "hot", "--hbase", "hot", "--mix", "get=1,table_get=1,hbase_get=1",
                     "--hot-rate", "500", "--hot-key", "7", "--hot-op", op, "--interval-ms", "1000")
    total = report["total"]
    assert total["wrong"] == 0 and total["by_operation"][op]["done"] > 50
    hot = sums(total["intervals"], "hot", "ok")
    assert report["tenants"][0]["hot"]["key"] == space + "%015d" % 7
    assert hot >= total["by_operation"][op]["done"]


def test_operations_bound_the_hot_key_too(daemon):
    report, _ = load(daemon.where, "-n", "500", "--keys", "10", "--hot-rate", "100000",
                     "--hot-key", "9", "--interval-ms", "60000")
    assert report["total"]["operations"] == 500
    total = report["total"]["intervals"]
    assert sums(total, "hot", "sent") + sums(total, "other", "sent") == 500


def test_tenants_have_series_of_their_own(daemon):
    report, _ = load(daemon.where, "-t", "0.5", "--interval-ms", "100",
                     "--tenant", "name=a,rate=200,hot-rate=200,hot-key=5,key-prefix=a-", "--tenant",
                     "name=b,rate=100,key-prefix=b-")
    a, b = report["tenants"]
    assert sums(a["intervals"], "hot", "sent") > 0 and sums(b["intervals"], "hot", "sent") == 0
    assert "hot" in a and "hot" not in b
    for group in ("hot", "other"):
        assert sums(report["total"]["intervals"], group, "sent") == \
            sums(a["intervals"], group, "sent") + sums(b["intervals"], group, "sent")


def test_without_intervals_there_is_no_list(daemon):
    report, _ = load(daemon.where, "-n", "10")
    assert "intervals" not in report["total"] and "hot" not in report["tenants"][0]


def test_text_counts_by_intervals_too(farm):
    """The text protocol goes to memcached itself."""
    report, _ = load(farm.servers(1)[0].where, "--protocol", "text", "-n", "200", "--rate", "300",
                     "--keys", "50", "--hot-rate", "100", "--hot-key", "3", "--interval-ms", "100",
                     "--fill")
    total = report["total"]
    assert sums(total["intervals"], "hot", "ok") > 10
    assert_late(total["intervals"], "ok", total["operations"])


def test_refused_ones_are_told_apart():
    """A server that refuses the hot key and nothing else: the counts say so."""
    def handle(connection, frame):
        hot = frame.key.endswith(b"99")
        if hot:
            connection.reply(frame, status=0x86, value="hot key")
        else:
            FakeBackend.store(connection, frame)

    fake = FakeBackend(handle)
    try:
        report, _ = load(fake.where, "-n", "240", "--keys", "100", "--rate", "200", "--zipf", "0",
                         "--hot-rate", "200", "--hot-key", "99", "--interval-ms", "100")
        intervals = report["total"]["intervals"]
        assert sums(intervals, "hot", "ok") == 0 and sums(intervals, "hot", "refused") > 20
        assert sums(intervals, "other", "refused") == 0 and sums(intervals, "other", "ok") > 20
        assert {s for i in intervals for s in i["hot"]["statuses"]} == {"0x86"}
        assert_late(intervals, "refused", report["total"]["refused"])
    finally:
        fake.stop()
