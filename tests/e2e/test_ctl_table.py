"""test_ctl_table - headgatectl table, hbase and hotkeys against the real server and against answers
written here; and the example of a Python client, as the manual shows it."""
# SPDX-License-Identifier: BSD-3-Clause

import itertools
import json
import os
import re
import subprocess
import sys

import pytest

import servers
import tablebin
from mcbin import Op, poll, scaled
from servers import FakeBackend, headgatectl
from tablebin import HBASE, TABLE, H, Rows, T, columns_of, pb

OK, REFUSED, USAGE, LOST = range(4)
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

_names = itertools.count(1)


@pytest.fixture(scope="module")
def daemon():
    with servers.Headgate() as server:
        yield server


@pytest.fixture
def name():
    return "t%d" % next(_names)


@pytest.fixture
def table(daemon, name):
    """run(operation, ...) for a table of the test's own; what was printed."""
    def run(operation, *args, code=OK, stdin=None, json_of=False):
        argv = ["table", operation, name, *args]
        done = daemon.ctl(*(["--json"] if json_of else []), *argv, check=False, stdin=stdin)
        assert done.returncode == code, done
        assert bool(done.stderr) == (code != OK), done
        return json.loads(done.stdout) if json_of else done.stdout if code == OK else done.stderr
    return run


@pytest.fixture
def hbase(daemon, name):
    def run(operation, *args, code=OK, stdin=None, json_of=False):
        argv = ["hbase", operation, name, *args]
        done = daemon.ctl(*(["--json"] if json_of else []), *argv, check=False, stdin=stdin)
        assert done.returncode == code, done
        assert bool(done.stderr) == (code != OK), done
        return json.loads(done.stdout) if json_of else done.stdout if code == OK else done.stderr
    return run


def words(item):
    """The name of a case: its options."""
    return " ".join(item) if isinstance(item, list) and item and isinstance(item[0], str) else ""


def lines(text):
    return [line.split() for line in text.splitlines()]


# ---- usage: nothing is sent ----

