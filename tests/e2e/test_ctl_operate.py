"""test_ctl_operate - headgatectl's check, reload, ring-diff and drain: what they make of a server's
answers (one written here), and the real server; help, and exit codes."""
# SPDX-License-Identifier: BSD-3-Clause

import json
import re
import subprocess
import time

import pytest

from mcbin import Op, poll, request, scaled
from servers import ADMIN, HEADGATECTL, FakeBackend, Headgate, answers, free_port, headgatectl, user_row
from test_ctl_unit import Server, rows

OK, REFUSED, USAGE, LOST, LOGIN = range(5)

BODY = {
    "changes": [
        {"option": "tenant.shop.hard_limit", "before": "100", "after": "unlimited", "at_run_time": True},
        {"option": "threads", "before": 1, "after": 2, "at_run_time": False},
        {"option": "tenant.\x1b[2J", "before": None, "after": "caf\u00e9", "at_run_time": True},
        {"option": "tenant.shop.key_prefix", "before": "", "after": "shop:", "at_run_time": True}],
    "warnings": ["two tenants share \x07 a prefix"],
    "rings": [{"upstream": "cache", "keys": 100000, "moved": 24987, "percent": 24.987,
               "servers": [{"server": "10.0.0.1:11211", "before_percent": 50.0, "after_percent": 33.4},
                           {"server": "10.0.0.3:11211", "before_percent": 0, "after_percent": 66.6}]},
              {"upstream": "still", "keys": 100000, "moved": 0, "percent": 0.0, "servers": []}]}

SHOWN = """tenant.shop.hard_limit: 100 -> unlimited
threads: 1 -> 2 (at the next start)
tenant.\\x1b[2J: - -> caf\\xc3\\xa9
tenant.shop.key_prefix: "" -> shop:
upstream cache: 24.99 % of the keys move (24987 of 100000)
warning: two tenants share \\x07 a prefix
"""

RINGS = """upstream cache: 24.99 % of the keys move (24987 of 100000)
SERVER          BEFORE %  AFTER %
10.0.0.1:11211     50.00    33.40
10.0.0.3:11211      0.00    66.60

upstream still: 0.00 % of the keys move (0 of 100000)
SERVER  BEFORE %  AFTER %
"""


def answering(body):
    def answer(frame):
        return [{"value": body if isinstance(body, (str, bytes)) else json.dumps(body)}]
    return Server({Op.CONFIG_VALIDATE: answer, Op.CONFIG_RELOAD: answer})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "new.yaml"
    path.write_text("threads: 2\n")
    return str(path)


def test_differences(file):
    with answering(BODY) as server:
        for args in (["check", file], ["reload"]):
            done = server.run(*args)
            assert (done.returncode, done.stdout, done.stderr) == (OK, SHOWN, ""), done
            done = server.run("--json", *args)
            assert done.returncode == OK and json.loads(done.stdout) == BODY, done
        done = server.run("ring-diff", file)
        assert (done.returncode, done.stdout, done.stderr) == (OK, RINGS, ""), done
        assert json.loads(server.run("--json", "ring-diff", file).stdout) == BODY["rings"]
        assert [frame.value for frame in server.sent if frame.opcode == Op.CONFIG_VALIDATE] == \
            [b"threads: 2\n"] * 4


def test_an_older_server(file):
    """One that answers nothing has no differences to show."""
    with answering("") as server:
        for args in (["check", file], ["reload"]):
            done = server.run(*args)
            assert (done.returncode, done.stdout, done.stderr) == (OK, "", ""), done
            assert json.loads(server.run("--json", *args).stdout) == {}
        done = server.run("ring-diff", file)
        assert done.returncode == LOST and "does not say" in done.stderr and not done.stdout, done


@pytest.mark.parametrize("body", [
    "nonsense", "[1]", '"text"', "{", b"\xff\x00", {"changes": 7, "rings": 7, "warnings": {}},
    {"changes": [7, None, {"option": []}], "warnings": [None, 7], "rings": [7, {"servers": [7]}]},
    {"rings": [{"percent": "x", "moved": -1, "keys": "y", "servers": {"a": 1}}]}, {}])
