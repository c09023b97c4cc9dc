"""test_top - headgatectl top through a terminal: what it shows of a real server under a real flood,
its keys, and that it leaves the terminal as it was."""
# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import re
import signal
import subprocess

import pexpect
import pyte
import pytest

from flood import Flood
from mcbin import Op, poll, request, scaled
from screen_tools import Screen, end_terminal
from servers import HEADGATECTL, Headgate, free_port, headgatectl, user_row

TENANTS = [{"name": "default", "upstream": "main"},
           {"name": "shop", "upstream": "main", "hard_limit": 200},
           {"name": "toys", "upstream": "main", "kv_hotkey_throttle_threshold": 20}]
CONFIG = {"upstreams": [{"name": "main", "kind": "embedded"},
                        {"name": "gone", "kind": "memcached",
                         "servers": [{"address": "127.0.0.1:1"}]}],
          "tenants": TENANTS + [{"name": "far", "upstream": "gone"}], "hotkey_epoch_ms": 300}
HOSTILE = b"<script>\x1b[2J\x00\xff\r\n\\" + b"k" * 200


@pytest.fixture(scope="module")
def daemon():
    with Headgate(CONFIG) as it:
        yield it


def get(key):
    return lambda number: request(Op.GET, key, opaque=number)


@pytest.fixture(scope="module")
def flood(daemon):
    """shop asks for more than it may, toys has a hot key of a hostile name, far has no server."""
    clients = {name: [daemon.client(bucket=name) for _ in range(2)] for name in ("shop", "toys", "far")}
    floods = [Flood(clients["shop"], get(b"key"), 4), Flood(clients["toys"], get(HOSTILE), 4),
              Flood(clients["far"], get(b"key"), 1)]
    for one in floods:
        one.thread.start()
    yield
    for one in floods:
        one.stop()
    for list_of in clients.values():
        for client in list_of:
            client.close()


# ---- what it shows ----

def test_pages_under_a_flood(daemon, flood):
    with Screen(daemon.where, "-d", "0.5") as screen:
        # Who is throttled, why, and how much.
        screen.wait(lambda: re.search(r"throttled: .*shop \(hard limit\)", screen.text), "shop")
        screen.wait(lambda: re.search(r"toys \(.*hot key", screen.text), "toys")
        screen.wait(lambda: re.search(r"far \(.*store (down|lost)", screen.text), "far")

        def is_right():
            shop = screen.row("shop")
            return shop and shop["UNITS/S"].isdigit() and 0 < int(shop["UNITS/S"]) <= 450
        screen.wait(is_right, "units of shop")
        assert re.match(r"headgate \d+\.\d+\.\d+, process %d, up 00:\d\d:\d\d" % daemon.pid,
                        screen.lines[0]), screen.text
        assert screen.lines[0].endswith(daemon.where), screen.text
        screen.wait(lambda: re.search(r"requests \d+/s, refused \d+/s, held \d+", screen.text),
                    "the head's rates")
        # The hot key: its throttle, and its name escaped.
        screen.send("2")
        screen.wait(lambda: re.search(r"^<script>\\x1b\[2J.* toys .*\d+ %", screen.text, re.M),
                    "the hot key")
        assert len(screen.lines[4]) <= 80 and "THROTTLE" in screen.lines[4], screen.text
        # The server that is out.
        screen.send("3")
        screen.wait(lambda: re.search(r"^gone +127\.0\.0\.1:1 +(down|half-open)", screen.text, re.M),
                    "the server")
        screen.wait(lambda: re.search(r"^main .* up ", screen.text, re.M), "the store")
        # Whose connections wait.
        screen.send("4")
        screen.wait(lambda: re.search(r"^127\.0\.0\.1:\d+ .*shop .* credits", screen.text, re.M),
                    "a connection that waits")
        screen.send("\t")
        screen.wait(lambda: screen.lines[4].startswith("TENANT"), "the first page again")
        screen.send("q")
        assert screen.end() == (0, None)