@pytest.mark.parametrize("args,names", [
    (["table"], "insert_or_update"), (["table", "frob"], "frob"), (["table", "get"], "a table"),
    (["table", "get", "t"], "a row"), (["table", "get", "", "r"], "1 to 100"),
    (["table", "get", "t" * 101, "r"], "1 to 100"), (["table", "get", "a\\x00b", "r"], "zero"),
    (["table", "get", "t", ""], "1 byte"), (["table", "get", "t", "r" * 249], "249"),
    (["table", "insert", "t", "r", "a"], "'a'"), (["table", "insert", "t", "r", "=x"], "'=x'"),
    (["table", "insert", "t", "r", "a:=x"], "'x'"), (["table", "insert", "t", "r", "a:="], "''"),
    (["table", "insert", "t", "r", "a:=9223372036854775808"], "9223372036854775808"),
    (["table", "insert", "t", "r", "a:=inf"], "inf"),
    (["table", "insert", "t", "r", "a@=/nonexistent"], "/nonexistent"),
    (["table", "increment", "t", "r"], "column"), (["table", "append", "t", "r"], "column"),
    (["table", "delete", "t", "r", "x"], "'x'"), (["table", "query", "t", "x"], "'x'"),
    (["table", "query_start", "t"], "query_start"),
    (["table", "get", "t", "r", "--limit", "3"], "--limit"),
    (["table", "query", "t", "--limit", "x"], "'x'"), (["table", "query", "t", "--limit", "0"], "0"),
    (["table", "query", "t", "--limit", "4294967296"], "4294967296"),
    (["table", "query", "t", "--limit", "1", "--limit", "2"], "twice"),
    (["table", "query", "t", "--where", "age"], "age"), (["table", "query", "t", "--where", "=3"], "=3"),
    (["table", "query", "t", *["--where", "a=1"] * 9], "at most 8"),
    (["table", "query", "t", "--start", "x"], "--start"),
    (["table", "batch", "t"], "no operation"), (["table", "batch", "t", "x"], "'x'"),
    (["status", "--limit", "3"], "--limit"),
    (["hbase"], "check_and_put"), (["hbase", "get", "t"], "a row"),
    (["hbase", "put", "t", "r"], "FAMILY:QUALIFIER"), (["hbase", "put", "t", "r", "x=1"], "x=1"),
    (["hbase", "put", "t", "r", "f:q"], "f:q"),
    (["hbase", "put", "t", "r", "f:q=1", "--ts", "soon"], "soon"),
    (["hbase", "increment", "t", "r", "f:q=x"], "'x'"), (["hbase", "increment", "t", "r"], "=N"),
    (["hbase", "delete", "t", "r", "--newest"], "--newest"),
    (["hbase", "delete", "t", "r", "f", "--newest"], "'f'"),
    (["hbase", "delete", "t", "r", "f:q", "--exact"], "--ts"),
    (["hbase", "delete", "t", "r", "f:q", "--newest", "--ts", "5"], "--newest"),
    (["hbase", "check_and_put", "t", "r", "f:q"], "missing"),
    (["hbase", "check_and_put", "t", "r", "f:q", "=="], "missing"),
    (["hbase", "check_and_put", "t", "r", "f:q", "==", "1", "f:q=2"], "OPERATOR"),
    (["hbase", "check_and_put", "t", "r", "f:q", "=", "1"], "FAMILY:QUALIFIER"),
    (["hbase", "check_and_put", "t", "r", "fq", "=", "1", "f:q=2"], "FAMILY:QUALIFIER"),
    (["hbase", "scan", "t", "--versions", "0"], "0"), (["hbase", "scan", "t", "--where", "q=1"], "q=1"),
    (["hbase", "hybrid", "t"], "no operation"), (["hbase", "scan_next", "t"], "scan_next"),
    (["hotkeys", "x"], "x"), (["hotkeys", "--type", "hot"], "hot"),
    (["hotkeys", "--tenant", ""], "1 to 100"), (["hotkeys", "--history", "--global"], "--global"),
], ids=lambda item: " ".join(item)[:50] if isinstance(item, list) else "")
def test_usage(args, names):
    done = headgatectl(*args, check=False, stdin="", server="127.0.0.1:1")
    assert (done.returncode, done.stdout) == (USAGE, ""), done
    assert names in done.stderr and done.stderr.startswith("headgatectl: "), done


@pytest.mark.parametrize("line,names", [
    ("{", "no JSON"), ("[]", "object"), ('{"row": "r"}', '"op"'), ('{"op": "get"}', '"row"'),
    ('{"op": "query", "row": "r"}', "query"), ('{"op": "get", "row": "r", "x": 1}', '"x"'),
    ('{"op": "insert", "row": "r", "columns": {"a": []}}', "'a'"),
    ('{"op": "insert", "row": "r", "columns": 5}', "columns"),
    ('{"op": "get", "row": "r", "select": [5]}', "select"),
    ('{"op": "get", "row": "r", "row": "s"}', "no JSON"),
])
def test_lines_of_a_batch_that_are_wrong(line, names):
    good = '{"op": "get", "row": "r"}\n\n'
    done = headgatectl("table", "batch", "t", check=False, stdin=good + line + "\n",
                       server="127.0.0.1:1")
    assert (done.returncode, done.stdout) == (USAGE, ""), done
    assert "line 3" in done.stderr and names in done.stderr, done


@pytest.mark.parametrize("line,names", [
    ('{"op": "scan", "row": "r"}', "scan"), ('{"op": "put", "row": "r", "cells": {"q": "x"}}', "'q'"),
    ('{"op": "put", "row": "r", "cells": {"f:q": 5}}', "'f:q'"),
    ('{"op": "increment", "row": "r", "counters": {"f:q": "x"}}', "'f:q'"),
    ('{"op": "get", "row": "r", "columns": [1]}', "columns"),
    ('{"op": "get", "row": "r", "versions": "x"}', "versions"),
    ('{"op": "get", "row": "r", "x": 1}', '"x"'),
])
def test_lines_of_hybrid_that_are_wrong(line, names):
    done = headgatectl("hbase", "hybrid", "t", check=False, stdin=line, server="127.0.0.1:1")
    assert (done.returncode, done.stdout) == (USAGE, ""), done
    assert "line 1" in done.stderr and names in done.stderr, done