def test_odd_answers(body, file):
    """Whatever a server says, nothing crashes, and an exit code is one of those documented."""
    with answering(body) as server:
        for args in (["check", file], ["reload"], ["ring-diff", file]):
            for more in ([], ["--json"]):
                done = server.run(*more, *args)
                assert done.returncode in (OK, LOST), done
                assert (done.returncode == OK) == (done.stderr == ""), done


def test_no_upstream_has_a_ring(file):
    with answering({"rings": []}) as server:
        done = server.run("ring-diff", file)
        assert (done.returncode, done.stdout) == (OK, "no key moves\n"), done


def test_refusals(file):
    refuse = {op: lambda frame: [{"status": 0x04, "value": "line 1: no"}]
              for op in (Op.CONFIG_VALIDATE, Op.CONFIG_RELOAD, Op.SET_PARAM)}
    with Server(refuse) as server:
        for args in (["check", file], ["reload"], ["ring-diff", file], ["drain"], ["pause", "shop"]):
            done = server.run(*args)
            assert done.returncode == REFUSED and "line 1: no" in done.stderr, done
            assert not done.stdout


@pytest.mark.parametrize("args", [
    ["ring-diff"], ["ring-diff", "a", "b"], ["ring-diff", "/nonexistent"], ["drain", "now"],
    ["reload", "--wait"], ["help", "a", "b"], ["help", "nonsense"], ["nonsense", "--help"]])
def test_usage(args):
    done = headgatectl(*args, check=False)
    assert done.returncode == USAGE and done.stderr.startswith("headgatectl: ") and not done.stdout


def test_help():
    everything = headgatectl("help").stdout
    assert everything == headgatectl("--help").stdout
    verbs = re.findall(r"^  ([a-z-]+)\b", everything[everything.index("\nverbs:"):
                                                     everything.index("\noptions of verbs:")], re.M)
    assert {"top", "ring-diff", "drain", "pause", "resume", "disable", "help"} <= set(verbs)
    for verb in verbs:
        one = headgatectl("help", verb).stdout
        assert one.startswith("usage: headgatectl [OPTION...] " + verb) and "exit status" in one
        assert headgatectl(verb, "--help").stdout == one
    assert "--wait" in headgatectl("help", "drain").stdout
    assert "--wait" not in headgatectl("help", "top").stdout
    assert "--atomic" in headgatectl("help", "table").stdout


# ---- drain ----

def test_drain_is_sent():
    with Server() as server:
        assert server.run("drain").returncode == OK
        assert [(f.opcode, f.key, f.value) for f in server.sent] == \
            [(Op.SET_PARAM, b"server.drain", b"true")]
        assert json.loads(server.run("--json", "drain").stdout) == {"drain": True, "gone": False}


def test_drain_waits():
    """Until nobody answers at the address any more."""
    with Headgate() as daemon, daemon.client() as client:
        client.noop()
        done = daemon.ctl("--json", "drain", "--wait")
        assert json.loads(done.stdout) == {"drain": True, "gone": True}
        assert not daemon.process.alive()
        assert daemon.terminate() == 0


def test_drain_waits_for_what_is_under_way():
    """A request at a slow server is answered first."""
    held = []
    store = FakeBackend(lambda connection, frame: held.append((connection, frame)))
    config = {"upstreams": [{"name": "far", "kind": "memcached", "servers": [{"address": store.where}],
                             "backend_timeout_ms": 30000}], "request_deadline_ms": 30000}
    try:
        with Headgate(config) as daemon, daemon.client() as client:
            opaque = client.opaque()
            client.send(request(Op.GET, b"key", opaque=opaque))
            poll(lambda: held, what="the store has it")
            wait = subprocess.Popen([HEADGATECTL, "-s", daemon.where, "drain", "--wait"])
            poll(lambda: not answers(daemon.address), what="nobody is accepted any more")
            time.sleep(4 * 0.05)  # it looks every 50 ms: and goes on waiting all the same
            assert wait.poll() is None and daemon.process.alive()
            held[0][0].reply(held[0][1], status=0x01)
            assert client.recv().opaque == opaque
            assert wait.wait(scaled(20)) == 0
            poll(lambda: not daemon.process.alive(), what="the end")
    finally:
        store.stop()