def test_sort_and_filter(daemon, flood):
    with Screen(daemon.where, "-d", "0.3") as screen:
        def names():
            return [line.split()[0] for line in screen.lines[5:-1] if line]
        screen.wait(lambda: len(names()) == 4, "the tenants")
        screen.send("<<")  # from UNITS/S to TENANT
        screen.wait(lambda: names() == ["default", "far", "shop", "toys"], "by name")
        screen.send("r")
        screen.wait(lambda: names() == ["toys", "shop", "far", "default"], "the other way round")
        screen.send("/OY")
        screen.wait(lambda: screen.lines[-1] == "filter: OY" and names() == ["toys"], "typing")
        screen.send("\x7f\x7f\x1b")
        screen.wait(lambda: len(names()) == 4, "given up")
        screen.send("/sho\r")
        screen.wait(lambda: names() == ["shop"] and "/sho" in screen.lines[3], "filtered")
        screen.send("/nowhere\r")
        screen.wait("nothing matches", "nothing")
        screen.send("/\r")
        screen.wait(lambda: len(names()) == 4, "all again")
        screen.send("?")
        screen.wait("the other way round", "help")
        screen.send("?")
        screen.wait(lambda: len(names()) == 4, "back")
        screen.send("q")
        assert screen.end() == (0, None)


def test_freeze(daemon, flood):
    """Frozen, the screen stays although the counters go on."""
    with Screen(daemon.where, "-d", "0.2") as screen:
        screen.wait(lambda: re.search(r"requests \d+/s", screen.text), "rates")
        screen.send("f")
        screen.wait("frozen", "frozen")
        with daemon.client() as client:
            asked = int(client.stat()["cmd_total"])
            kept, size = screen.text, len(screen.bytes)
            poll(lambda: int(client.stat()["cmd_total"]) > asked + 100, what="requests go on")
            screen.feed()
            assert screen.text == kept and len(screen.bytes) == size
        screen.send(" ")
        screen.wait(lambda: "frozen" not in screen.text and screen.text != kept, "going on")
        screen.send("q")
        assert screen.end() == (0, None)


def test_sizes(daemon, flood):
    with Screen(daemon.where, "-d", "0.2", rows=8, columns=40) as screen:
        screen.wait(lambda: screen.lines[4].startswith("TENANT") and "shop" in screen.text, "small")
        for rows, columns, what in ((5, 30, "too small: at least 40x8"), (24, 39, "too small"),
                                    (40, 140, "RESERVED"), (24, 80, "WHY")):
            screen.display.resize(rows, columns)
            screen.child.setwinsize(rows, columns)
            screen.wait(what, "%dx%d" % (columns, rows))
        screen.send("q")
        assert screen.end() == (0, None)


@pytest.mark.parametrize("term", ["vt100", "linux", "xterm", "tmux-256color"])
def test_terminals(daemon, flood, term):
    with Screen(daemon.where, "-d", "0.2", term=term) as screen:
        screen.wait(lambda: "throttled: " in screen.text and "shop" in screen.text, term)
        screen.send("q")
        assert screen.end() == (0, None)


def test_only_what_changes_is_sent(daemon):
    """Over a slow line: of a screen of 2000 characters a fraction is sent at each look."""
    with Headgate({"tenants": [{"name": "tenant%d" % i} for i in range(15)]}) as quiet, \
            Screen(quiet.where, "-d", "0.1") as screen:
        screen.wait(lambda: re.search(r"requests \d", screen.text), "the first rates")
        with quiet.client() as client:
            before, looks = len(screen.bytes), int(client.stat()["cmd_total"])

            def count():
                screen.feed()
                return int(client.stat("")["cmd_total"]) - looks > 60
            poll(count, what="looks")
        # two questions a look, and one of ours a poll: 60 are ten looks at least
        assert len(screen.bytes) - before < 6000, len(screen.bytes) - before
        screen.send("q")
        assert screen.end() == (0, None)


# ---- the server goes ----

def test_lost_and_found():
    with Headgate({"tenants": TENANTS[:1], "upstreams": CONFIG["upstreams"]}) as daemon:
        with Screen(daemon.where, "-d", "0.2") as screen:
            screen.wait(lambda: re.search(r"^default ", screen.text, re.M), "the page")
            first = daemon.pid
            daemon.terminate()
            screen.wait(lambda: screen.lines[-1].endswith("trying again"), "lost")
            assert daemon.where in screen.lines[-1], screen.text
            assert re.search(r"^default ", screen.text, re.M), "what was seen last stays"
            daemon.start()
            screen.wait(lambda: "process %d," % daemon.pid in screen.lines[0], "found again")
            assert first != daemon.pid
            screen.wait(lambda: "trying again" not in screen.text, "no complaint")
            screen.send("q")
            assert screen.end() == (0, None)