def test_the_manual_has_every_option_and_operation():
    with open(os.path.join(ROOT, "doc", "headgatectl.1")) as page:
        manual = page.read()
    shown = headgatectl("--help").stdout
    options = re.findall(r"^  --([a-z-]+)", shown[shown.index("options of verbs"):], re.M)
    assert len(options) > 25
    for option in options:
        assert re.search(r"-%s\b" % option, manual), option
    for word in ([op.name.lower() for op in T if not op.name.startswith("QUERY_")] +
                 [op.name.lower() for op in H if not op.name.startswith("SCAN_")]):
        assert re.search(r"^\.It Cm (table|hbase) .*\b%s\b" % word, manual, re.M), word
        assert word in shown, word


# ---- table ----

def test_every_kind_of_value(daemon, table, name, tmp_path):
    data = bytes(range(256))
    (tmp_path / "data").write_bytes(data)
    given = ["text=a=b", "empty=", "int:=-42", "max:=9223372036854775807", "real:=1.5", "whole:=3.0",
             "small:=1e-300", "none:=null", "bin=\\x00\\xff\\x5cx41", "back=a\\b",
             "file@=%s/data" % tmp_path]
    assert table("insert", "r", *given) == "affected 1\n"
    with daemon.client() as client:
        assert Rows(client, name).get("r") == {
            "text": b"a=b", "empty": b"", "int": -42, "max": 9223372036854775807, "real": 1.5,
            "whole": 3.0, "small": 1e-300, "none": None, "bin": b"\x00\xff\\x41", "back": b"a\\b",
            "file": data}
    shown = {row[0]: row[1:] for row in lines(table("get", "r"))}
    assert shown["COLUMN"] == ["TYPE", "VALUE"]
    assert shown["int"] == ["integer", "-42"] and shown["none"] == ["null", "-"]
    assert shown["whole"] == ["real", "3.0"] and shown["small"] == ["real", "1e-300"]
    assert shown["bin"] == ["bytes", "\\x00\\xff\\x5cx41"] and shown["back"] == ["bytes", "a\\x5cb"]
    found = table("get", "r", "int", "real", "bin", "none", json_of=True)
    assert found == {"found": True, "columns": {"int": -42, "real": 1.5, "none": None,
                                                "bin": "\\x00\\xff\\x5cx41"}}
    assert isinstance(table("get", "r", "whole", json_of=True)["columns"]["whole"], float)


def test_what_is_shown_can_be_typed_again(daemon, table, name):
    row = "\\x00\\xffa\\x5cb"
    table("insert", row, "\\x01=\\x5c\\x5c")
    with daemon.client() as client:
        assert columns_of(Rows(client, name).table(T.GET, b"\x00\xffa\\b").body.entity) == {
            "\x01": b"\\\\"}
    [[shown, column, _, value]] = lines(table("query"))[1:]
    assert (shown, column, value) == (row, "\\x01", "\\x5c\\x5c")
    assert table("delete", shown) == "affected 1\n"


def test_every_operation_on_a_row(table):
    assert table("get", "r") == "no such row\n"
    assert table("get", "r", json_of=True) == {"found": False, "columns": None}
    assert table("update", "r", "a:=1") == "affected 0\n"
    assert table("delete", "r") == "affected 0\n"
    assert table("insert", "r", "a:=1", "s=x") == "affected 1\n"
    text = table("insert", "r", "a:=1", code=REFUSED)
    assert "0x02" in text and "table insert" in text and " r:" in text
    assert table("update", "r", "b:=2") == "affected 1\n"
    assert table("insert-or-update", "r", "c:=3") == "affected 1\n"
    assert lines(table("increment", "r", "a:=41"))[0::2] == [["affected", "1"], ["a", "integer", "42"]]
    assert table("append", "r", "s=yz", json_of=True) == {"affected": 1, "columns": {"s": "xyz"}}
    assert "0x06" in table("increment", "r", "s:=1", code=REFUSED)
    assert table("replace", "r", "z:=1", json_of=True) == {"affected": 2}
    assert table("get", "r", json_of=True)["columns"] == {"z": 1}
    assert table("delete", "r", json_of=True) == {"affected": 1}