def test_drain_that_never_ends():
    """A server that stays is not waited for longer than it gives itself, and a margin."""
    stats = rows(**{"": {"pid": "7"}, "settings": {"drain_timeout_s": "0"}})
    with Server({Op.STAT: stats}) as server:
        begun = time.monotonic()
        done = server.run("drain", "--wait")
        assert done.returncode == REFUSED and "still there after 3 s" in done.stderr, done
        assert time.monotonic() - begun < scaled(10)


def test_another_one_in_its_place():
    """Whose successor answers at the address is gone, too."""
    asked = []

    def stats(frame):
        asked.append(frame)
        return rows(**{"": {"pid": "7" if len(asked) < 4 else "8"},
                       "settings": {"drain_timeout_s": "1"}})(frame)
    with Server({Op.STAT: stats}) as server:
        assert server.run("drain", "--wait").returncode == OK


# ---- exit codes, as the manual has them ----

def test_exit_codes(tmp_path):
    users = {"users": [user_row("root", privileges=ADMIN, buckets={"*": ["Stats"]}), user_row("shop")]}
    with Headgate({"tenants": [{"name": "shop"}]}, users=users) as daemon:
        right, wrong = {"HEADGATE_PASSWORD": "pw"}, {"HEADGATE_PASSWORD": "no"}
        cases = [
            (OK, ["-u", "root", "status"], right), (OK, ["help"], right),
            (REFUSED, ["-u", "shop", "drain"], right), (REFUSED, ["-u", "shop", "pause", "shop"], right),
            (REFUSED, ["-u", "shop", "reload"], right), (REFUSED, ["-u", "root", "pause", "nobody"], right),
            (REFUSED, ["-u", "shop", "check", __file__], right),
            (USAGE, ["-u", "root", "check", str(tmp_path / "none")], right), (USAGE, ["what"], right),
            (USAGE, ["-u", "root", "ring-diff", str(tmp_path)], right),
            (LOGIN, ["-u", "root", "status"], wrong), (LOGIN, ["-u", "nobody", "top", "--once"], wrong)]
        for code, args, env in cases:
            done = daemon.ctl(*args, env=env, check=False)
            assert done.returncode == code, (args, done)
            assert (code == OK) == (done.stderr == ""), (args, done)
    for verb in (["drain"], ["reload"], ["pause", "a"], ["top", "--once"], ["hotkeys", "--watch"],
                 ["ring-diff", __file__], ["status"]):
        done = headgatectl(*verb, server="127.0.0.1:%d" % free_port(), check=False)
        assert done.returncode == LOST and "cannot connect" in done.stderr and not done.stdout, done


def test_status_words():
    """What was never asked is not called up, and what is only observed is not called evicted."""
    buckets = {name: json.dumps({"state": "active", "name": name, "bind_mode": mode})
               for name, mode in (("shop", "enforce"), ("toys", "observe"))}
    binds = {"bindthrottle:1": json.dumps({"class": "shop/QUERY", "k": "key", "v": "slow", "allowEveryX": 5}),
             "bindthrottle:2": json.dumps({"class": "toys/QUERY", "k": "key", "v": "calm", "allowEveryX": 4})}
    stores = {"c:kind": "memcached", "c:0:address": "1.1.1.1:1", "c:0:state": "closed", "c:0:requests": "0",
              "c:1:address": "1.1.1.1:2", "c:1:state": "closed", "c:1:requests": "9",
              "c:2:address": "1.1.1.1:3", "c:2:state": "open", "c:2:requests": "9",
              "c:1:last_error": "", "c:2:last_error": "connect to 1.1.1.1:3: \x1b[2Jrefused"}
    stats = rows(**{"": {}, "throttle": {}, "buckets": buckets, "upstreams": stores, "tickets": {},
                    "bindthrottle": binds})
    with Server({Op.STAT: stats}) as server:
        text = server.run("status").stdout
    assert re.search(r"1\.1\.1\.1:1 +not asked yet ", text), text
    assert re.search(r"1\.1\.1\.1:2 +up ", text) and re.search(r"1\.1\.1\.1:3 +down ", text), text
    said = [line for line in text.splitlines() if "no connection" in line]
    assert len(said) == 1 and said[0].endswith("; no connection: connect to 1.1.1.1:3: \\x1b[2Jrefused"), text
    evicted, would = text.index("EVICTED KEY"), text.index("WOULD EVICT")
    assert evicted < text.index("slow") < would < text.index("calm"), text