def test_a_server_that_does_not_answer():
    """It can be left by an interrupt all the same."""
    with Headgate({"tenants": TENANTS[:1], "upstreams": CONFIG["upstreams"]}) as daemon:
        with Screen(daemon.where, "-d", "0.2") as screen:
            screen.wait(lambda: re.search(r"^default ", screen.text, re.M), "the page")
            daemon.process.signal(signal.SIGSTOP)
            try:
                screen.send("\x03")
                assert screen.end(3.0) == (0, None)
            finally:
                daemon.process.signal(signal.SIGCONT)


# ---- the end ----

@pytest.mark.parametrize("number,end", [(signal.SIGINT, (0, None)), (signal.SIGTERM, (None, 15)),
                                        (signal.SIGHUP, (None, 1)), (signal.SIGQUIT, (None, 3))])
def test_signals(daemon, number, end):
    with Screen(daemon.where) as screen:
        screen.wait(lambda: re.search(r"^default ", screen.text, re.M), "the page")
        screen.child.kill(number)
        assert screen.end() == end


def test_the_terminal_is_as_it_was(daemon):
    """Its modes too: run from a shell in the terminal, which looks at them afterwards."""
    script = "'%s' -s %s top; stty -a; sleep 30" % (HEADGATECTL, daemon.where)
    shell = pexpect.spawn("/bin/sh", ["-c", script], env=dict(os.environ, TERM="xterm"),
                          dimensions=(24, 80), timeout=scaled(10))
    try:
        shell.expect("throttled")
        shell.send("q")
        shell.expect(r"\x1b\[\?1049l")
        for mode in ("icrnl", "onlcr", "icanon", " echo "):
            shell.expect(r"(-?)" + mode if mode[0] != " " else r"([ -])echo ")
            assert shell.match.group(1).strip() == b"", mode
    finally:
        end_terminal(shell)


# ---- without a screen ----

def run_in_terminal(where, *args, term):
    child = pexpect.spawn(HEADGATECTL, ["-s", where, "top", *args], env=dict(os.environ, TERM=term),
                          timeout=scaled(10))
    child.expect(pexpect.EOF)
    child.wait()
    return child.exitstatus, child.before.decode()


def test_terminals_that_will_not_do(daemon):
    for term, why in (("dumb", "cannot move its cursor"), ("nonsense", "is not known"), ("", "not known")):
        code, said = run_in_terminal(daemon.where, term=term)
        assert code == 2 and why in said and "\x1b" not in said, (term, said)
    done = headgatectl("top", server=daemon.where, check=False)
    assert done.returncode == 2 and "--once" in done.stderr and not done.stdout, done


@pytest.mark.parametrize("args,names", [
    (["top", "more"], "more"), (["top", "-d", "0"], "0"), (["top", "-d", "x"], "x"),
    (["top", "-d", "1.2.3"], "1.2.3"), (["top", "-d", ""], "interval"), (["top", "-d", "nan"], "nan"),
    (["top", "--interval", "3601"], "3600"), (["top", "--json"], "--once"), (["status", "--once"], "once"),
    (["status", "-d", "1"], "interval")])
def test_usage(args, names):
    done = headgatectl(*args, check=False)
    assert done.returncode == 2 and names in done.stderr and not done.stdout, done


def test_nobody_there():
    where = "127.0.0.1:%d" % free_port()
    code, said = run_in_terminal(where, term="xterm")
    assert code == 3 and "refused" in said and "\x1b" not in said, said
    assert headgatectl("top", "--once", server=where, check=False).returncode == 3