def test_dashes_end_the_options(table):
    assert table("insert", "--", "-r", "-c:=1") == "affected 1\n"
    assert table("get", "--", "-r", json_of=True)["columns"] == {"-c": 1}


@pytest.fixture
def filled(table):
    items = "".join(json.dumps({"op": "insert", "row": "u%03d" % n,
                                "columns": {"n": n, "half": n / 2, "s": "t%d" % n}}) + "\n"
                    for n in range(250))
    items += json.dumps({"op": "insert", "row": "v", "columns": {"n": -1}}) + "\n"
    printed = table("batch", stdin=items)
    assert len(printed.splitlines()) == 251
    return table


def rows_of(found):
    return [row["row"] for row in found]


def test_a_query_brings_all_pages(filled):
    found = filled("query", json_of=True)
    assert rows_of(found) == ["u%03d" % n for n in range(250)] + ["v"]
    assert found[3] == {"row": "u003", "columns": {"half": 1.5, "n": 3, "s": "t3"}}
    shown = filled("query", "--select", "n")
    assert len(shown.splitlines()) == 252 and shown.split()[:4] == ["ROW", "COLUMN", "TYPE", "VALUE"]


@pytest.mark.parametrize("options,wanted", [
    (["--from", "u003", "--to", "u006"], [3, 4, 5, 6]),
    (["--from", "u003", "--to", "u006", "--exclusive-start"], [4, 5, 6]),
    (["--from", "u003", "--to", "u006", "--exclusive-end"], [3, 4, 5]),
    (["--limit", "3", "--page-rows", "2"], [0, 1, 2]), (["--offset", "248", "--limit", "2"], [248, 249]),
    (["--prefix", "u01", "--page-rows", "4"], list(range(10, 20))),
    (["--prefix", "u01", "--reverse"], list(range(19, 9, -1))),
    (["--prefix", "u01", "--from", "u015"], list(range(15, 20))),
    (["--reverse", "--limit", "2", "--to", "u100"], [100, 99]),
    (["--where", "n>=247"], [247, 248, 249]), (["--where", "n<2", "--where", "n!=-1"], [0, 1]),
    (["--where", "half=1.5"], [3]), (["--where", "s=t7"], [7]), (["--where", 's="t8"'], [8]),
    (["--where", "n>3", "--where", "n<=5"], [4, 5]), (["--where", "nothing=1"], []),
    (["--prefix", "u24", "--where", "n>247"], [248, 249]),
], ids=words)
def test_options_of_a_query(filled, options, wanted):
    found = filled("query", *options, json_of=True)
    if "n<2" in options:
        found = [row for row in found if row["row"] != "v"]
    assert rows_of(found) == ["u%03d" % n for n in wanted]


def test_columns_of_a_query(filled):
    [row] = filled("query", "--limit", "1", "--select", "n,s", json_of=True)
    assert row["columns"] == {"n": 0, "s": "t0"}
    [row] = filled("query", "--limit", "1", "--column-prefix", "h", json_of=True)
    assert row["columns"] == {"half": 0.0}
    assert filled("query", "--from", "w") == ""
    assert filled("query", "--from", "w", json_of=True) == []


def test_batch(daemon, name):
    items = [{"op": "insert", "row": "a\\x00", "columns": {"x": "b\\xff", "n": 1, "r": 2.0, "z": None}},
             {"op": "insert", "row": "a\\x00"}, {"op": "get", "row": "a\\x00", "select": ["x", "r"]},
             {"op": "increment", "row": "a\\x00", "columns": {"n": 1}, "return": True}]
    text = "\n".join(json.dumps(item) for item in items)
    done = daemon.ctl("table", "batch", name, stdin=text, check=False)
    assert done.returncode == REFUSED and "1 of 4" in done.stderr, done
    got = [json.loads(line) for line in done.stdout.splitlines()]
    assert got[0] == {"status": 0, "affected": 1}
    assert got[1]["status"] == 2 and got[1]["message"]
    assert got[2] == {"status": 0, "affected": 0, "columns": {"x": "b\\xff", "r": 2.0}}
    assert got[3] == {"status": 0, "affected": 1, "columns": {"n": 2}}
    done = daemon.ctl("--json", "table", "batch", name, stdin=text, check=False)
    assert len(json.loads(done.stdout)) == 4


def test_atomic_batch(daemon, name):
    items = '{"op": "insert", "row": "a", "columns": {"s": "x"}}\n' \
            '{"op": "increment", "row": "a", "columns": {"s": 1}}\n'
    done = daemon.ctl("table", "batch", name, "--atomic", stdin=items, check=False)
    assert done.returncode == REFUSED, done
    assert daemon.ctl("table", "get", name, "a").stdout == "no such row\n"


# ---- hbase ----

def test_every_operation_of_hbase(hbase):
    assert hbase("get", "r") == "no such row\n"
    assert hbase("get", "r", json_of=True) == {"cells": []}
    assert hbase("put", "r", "a:x=1", "a:y=2", "b:x=\\x00", "--ts", "10") == "affected 3\n"
    assert lines(hbase("get", "r")) == [["COLUMN", "TIMESTAMP", "VALUE"], ["a:x", "10", "1"],
                                        ["a:y", "10", "2"], ["b:x", "10", "\\x00"]]
    assert hbase("get", "r", "a:y", "b", json_of=True) == {"cells": [
        {"family": "a", "qualifier": "y", "timestamp": 10, "value": "2"},
        {"family": "b", "qualifier": "x", "timestamp": 10, "value": "\\x00"}]}
    assert hbase("get", "r", "--from-ts", "11") == "no such row\n"
    assert hbase("get", "r", "--to-ts", "10") == "no such row\n"
    assert hbase("get", "r", "--where", "a:x=2") == "no such row\n"
    assert len(lines(hbase("get", "r", "--where", "a:x=1", "--column-prefix", "x"))) == 3
    [shown] = lines(hbase("increment", "r", "a:n=258"))[1:]
    assert shown[0] == "a:n" and shown[2] == "\\x00" * 6 + "\\x01\\x02"
    assert hbase("increment", "r", "a:n=-1", json_of=True)["cells"][0]["value"].endswith("\\x01")
    assert "0x06" in hbase("increment", "r", "a:x=1", code=REFUSED)
    assert hbase("append", "r", "a:x=+", json_of=True)["cells"][0]["value"] == "1+"
    assert hbase("check_and_put", "r", "a:x", "=", "1+", "a:x=2") == "processed\n"
    assert hbase("check-and-put", "r", "a:x", "=", "1+", "a:x=3").startswith("not processed")
    assert hbase("check_and_put", "r", "a:new", "missing", "a:new=1", json_of=True) == {
        "affected": 1, "processed": True}
    assert hbase("check_and_put", "r", "a:new", "missing", "a:new=2", json_of=True) == {
        "affected": 0, "processed": False}
    assert hbase("check_and_delete", "r", "a:new", "present", "a:new") == "processed\n"
    assert hbase("delete", "r", "a:y", "--ts", "9") == "affected 0\n"
    assert hbase("delete", "r", "a:y", "--exact", "--ts", "10") == "affected 1\n"
    assert hbase("delete", "r", "a:x", "--newest") == "affected 1\n"
    assert hbase("delete", "r", "a", json_of=True) == {"affected": 1}
    assert hbase("delete", "r") == "affected 1\n"
    assert hbase("get", "r") == "no such row\n"


@pytest.fixture
def hfilled(hbase):
    items = "".join(json.dumps({"op": "put", "row": "u%03d" % n, "cells": {
        "f:n": str(n), "f:x": "x", "g:x": "y"}, "timestamp": n + 1}) + "\n" for n in range(230))
    hbase("hybrid", stdin=items)
    return hbase