def test_once(daemon, flood):
    text = headgatectl("top", "--once", "-d", "0.5", server=daemon.where).stdout
    assert re.match(r"headgate \d", text) and "\x1b" not in text, text
    for heading in ("tenants\nTENANT", "hot keys\nKEY", "upstreams\nUPSTREAM", "connections\nPEER"):
        assert "\n\n" + heading in text, text
    # Longer than a slot of the credits, so that somebody is held anew.
    rates = json.loads(headgatectl("--json", "top", "--once", "-d", "1.5", server=daemon.where).stdout)
    assert {"shop", "toys", "far"} <= {row["tenant"] for row in rates["throttled"]}, rates["throttled"]
    shop = next(row for row in rates["tenants"] if row["tenant"] == "shop")
    assert shop["hard_limit"] == 200 and "hard limit" in shop["why"], shop
    # Shorter than one: nobody new, and the reason of those that wait is the same.
    for _ in range(3):
        short = json.loads(headgatectl("--json", "top", "--once", "-d", "0.1", server=daemon.where).stdout)
        assert next(row for row in short["tenants"] if row["tenant"] == "shop")["why"] in ("hard limit", ""), short
    assert rates["requests_per_s"] > 0 and rates["refused_per_s"] > 0, rates
    assert any(row["key"].startswith("<script>\\x1b[2J\\x00") for row in rates["hotkeys"])
    assert {row["upstream"] for row in rates["upstreams"]} == {"main", "gone"}
    assert len(rates["connections"]) >= 7


def test_who_may_see_what():
    """A tenant's user sees its own row; what it may not see is said."""
    users = {"users": [user_row("shop")]}
    with Headgate({"tenants": TENANTS, "upstreams": CONFIG["upstreams"][:1]}, users=users) as daemon:
        env = {"HEADGATE_PASSWORD": "pw"}
        with Screen(daemon.where, "-u", "shop", "-d", "0.2", env=env) as screen:
            screen.wait(lambda: re.search(r"^shop ", screen.text, re.M), "its row")
            assert not re.search(r"^toys ", screen.text, re.M), screen.text
            screen.send("3")
            screen.wait("privilege", "the refusal")
            daemon.restart()  # and logs in again by itself
            screen.wait(lambda: "process %d," % daemon.pid in screen.lines[0], "found again")
            screen.send("q")
            assert screen.end() == (0, None)


# ---- hotkeys --watch ----

def test_watch(daemon, flood):
    """A table after each epoch; an interrupt is a good end. Not on a terminal: nothing but text."""
    watch = subprocess.Popen([HEADGATECTL, "-s", daemon.where, "hotkeys", "--watch", "--tenant", "toys"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = []
    while sum(line.startswith("TENANT") for line in lines) < 3:
        line = watch.stdout.readline()
        assert line, watch.stderr.read()
        lines.append(line)
    watch.send_signal(signal.SIGINT)
    out, wrong = watch.communicate(timeout=scaled(10))
    assert watch.returncode == 0 and wrong == "", wrong
    assert re.match(r"\d\d:\d\d:\d\d$", lines[0]) and "\x1b" not in "".join(lines) + out
    assert any(line.startswith("toys") for line in lines), lines


def test_watch_json(daemon, flood):
    watch = subprocess.Popen([HEADGATECTL, "-s", daemon.where, "--json", "hotkeys", "--watch", "0.1",
                              "--tenant", "toys", "--type", "all"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rows = [json.loads(watch.stdout.readline()) for _ in range(5)]
    assert {row["TENANT"] for row in rows} == {"toys"}
    watch.stdout.close()  # whoever reads it goes: that is an end, too
    assert watch.wait(timeout=scaled(10)) != 3
    watch.stderr.close()


def test_watch_on_a_terminal(daemon, flood):
    child = pexpect.spawn(HEADGATECTL, ["-s", daemon.where, "hotkeys", "--watch", "0.1"],
                          env=dict(os.environ, TERM="xterm"), timeout=scaled(10))
    for _ in range(2):
        child.expect(r"\x1b\[H\x1b\[2J")
        child.expect("HOTKEY_FREQ")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


def test_watch_is_told_of_the_end():
    with Headgate() as daemon:
        watch = subprocess.Popen([HEADGATECTL, "-s", daemon.where, "hotkeys", "--watch", "0.1"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        watch.stdout.readline()
        daemon.terminate()
        _, wrong = watch.communicate(timeout=scaled(10))
        assert watch.returncode == 3 and "lost" in wrong, wrong


@pytest.mark.parametrize("args", [["hotkeys", "3"], ["hotkeys", "--watch", "0"],
                                  ["hotkeys", "--watch", "x"], ["hotkeys", "--watch", "1", "2"],
                                  ["hotkeys", "--watch", "--history"], ["buckets", "--watch"]])
def test_watch_usage(args):
    assert headgatectl(*args, check=False).returncode == 2