@pytest.mark.parametrize("options,wanted", [
    ([], range(230)), (["--page-rows", "7"], range(230)), (["--limit", "3"], range(3)),
    (["--start", "u003", "--stop", "u006"], range(3, 6)),
    (["--start", "u003", "--stop", "u006", "--stop-inclusive", "--start-exclusive"], range(4, 7)),
    (["--reverse", "--limit", "2"], [229, 228]),
    (["--reverse", "--start", "u005", "--stop", "u003"], [5, 4]),
    (["--prefix", "u01"], range(10, 20)), (["--prefix", "u01", "--reverse"], range(19, 9, -1)),
    (["--prefix", "u01", "--start", "u015"], range(15, 20)),
    (["--where", "f:n=77"], [77]), (["--from-ts", "229"], [228, 229]), (["--to-ts", "3"], [0, 1]),
], ids=words)
def test_scan(hfilled, options, wanted):
    found = hfilled("scan", *options, json_of=True)
    assert rows_of(found) == ["u%03d" % n for n in wanted]


def test_columns_of_a_scan(hfilled):
    assert lines(hfilled("scan", "f:n", "g", "--limit", "1")) == [
        ["ROW", "COLUMN", "TIMESTAMP", "VALUE"], ["u000", "f:n", "1", "0"], ["u000", "g:x", "1", "y"]]
    found = hfilled("scan", "--batch", "2", "--limit", "1", json_of=True)
    assert [(len(part["cells"]), part["partial"]) for part in found] == [(2, True), (1, False)]


def test_hybrid(daemon, name):
    items = [{"op": "put", "row": "r", "cells": {"f:a\\x00": "v\\xff"}, "timestamp": 5},
             {"op": "get", "row": "r", "columns": ["f"], "versions": 2},
             {"op": "increment", "row": "r", "counters": {"f:n": 2}},
             {"op": "append", "row": "r", "cells": {"f:n": "x"}},
             {"op": "increment", "row": "r", "counters": {"f:n": 2}},
             {"op": "delete", "row": "r", "columns": ["f:n"]}, {"op": "delete", "row": "r"}]
    text = "\n".join(json.dumps(item) for item in items)
    done = daemon.ctl("hbase", "hybrid", name, stdin=text, check=False)
    assert done.returncode == REFUSED and "1 of 7" in done.stderr, done
    got = [json.loads(line) for line in done.stdout.splitlines()]
    assert [item["status"] for item in got] == [0, 0, 0, 0, 6, 0, 0]
    assert [item["affected"] for item in got] == [1, 0, 1, 1, 0, 1, 1]
    assert got[1]["cells"] == [
        {"family": "f", "qualifier": "a\\x00", "timestamp": 5, "value": "v\\xff"}]
    assert daemon.ctl("hbase", "get", name, "r").stdout == "no such row\n"


def test_versions():
    config = {"tenants": [{"name": "default", "families": [
        {"table": "t", "name": "f", "max_versions": 3}]}]}
    with servers.Headgate(config) as daemon:
        for ts in ("1", "2", "3", "4"):
            daemon.ctl("hbase", "put", "t", "r", "f:q=v" + ts, "--ts", ts)
        shown = lines(daemon.ctl("hbase", "get", "t", "r", "--versions", "9").stdout)
        assert [row[1:] for row in shown[1:]] == [["4", "v4"], ["3", "v3"], ["2", "v2"]]
        daemon.ctl("hbase", "delete", "t", "r", "f:q", "--newest")
        assert lines(daemon.ctl("hbase", "get", "t", "r").stdout)[1][2] == "v3"
        daemon.ctl("hbase", "delete", "t", "r", "f:q", "--ts", "2")
        assert len(lines(daemon.ctl("hbase", "get", "t", "r", "--versions", "9").stdout)) == 2


# ---- what the server says ----

def test_memcached_has_no_ranges(farm):
    config = {"upstreams": [{"name": "mc", "kind": "memcached",
                             "servers": [{"address": farm.servers(1)[0].where}]}],
              "tenants": [{"name": "default", "upstream": "mc"}]}
    with servers.Headgate(config) as daemon:
        daemon.ctl("table", "insert_or_update", "ctl", "r", "a:=1")
        done = daemon.ctl("table", "query", "ctl", check=False)
        assert done.returncode == REFUSED and "0x83" in done.stderr and not done.stdout, done
        done = daemon.ctl("--json", "table", "query", "ctl", "--from", "r", "--to", "r")
        assert rows_of(json.loads(done.stdout)) == ["r"]
        done = daemon.ctl("hbase", "scan", "ctl", check=False)
        assert done.returncode == REFUSED and "0x83" in done.stderr, done


def answering(reply):
    """A server whose every reply to a row operation is these fields."""
    def handle(connection, frame):
        if frame.opcode in (TABLE, HBASE):
            connection.reply(frame, **reply)
        else:
            connection.reply(frame)
    return FakeBackend(handle)


@pytest.mark.parametrize("reply", [
    {}, {"extras": b"\x00" * 7}, {"extras": b"\x05" + b"\x00" * 7},
    {"extras": b"\x00" * 8, "value": b"\xff\xff"}, {"extras": b"\x00" * 8, "value": b"\x0a\x05a"},
], ids=["no extras", "7 bytes", "another operation", "no protobuf", "cut"])
def test_answers_that_are_none(reply):
    fake = answering(reply)
    try:
        done = headgatectl("table", "get", "t", "r", server=fake.where, check=False)
        assert (done.returncode, done.stdout) == (LOST, ""), done
        assert "table.proto" in done.stderr and "table get t r" in done.stderr, done
    finally:
        fake.stop()


def test_what_is_sent():
    """The extras, the key, and only the fields that the operation reads."""
    fake = answering({"extras": bytes([T.INCREMENT]) + b"\x00" * 7})
    try:
        headgatectl("table", "increment", "users", "alice", "n:=1", server=fake.where)
        [frame] = [f for _, _, f in fake.seen if f.opcode == TABLE]
        assert tablebin.EXTRAS.unpack(frame.extras) == (T.INCREMENT, 0, 5, 0)
        assert frame.key == b"usersalice"
        request = pb.TableRequest.FromString(frame.value)
        assert request.return_entity and columns_of(request.entity) == {"n": 1}
    finally:
        fake.stop()


# ---- hot keys ----

def hot(tenant, table, key, kind, freq, **more):
    return dict({"TENANT": tenant, "TABLE": table, "SVR_IP": "10.0.0.1", "SVR_PORT": 11211,
                 "HOTKEY": key, "HOTKEY_TYPE": "TABLE_HOTKEY_" + kind, "HOTKEY_FREQ": freq,
                 "ERROR": 0, "THROTTLE_PERCENT": 0, "REJECTED": 0}, **more)


HOT_ROWS = [hot("shop", "", "k2", "QUERY", 5), hot("shop", "users", "a\\x00b", "ALL", 7, ERROR=2),
            hot("shop", "", "k1", "QUERY", 50, THROTTLE_PERCENT=30, REJECTED=12),
            hot("ledger", "", "k1", "ALL", 3), hot("shop", "", "k1", "ALL", 50),
            hot("shop", "", "k3", "UPDATE", 1), hot("shop", "", "k4", "DELETE", 1),
            hot("shop", "", "k5", "INSERT", 1)]


@pytest.fixture
def hot_server():
    groups = []

    def handle(connection, frame):
        if frame.opcode != Op.STAT:
            connection.reply(frame)
            return
        groups.append(frame.key.decode())
        rows = HOT_ROWS
        if frame.key.startswith(b"hotkeys history"):
            rows = [dict(row, EPOCH=epoch, END=1000 * epoch) for epoch in (8, 7)
                    for row in HOT_ROWS[:2]]
        for number, row in enumerate(rows):
            connection.reply(frame, key="hotkey:%d" % number, value=json.dumps(row))
        connection.reply(frame)

    fake = FakeBackend(handle)
    fake.groups = groups
    yield fake
    fake.stop()


def test_hot_keys_are_sorted(hot_server):
    done = headgatectl("hotkeys", server=hot_server.where)
    shown = done.stdout.splitlines()
    assert shown[0].split() == ["TENANT", "TABLE", "SVR_IP", "SVR_PORT", "HOTKEY", "HOTKEY_TYPE",
                                "HOTKEY_FREQ", "ERROR", "THROTTLE_PERCENT", "REJECTED"]
    found = json.loads(headgatectl("--json", "hotkeys", server=hot_server.where).stdout)
    assert [(r["TENANT"], r["HOTKEY_TYPE"][13:], r["HOTKEY_FREQ"]) for r in found] == [
        ("ledger", "ALL", 3), ("shop", "ALL", 50), ("shop", "ALL", 7), ("shop", "INSERT", 1),
        ("shop", "DELETE", 1), ("shop", "UPDATE", 1), ("shop", "QUERY", 50), ("shop", "QUERY", 5)]
    assert "a\\x00b" in shown[3] and "a\\x5cx00b" not in done.stdout
    assert hot_server.groups == ["hotkeys", "hotkeys"]
    # columns are aligned: numbers end where their heading ends
    end = shown[0].index("HOTKEY_FREQ") + len("HOTKEY_FREQ")
    assert [line[:end].split()[-1] for line in shown[1:]] == ["3", "50", "7", "1", "1", "1", "50", "5"]


@pytest.mark.parametrize("options,group,count", [
    (["--type", "query"], "hotkeys", 2), (["--type", "ALL"], "hotkeys", 3),
    (["--type", "TABLE_HOTKEY_INSERT"], "hotkeys", 1), (["--tenant", "ledger"], "hotkeys ledger", 1),
    (["--tenant", "shop", "--type", "all"], "hotkeys shop", 2), (["--global"], "hotkeys global", 8),
    (["--history"], "hotkeys history", 4),
    (["--history", "--tenant", "shop", "--type", "query"], "hotkeys history shop", 2)], ids=words)
def test_options_of_hot_keys(hot_server, options, group, count):
    found = json.loads(headgatectl("--json", "hotkeys", *options, server=hot_server.where).stdout)
    assert hot_server.groups == [group] and len(found) == count
    if "--history" in options:
        assert [row["EPOCH"] for row in found] == sorted(row["EPOCH"] for row in found)
        shown = headgatectl("hotkeys", *options, server=hot_server.where).stdout
        assert shown.split()[:2] == ["EPOCH", "END"]


def test_the_hot_key_of_a_real_server(daemon, name):
    """An epoch later a key that was read often leads its type, under its table."""
    with daemon.client(timeout=10) as client:
        rows = Rows(client, name)
        rows.insert("hot\x00", a=1)

        def leads():
            for _ in range(50):
                rows.get("hot\x00")
            found = json.loads(daemon.ctl("--json", "hotkeys", "--type", "query").stdout)
            return [row for row in found if row["TABLE"] == name and row["HOTKEY_FREQ"] >= 50]

        [row] = poll(leads, timeout=10, what="hot key listed")
        assert row["HOTKEY"] == "hot\\x00" and row["TENANT"] == "default"
        assert row["SVR_PORT"] == daemon.port and row["HOTKEY_TYPE"] == "TABLE_HOTKEY_QUERY"
        history = json.loads(daemon.ctl("--json", "hotkeys", "--history").stdout)
        assert any(row["HOTKEY"] == "hot\\x00" and "EPOCH" in row and "END" in row
                   for row in history)


# ---- the example of the manual ----

def run_example(where, *more):
    script = os.path.join(ROOT, "doc", "examples", "table_client.py")
    generated = os.path.dirname(pb.__file__)
    env = dict(os.environ, PYTHONPATH=generated, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([sys.executable, script, where, *more], capture_output=True, text=True,
                          timeout=scaled(30), env=env)
    assert done.returncode == 0, done
    return done.stdout


def test_the_example(daemon):
    """It says the same whenever it is run: it cleans up behind itself or counts on."""
    wanted = ["inserted: 1", "inserted again: status 0x02", "incremented: visits=42",
              "got: name=b'Alice'", "got nobody: False", "found: alice name=b'Alice', visits=42",
              "checked and put: True", "checked and put: False", "counted by 5: True",
              "cell: cf:state = done"]
    for _ in range(2):
        shown = run_example(daemon.where).splitlines()
        assert [line.rstrip(":") for line in shown] == wanted
    assert run_example(daemon.where, "default").splitlines()[0] == "inserted: 1"


def test_the_example_on_memcached(farm):
    config = {"upstreams": [{"name": "mc", "kind": "memcached",
                             "servers": [{"address": farm.servers(1)[0].where}]}],
              "tenants": [{"name": "default", "upstream": "mc"}]}
    with servers.Headgate(config) as daemon:
        assert "found: alice" in run_example(daemon.where)
