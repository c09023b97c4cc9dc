"""test_ctl_unit - headgatectl by itself: usage, passwords, exit codes, what it sends and what it
makes of answers, against servers written here. test_ops has it against the real server."""
# SPDX-License-Identifier: BSD-3-Clause

import base64
import hashlib
import hmac
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import termios
import threading
import time

import pytest

from mcbin import Op, ScramClient, request, response, scaled, scram_secret
from servers import HEADGATE, HEADGATECTL, FakeBackend, free_port, headgatectl

OK, REFUSED, USAGE, LOST, LOGIN = range(5)


def ctl(*args, server=None, **more):
    return headgatectl(*args, server=server, check=False, **more)


# ---- a server that a test writes ----

class Server:
    """Answers by `answers`: opcode -> function(frame) giving a list of response fields; what is not
    there succeeds with nothing. `sent` has every request but HELLO."""

    def __init__(self, answers=None):
        self.answers = answers or {}
        self.sent = []
        self.fake = FakeBackend(self.handle)
        self.where = self.fake.where

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.fake.stop()

    def handle(self, connection, frame):
        if frame.opcode != Op.HELLO:
            self.sent.append(frame)
        for fields in self.answers.get(frame.opcode, lambda frame: [{}])(frame):
            connection.reply(frame, **fields)

    def run(self, *args, **more):
        return ctl(*args, server=self.where, **more)


def rows(**groups):
    """A Stat handler: group name -> {name: value}; spaces of the group are written as _."""
    def answer(frame):
        group = frame.key.decode().replace(" ", "_")
        if group not in groups:
            return [{"status": 0x01, "value": "there is no such group"}]
        return [{"key": k, "value": v} for k, v in groups[group].items()] + [{}]
    return answer


def details(reserved, hard_limit, ingress="0x00"):
    return json.dumps({"name": "shop", "throttle_reserved": reserved,
                       "throttle_hard_limit": hard_limit, "data_ingress_status": ingress})


# ---- usage ----

@pytest.mark.parametrize("args,names", [
    ([], "verb"), (["nonsense"], "nonsense"), (["-x"], "x"), (["--nope"], "nope"),
    (["status", "more"], "more"), (["buckets", "more"], "more"), (["reload", "more"], "more"),
    (["where"], "key"), (["where", "a", "b"], "key"), (["where", "k" * 245], "244"),
    (["set"], "bucket"), (["set", "tenant"], "bucket"), (["set", "node"], "OPTION=VALUE"),
    (["set", "node", "capacity"], "capacity"), (["set", "node", "speed=1"], "speed"),
    (["set", "node", "capacity=fast"], "fast"), (["set", "node", "capacity=-1"], "-1"),
    (["set", "node", "capacity="], "capacity"), (["set", "node", "capacity=default"], "unset"),
    (["set", "bucket"], "name"), (["set", "bucket", "shop"], "OPTION=VALUE"),
    (["set", "bucket", ""], "1 to 100"), (["set", "bucket", "b" * 101, "reserved=1"], "1 to 100"),
    (["set", "bucket", "shop", "reserved"], "reserved"),
    (["set", "bucket", "shop", "=5"], "=5"), (["set", "bucket", "shop", "speed=5"], "speed"),
    (["set", "bucket", "shop", "reserved=1.5"], "1.5"),
    (["set", "bucket", "shop", "reserved=" + "9" * 19], "9999"),
    (["set", "bucket", "shop", "reserved=1", "reserved=2"], "twice"),
    (["set", "bucket", "shop", "data_limit=0x34"], "0x34"),
    (["set", "bucket", "shop", "data_limit=x"], "data_limit"),
    (["unset"], "bucket"), (["unset", "node", "speed"], "speed"), (["unset", "bucket"], "name"),
    (["unset", "bucket", "shop", "speed"], "speed"),
    (["create"], "bucket"), (["create", "bucket"], "name"),
    (["create", "bucket", "shop", "speed=1"], "speed"),
    (["create", "bucket", "shop", "name=x"], "name"),
    (["create", "bucket", "shop", "reserved=1", "reserved=2"], "twice"),
    (["delete"], "bucket"), (["delete", "bucket"], "name"), (["delete", "bucket", "a", "b"], "b"),
    (["check"], "file"), (["check", "/nonexistent"], "/nonexistent"), (["check", "/dev/null"], "empty"),
    (["passwd", "a", "b"], "b"), (["passwd", ""], "name"), (["passwd", "n" * 129], "128"),
    (["--tls-cert", "a.pem", "status"], "--tls-key"), (["--tls-key", "a.pem", "status"], "--tls-cert"),
    (["-s", "a:b:c", "status"], "a:b:c"), (["-s", "host:port", "status"], "host:port"),
    (["-s", "host:99999", "status"], "99999"), (["-s", "unix:relative", "status"], "relative"),
], ids=lambda item: " ".join(item)[:40] if isinstance(item, list) else "")
def test_usage(args, names):
    """Nothing is sent: there is no server at all."""
    done = ctl(*args, stdin="")
    assert (done.returncode, done.stdout) == (USAGE, ""), done
    assert names in done.stderr and done.stderr.startswith(("headgatectl:", HEADGATECTL + ":")), done


def test_help_of_set_has_what_is_taken():
    """The names that set takes, and, of set, what each accepts."""
    blocks = {}
    for verb in ("set", "unset"):
        text = ctl("help", verb).stdout
        blocks[verb] = [re.findall(r"^  ([a-z_]+)(?:: (\S.*))?$", block, re.M)
                        for block in re.split(r"^of an? ?.*:$|^of the node:$", text, flags=re.M)[1:]]
    assert len(blocks["set"]) == 3
    for number, args in enumerate((["node"], ["upstream", "u"], ["bucket", "b"])):
        refused = ctl("set", *args, "nonsense=1").stderr
        taken = re.search(r"accepted: (.*)\)", refused).group(1).split(", ")
        assert len(taken) > 10
        assert sorted(name for name, _ in blocks["set"][number]) == sorted(taken)
        assert sorted(blocks["unset"][number]) == sorted((name, "") for name in taken)
        assert all(accepts for _, accepts in blocks["set"][number]), blocks["set"][number]
    bucket = dict(blocks["set"][2])
    assert bucket["state"] == "active, paused, disabled" and "0x35 to 0x38" in bucket["data_limit"]
    assert dict(blocks["set"][0])["capacity"].endswith("or unlimited")


def test_help_and_version():
    done = ctl("--help")
    assert done.returncode == OK and not done.stderr
    for verb in ("status", "stats", "buckets", "where", "set", "unset", "create", "delete", "reload",
                 "check", "passwd"):
        assert re.search(r"^  %s\b" % verb, done.stdout, re.M), verb
    assert max(map(len, done.stdout.splitlines())) <= 100
    done = ctl("--version")
    assert re.fullmatch(r"headgatectl \d+\.\d+\.\d+\n", done.stdout) and done.returncode == OK


def test_output_that_cannot_be_written():
    with open("/dev/full", "w") as full:
        done = subprocess.run([HEADGATECTL, "--help"], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=scaled(10))
    assert done.returncode == USAGE and "write" in done.stderr, done


# ---- connecting ----

def test_nobody_listens(tmp_path):
    for server, why in [("127.0.0.1:%d" % free_port(), "refused"), ("[::1]:%d" % free_port(), ""),
                        ("no-such-host.invalid", "no such host"),
                        ("unix:%s" % (tmp_path / "none"), "no such"), (str(tmp_path / "none"), "no such")]:
        done = ctl("status", server=server)
        assert (done.returncode, done.stdout) == (LOST, ""), done
        assert server in done.stderr and why in done.stderr.lower(), done


@pytest.mark.parametrize("what,why", [
    (b"", "closed"), (b"\x81\x1f\0", "closed"), (b"ERROR\r\n" * 10, "protocol"),
    (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 3, "protocol"),
    (response(Op.HELLO, opaque=77), "another request"),
    (b"\x81\x1f\0\x10\x04\0\0\0\0\0\0\x01" + bytes(12), "protocol"),
    (b"\x81\x1f\0\0\0\0\0\0\xff\xff\xff\xff" + bytes(12), "protocol"),
], ids=["closes", "half a header", "text", "http", "opaque", "lengths", "4 GiB"])
def test_answers_that_are_none(what, why):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        sock, _ = listener.accept()
        sock.recv(1000)
        try:
            sock.sendall(what)
            sock.shutdown(socket.SHUT_WR)
            sock.recv(1000)
        except OSError:
            pass    # it has gone already
        sock.close()
    thread = threading.Thread(target=serve)
    thread.start()
    done = ctl("status", server="127.0.0.1:%d" % listener.getsockname()[1])
    thread.join()
    listener.close()
    assert (done.returncode, done.stdout) == (LOST, ""), done
    assert why in done.stderr, done


def test_silent_server_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        begun = time.monotonic()
        done = ctl("status", server="127.0.0.1:%d" % listener.getsockname()[1])
        took = time.monotonic() - begun
    assert done.returncode == LOST and "in time" in done.stderr, done
    assert 4.5 < took < scaled(8), took


def test_lost_in_the_middle_of_a_group():
    def answer(frame):
        return [{"key": "a", "value": "1"}]     # and no end
    with Server({Op.STAT: answer}) as server:
        done = server.run("stats")
    assert done.returncode == LOST and not done.stdout, done


def test_addresses(tmp_path):
    """A name, an IPv6 address and a unix socket."""
    for family, address, text in [
            (socket.AF_INET, ("127.0.0.1", 0), "localhost:%d"),
            (socket.AF_INET6, ("::1", 0), "[::1]:%d"),
            (socket.AF_UNIX, str(tmp_path / "a socket"), "unix:" + str(tmp_path / "a socket")),
            (socket.AF_UNIX, str(tmp_path / "b"), str(tmp_path / "b"))]:
        with socket.socket(family) as listener:
            listener.bind(address)
            listener.listen()

            def serve():
                sock, _ = listener.accept()
                sock.recv(1000)
                sock.close()
            thread = threading.Thread(target=serve)
            thread.start()
            port = listener.getsockname()[1] if family != socket.AF_UNIX else None
            done = ctl("status", server=text % port if port else text)
            thread.join(scaled(10))
            assert done.returncode == LOST and "closed" in done.stderr, (text, done)


# ---- what is sent ----

def test_hello_asks_for_statuses_as_they_are():
    with Server() as server:
        server.run("reload")
        hello = server.fake.seen[0][2]
    assert (hello.opcode, hello.key, hello.value) == (Op.HELLO, b"headgatectl", b"\0\x07")


@pytest.mark.parametrize("args,opcode,key,value", [
    (["set", "node", "capacity=777"], Op.SET_NODE_THROTTLE, b"", {"capacity": 777}),
    (["set", "node", "capacity=unlimited", "default_throttle_hard_limit=5",
      "default_throttle_reserved_units=0"], Op.SET_NODE_THROTTLE, b"",
     {"capacity": "unlimited", "default_throttle_hard_limit": 5,
      "default_throttle_reserved_units": 0}),
    (["set", "bucket", "shop", "reserved=5", "hard_limit=55"], Op.SET_BUCKET_THROTTLE, b"shop",
     {"reserved": 5, "hard_limit": 55}),
    (["set", "bucket", "shop", "reserved=default", "hard_limit=unlimited"], Op.SET_BUCKET_THROTTLE,
     b"shop", {"hard_limit": "unlimited"}),
    (["create", "bucket", "fresh"], Op.CREATE_BUCKET, b"fresh", {}),
    (["create", "bucket", "fresh", "reserved=5", "hard_limit=unlimited", "upstream=123",
      "allow_flush=false", "max_connections=many", "key_prefix=a=b"], Op.CREATE_BUCKET, b"fresh",
     {"reserved": 5, "hard_limit": "unlimited", "upstream": "123", "allow_flush": False,
      "max_connections": "many", "key_prefix": "a=b"}),
    (["create", "bucket", "fresh", 'families=[{"table":"t","name":"d","ttl_s":5}]'],
     Op.CREATE_BUCKET, b"fresh", {"families": [{"table": "t", "name": "d", "ttl_s": 5}]}),
    (["create", "bucket", "fresh", "families=[{"], Op.CREATE_BUCKET, b"fresh", {"families": "[{"}),
], ids=lambda item: " ".join(item)[:40] if isinstance(item, list) else "")
def test_json_commands(args, opcode, key, value):
    with Server() as server:
        done = server.run(*args)
        assert (done.returncode, done.stdout, done.stderr) == (OK, "", ""), done
        frame, = server.sent
    assert (frame.opcode, frame.key, frame.extras) == (opcode, key, b"")
    assert json.loads(frame.value) == value


@pytest.mark.parametrize("args,opcode,key,value", [
    (["delete", "bucket", "shop"], Op.DELETE_BUCKET, b"shop", b""),
    (["reload"], Op.CONFIG_RELOAD, b"", b""),
    (["check", "-"], Op.CONFIG_VALIDATE, b"", b"threads: 0\n"),
    (["unset", "node", "capacity"], Op.SET_PARAM, b"node_capacity", b""),
    (["unset", "bucket", "my.shop", "hard_limit"], Op.SET_PARAM, b"tenant.my.shop.hard_limit", b""),
])
def test_other_commands(args, opcode, key, value):
    with Server() as server:
        done = server.run(*args, stdin="threads: 0\n")
        assert (done.returncode, done.stdout, done.stderr) == (OK, "", ""), done
        frame, = server.sent
    assert (frame.opcode, frame.key, frame.value) == (opcode, key, value)


@pytest.mark.parametrize("given,reserved,hard_limit", [
    ("reserved=3", 3, "unlimited"), ("hard_limit=30", 7, 30), ("hard_limit=default", 7, None),
])
def test_what_is_not_named_is_kept(given, reserved, hard_limit):
    with Server({Op.STAT: rows(bucket_details_shop={"shop": details(7, "unlimited")})}) as server:
        assert server.run("set", "bucket", "shop", given).returncode == OK
        body = json.loads(server.sent[-1].value)
    expected = {"reserved": reserved}
    if hard_limit is not None:
        expected["hard_limit"] = hard_limit
    assert body == expected


@pytest.mark.parametrize("row", ["no JSON", "[]", "{}", '{"throttle_reserved":null}'])
def test_what_cannot_be_kept_is_not_guessed(row):
    with Server({Op.STAT: rows(bucket_details_shop={"shop": row})}) as server:
        done = server.run("set", "bucket", "shop", "hard_limit=9")
        assert done.returncode == LOST and "shop" in done.stderr, done
        assert [frame.opcode for frame in server.sent] == [Op.STAT]
    with Server({Op.STAT: rows()}) as server:
        done = server.run("set", "bucket", "shop", "hard_limit=9")
        assert done.returncode == REFUSED and "cannot read" in done.stderr, done
        assert [frame.opcode for frame in server.sent] == [Op.STAT]


def test_data_limit():
    for text, extras in [("0x35", b"\0\x35"), ("0", b"\0\0"), ("56", b"\0\x38")]:
        with Server() as server:
            assert server.run("set", "bucket", "shop", "data_limit=" + text).returncode == OK
            frame, = server.sent
        assert (frame.opcode, frame.key, frame.extras, frame.value) == (
            Op.SET_BUCKET_DATA_LIMIT, b"shop", extras, b"")


NODE_PARAMS = [
    "log_level", "max_connections", "idle_timeout_s", "request_deadline_ms", "throttle_max_wait_ms",
    "slow_request_ms", "trace_sample",
    "ingress_enabled", "ingress_tickets", "ingress_max_queue_depth", "ingress_queue_timeout_ms",
    "ingress_overload_wait_ms", "compat_overload", "bind_backlog_ms", "bind_eviction_threshold_pct",
    "bind_eviction_target_conn_pct", "bind_eviction_decr_per_sec", "eviction_min_age_ms",
    "bind_evict_sent_writes"]
UPSTREAM_PARAMS = [
    "connect_timeout_ms", "backend_timeout_ms", "reconnect_max_ms", "pool_depth",
    "pool_max_connections", "pool_min_hold_ms", "pool_idle_timeout_s",
    "execution_control", "read_tickets", "write_tickets", "tickets_scope", "upstream_tickets",
    "execution_max_queue_depth", "queue_timeout_ms", "overload_wait_ms", "flood_wait_ms",
    "flood_order", "key_share_pct", "tenant_window", "bind_control", "bind_mended",
    "throughput_probing_interval_ms",
    "throughput_probing_initial_concurrency", "throughput_probing_min_concurrency",
    "throughput_probing_max_concurrency", "throughput_probing_read_write_ratio",
    "throughput_probing_concurrency_moving_average_weight", "throughput_probing_step_multiple",
    "slow_server_factor"]


def test_unset_everything():
    stat = rows(bucket_details_shop={"shop": details(1, 2, "0x36")})
    with Server({Op.STAT: stat}) as server:
        assert server.run("unset", "bucket", "shop").returncode == OK
        assert [(frame.opcode, frame.key, frame.extras) for frame in server.sent] == [
            (Op.STAT, b"bucket_details shop", b""),
            (Op.SET_BUCKET_DATA_LIMIT, b"shop", b"\0\0"),
            (Op.SET_PARAM, b"tenant.shop.reserved", b""),
            (Op.SET_PARAM, b"tenant.shop.hard_limit", b""),
            (Op.SET_PARAM, b"tenant.shop.state", b""),
            (Op.SET_PARAM, b"tenant.shop.credit_mode", b""),
            (Op.SET_PARAM, b"tenant.shop.reject_status", b""),
            (Op.SET_PARAM, b"tenant.shop.max_connections", b""),
            (Op.SET_PARAM, b"tenant.shop.kv_hotkey_throttle_threshold", b""),
            (Op.SET_PARAM, b"tenant.shop.hotkey_mode", b""),
            (Op.SET_PARAM, b"tenant.shop.hotkey_control", b""),
            (Op.SET_PARAM, b"tenant.shop.hotkey_tracking", b""),
            (Op.SET_PARAM, b"tenant.shop.ticket_mode", b""),
            (Op.SET_PARAM, b"tenant.shop.fair_by", b""),
            (Op.SET_PARAM, b"tenant.shop.bind_mode", b""),
            (Op.SET_PARAM, b"tenant.shop.bind_min_bytes", b"")]
    with Server({Op.STAT: rows()}) as server:      # it may not look: the limits all the same
        assert server.run("unset", "bucket", "shop").returncode == OK
        assert [frame.opcode for frame in server.sent] == [Op.STAT] + [Op.SET_PARAM] * 14
    with Server() as server:
        assert server.run("unset", "node").returncode == OK
        keys = [frame.key.decode() for frame in server.sent]
        assert keys[:3] == [
            "node_capacity", "default_throttle_reserved_units", "default_throttle_hard_limit"]
        assert sorted(keys[3:]) == sorted(NODE_PARAMS)
    with Server() as server:
        assert server.run("unset", "upstream", "a.b").returncode == OK
        assert {frame.key.decode() for frame in server.sent} == {
            "upstream.a.b." + name for name in UPSTREAM_PARAMS}


def test_options_that_go_one_by_one():
    with Server() as server:
        done = server.run("set", "node", "bind_eviction_decr_per_sec=1.5", "capacity=7",
                          "ingress_tickets=9")
        assert (done.returncode, done.stdout, done.stderr) == (OK, "", ""), done
        assert [(frame.opcode, frame.key, frame.value) for frame in server.sent] == [
            (Op.SET_NODE_THROTTLE, b"", b'{"capacity":7}'),
            (Op.SET_PARAM, b"ingress_tickets", b"9"),
            (Op.SET_PARAM, b"bind_eviction_decr_per_sec", b"1.5")]
    with Server() as server:
        done = server.run("set", "upstream", "a.b", "read_tickets=9", "execution_control=fixed")
        assert (done.returncode, done.stdout, done.stderr) == (OK, "", ""), done
        assert [(frame.opcode, frame.key, frame.value) for frame in server.sent] == [
            (Op.SET_PARAM, b"upstream.a.b.execution_control", b"fixed"),
            (Op.SET_PARAM, b"upstream.a.b.read_tickets", b"9")]


def test_what_was_set_before_a_refusal_is_said():
    def set_param(frame):
        return [{"status": 0x04, "value": "no"}] if frame.key.endswith(b"write_tickets") else [{}]
    with Server({Op.SET_PARAM: set_param}) as server:
        done = server.run("set", "upstream", "a", "read_tickets=9", "write_tickets=9",
                          "queue_timeout_ms=9")
        assert done.returncode == REFUSED and len(server.sent) == 2, done
    assert "set upstream 'a'" in done.stderr
    assert "what was set before that stays: read_tickets\n" in done.stderr


@pytest.mark.parametrize("args,says", [
    (["set", "upstream"], "set upstream takes a name"),
    (["set", "upstream", ""], "set upstream takes a name"),
    (["set", "upstream", "a"], "at least one OPTION=VALUE"),
    (["set", "upstream", "a", "read_tickets"], "is not OPTION=VALUE"),
    (["set", "upstream", "a", "sync=never"], "'sync' is no option of an upstream"),
    (["set", "upstream", "a", "read_tickets="], "has no value"),
    (["set", "upstream", "a", "read_tickets=1", "read_tickets=2"], "given twice"),
    (["set", "node", "read_tickets=1"], "'read_tickets' is no option of the node"),
    (["set", "node", "bind_backlog_ms=1", "bind_backlog_ms=2"], "given twice"),
    (["unset", "upstream", "a", "sync"], "'sync' is no option of an upstream"),
    (["set", "pool", "a"], "'node', 'upstream' or 'bucket'"),
    (["unset", "pool", "a"], "'node', 'upstream' or 'bucket'"),
])
def test_options_that_there_are_not(args, says):
    with Server() as server:
        done = server.run(*args)
        assert done.returncode == USAGE and says in done.stderr, done
        assert server.sent == []


def test_limits_in_each_others_way_are_unset_in_the_other_order():
    """Back to 500/1000 from 5/55: the reservation can go only after the hard limit."""
    limit = {"hard_limit": 55}

    def set_param(frame):
        if frame.key.endswith(b"hard_limit"):
            limit["hard_limit"] = 1000
        elif limit["hard_limit"] < 500:
            return [{"status": 0x04, "value": "reserved exceeds hard_limit"}]
        return [{}]
    with Server({Op.SET_PARAM: set_param}) as server:
        done = server.run("unset", "bucket", "shop", "reserved", "hard_limit")
        assert (done.returncode, done.stderr) == (OK, ""), done
        assert len(server.sent) == 3
        limit["hard_limit"] = 55
        done = server.run("unset", "bucket", "shop", "reserved")
        assert done.returncode == REFUSED and "exceeds" in done.stderr, done


def test_refusals_name_the_thing_and_the_reason():
    refuse = lambda frame: [{"status": 0x04, "value": "reserved (9) is above \x1b[31mhard_limit\x07"}]
    with Server({op: refuse for op in (Op.SET_BUCKET_THROTTLE, Op.SET_NODE_THROTTLE, Op.CREATE_BUCKET,
                                       Op.DELETE_BUCKET, Op.CONFIG_RELOAD, Op.SET_PARAM,
                                       Op.CONFIG_VALIDATE, Op.SELECT_BUCKET)}) as server:
        for args, names in [(["set", "bucket", "shop", "reserved=9", "hard_limit=1"], "'shop'"),
                            (["set", "node", "capacity=1"], "set node"),
                            (["create", "bucket", "shop"], "'shop'"),
                            (["delete", "bucket", "shop"], "'shop'"), (["reload"], "reload"),
                            (["unset", "node"], "unset node"), (["check", "-"], "'-'"),
                            (["unset", "bucket", "shop", "reserved"], "'shop'"),
                            (["-b", "shop", "where", "k"], "'shop'")]:
            done = server.run(*args, stdin="x")
            assert (done.returncode, done.stdout) == (REFUSED, ""), done
            assert names in done.stderr and "reserved (9) is above" in done.stderr, done
            assert "0x04" in done.stderr and "\x1b" not in done.stderr and "\x07" not in done.stderr
    with Server({Op.CONFIG_RELOAD: lambda frame: [{"status": 0x24}]}) as server:
        assert "No access" in server.run("reload").stderr, "a status without a text"


# ---- what is shown ----

def test_rows_are_escaped_and_aligned():
    stat = rows(slow={"a": "1", "long name": "two words", "\x1b[2Jü\\": "\r\nx\xff"})
    with Server({Op.STAT: stat}) as server:
        done = server.run("stats", "slow")
        assert done.stdout.splitlines() == [
            "a" + " " * 20 + "1", "long name" + " " * 12 + "two words",
            "\\x1b[2J\\xc3\\xbc\\x5c  \\x0d\\x0ax\\xc3\\xbf"], done.stdout
        text = server.run("--json", "stats", "slow").stdout
    assert json.loads(text) == {"a": 1, "long name": "two words", "\x1b[2Jü\\": "\r\nx\xff"}


def test_json_of_values():
    values = {"int": "5", "zero": "0", "led": "007", "big": "18446744073709551615", "neg": "-3",
              "dot": "1.5", "empty": "", "object": '{"a":[1,2]}', "list": "[]", "broken": "{x",
              "version": "0.1.0"}
    with Server({Op.STAT: rows(ops=values)}) as server:
        got = json.loads(server.run("--json", "stats", "ops").stdout)
    assert got == {"int": 5, "zero": 0, "led": "007", "big": "18446744073709551615", "neg": "-3",
                   "dot": "1.5", "empty": "", "object": {"a": [1, 2]}, "list": [], "broken": "{x",
                   "version": "0.1.0"}


def test_bytes_that_are_no_utf8():
    stat = lambda frame: [{"key": b"k\xff", "value": b"v\xfe"}, {}]
    with Server({Op.STAT: stat}) as server:
        assert json.loads(server.run("--json", "stats").stdout) == {"k\\xff": "v\\xfe"}
        assert server.run("stats").stdout == "k\\xff  v\\xfe\n"


def test_group_with_an_argument_is_one_key():
    with Server({Op.STAT: rows(bucket_details_shop={"shop": "{}"})}) as server:
        assert server.run("stats", "bucket_details", "shop").returncode == OK
        assert server.sent[-1].key == b"bucket_details shop"


def test_where():
    stat = lambda frame: [{"key": frame.key[6:], "value": "10.0.0.1:11211"}, {}]
    with Server({Op.STAT: stat}) as server:
        assert server.run("where", "a key").stdout == "10.0.0.1:11211\n"
        assert json.loads(server.run("where", "--json", "a key").stdout) == {
            "key": "a key", "server": "10.0.0.1:11211"}
        assert server.run("where", "k", "--bucket", "shop").returncode == OK
        assert [(frame.opcode, frame.key) for frame in server.sent[-2:]] == [
            (Op.SELECT_BUCKET, b"shop"), (Op.STAT, b"where k")]
        assert server.run("where", "--", "-k").returncode == OK
        assert server.sent[-1].key == b"where -k"
    with Server({Op.STAT: lambda frame: [{"status": 0x08, "value": "no bucket"}]}) as server:
        done = server.run("where", "k")
        assert done.returncode == REFUSED and "--bucket" in done.stderr, done


STATUS = {
    "": {"version": "0.1.0", "pid": "77", "uptime": "93784", "curr_connections": "3",
         "max_connections": "10000"},
    "throttle": {"node_capacity": "25000", "free_pool": "24500", "free_pool_used": "12",
                 "free_pool_mode": "fair"},
    "buckets": {"shop": json.dumps({"name": "shop", "state": "active", "ru": 12, "wu": 3,
                                    "num_throttled": 4, "num_rejected": 5, "clients": 2,
                                    "throttle_reserved": 100, "throttle_hard_limit": "unlimited",
                                    "throttle_wait_time": 12345, "surprise": {}}),
                "odd": "no JSON", "bare": "{}"},
    "upstreams": {"rows:kind": "embedded", "rows:items": "9", "rows:used_bytes": "4096",
                  "rows:max_bytes": "8192", "cache:kind": "memcached",
                  "cache:0:address": "10.0.0.1:11211", "cache:0:state": "closed",
                  "cache:0:connections": "2", "cache:1:address": "10.0.0.2:11211",
                  "cache:1:state": "open", "cache:2:address": "10.0.0.3:11211",
                  "cache:2:state": "half-open", "surprise": "1"},
    "tickets": {"ingress:out": "3", "ingress:totalTickets": "1000000", "ingress:queueLength": "0",
                "ingress:overloaded": "0", "cache:execution_control": "adaptive",
                "cache:read:out": "9", "cache:read:totalTickets": "8", "cache:read:queueLength": "4",
                "cache:read:stranded": "1", "cache:read:overloaded": "2",
                "cache:write:totalTickets": "8", "tenant:shop:read:queueLength": "4",
                ":totalTickets": "1", "surprise": "1"},
    "bindthrottle": dict({"keys_evicted": "12", "bindthrottle:0": "no JSON"}, **{
        "bindthrottle:%d" % n: json.dumps({"class": "shop/QUERY", "k": "key", "v": "k\x1b%d" % n,
                                           "allowEveryX": 100 - n, "passed": n, "refused": 7})
        for n in range(1, 13)}),
}


def status_server(**without):
    def answer(frame):
        group = frame.key.decode()
        if group in without:
            return [{"status": 0x24, "value": without[group]}]
        return [{"key": k, "value": v} for k, v in STATUS[group].items()] + [{}]
    return Server({Op.STAT: answer})


def test_status_screen():
    with status_server() as server:
        text = server.run("status").stdout
    assert "headgate 0.1.0, process 77, up 1 d 02:03:04" in text
    assert "3 of at most 10000; - since the start" in text, "what is missing is a dash"
    assert "capacity 25000 units/s, free pool 24500 (12 used, fair)" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["shop", "active", "-", "2", "100", "unlimited", "12", "3", "-", "4", "5", "12"] in lines
    assert any(line[:2] == ["bare", "-"] for line in lines)
    assert not any(line and line[0] in ("odd", "surprise") for line in lines)
    assert any(line[:4] == ["rows", "embedded", "-", "up"] for line in lines)
    states = {line[2]: line[3] for line in lines if line[:2] == ["cache", "memcached"]}
    assert states == {"10.0.0.1:11211": "up", "10.0.0.2:11211": "down", "10.0.0.3:11211": "half-open"}
    assert not any(line.endswith(" ") for line in text.splitlines())
    assert ["ingress", "-", "3", "1000000", "0", "-", "no"] in lines
    assert ["cache:read", "adaptive", "9", "8", "4", "1", "yes"] in lines
    assert ["cache:write", "adaptive", "-", "8", "-", "-", "-"] in lines
    assert ["k\\x1b1", "shop/QUERY", "key", "99", "1", "7"] in lines
    assert sum("shop/QUERY" in line for line in text.splitlines()) == 10
    assert "and 2 more" in text and "\x1b" not in text


def test_status_without_throttled_keys():
    with Server({Op.STAT: lambda frame: [{}]}) as server:
        done = server.run("status")
        assert done.returncode == OK and "EVICTED KEY" not in done.stdout, done


def test_status_json():
    with status_server() as server:
        got = json.loads(server.run("--json", "status").stdout)
    assert got["general"]["uptime"] == 93784
    assert [row["name"] for row in got["buckets"]] == ["shop", "bare"]
    assert got["upstreams"]["cache"]["servers"][1] == {"address": "10.0.0.2:11211", "state": "open"}
    assert got["upstreams"]["rows"] == {"kind": "embedded", "items": 9, "used_bytes": 4096,
                                        "max_bytes": 8192}
    assert got["tickets"]["cache:read:queueLength"] == 4
    assert got["bindthrottle"]["bindthrottle:1"]["allowEveryX"] == 99


def test_status_of_a_user_who_may_not_see_all():
    with status_server(throttle="needs Stats", upstreams="needs \x1b Stats") as server:
        done = server.run("status")
        assert done.returncode == OK and "throttle: needs Stats" in done.stdout, done
        assert "\x1b" not in done.stdout
        got = json.loads(server.run("--json", "status").stdout)
        assert got["throttle"] is None and got["upstreams"] is None and got["buckets"]
    with status_server(**{"": "not logged in"}) as server:
        done = server.run("status")
        assert (done.returncode, done.stdout) == (REFUSED, ""), done
        assert "not logged in" in done.stderr


def test_buckets_json_is_the_servers():
    with status_server() as server:
        got = json.loads(server.run("buckets", "--json").stdout)
    assert got[0] == json.loads(STATUS["buckets"]["shop"]) and got[1] == {"name": "bare"}


# ---- logging in ----

class ScramServer(Server):
    """SCRAM-SHA-256's server side, for one user, with faults."""

    def __init__(self, password="pw", fault=None, mechanisms="SCRAM-SHA-256 SCRAM-SHA-1 PLAIN"):
        super().__init__({Op.SASL_LIST: lambda frame: [{"value": mechanisms}],
                          Op.SASL_AUTH: self.auth, Op.SASL_STEP: self.step})
        self.password, self.fault = password, fault

    def auth(self, frame):
        self.hash = {b"SCRAM-SHA-256": "sha256", b"SCRAM-SHA-1": "sha1"}[frame.key]
        self.bare = frame.value[3:]
        nonce = dict(part.split(b"=", 1) for part in self.bare.split(b","))[b"r"]
        self.first = b"r=%sSERVER,s=%s,i=4096" % (nonce, base64.b64encode(b"salt" * 4))
        if self.fault == "nonce":
            self.first = b"r=other,s=%s,i=4096" % base64.b64encode(b"salt" * 4)
        return [{"status": 0x21, "value": self.first}]

    def step(self, frame):
        if not frame.value:
            return [{}]
        without = frame.value[:frame.value.rindex(b",p=")]
        message = self.bare + b"," + self.first + b"," + without
        mac = lambda key, text: hmac.new(key, text, self.hash).digest()
        salted = hashlib.pbkdf2_hmac(self.hash, self.password.encode(), b"salt" * 4, 4096)
        key = mac(salted, b"Client Key")
        proof = bytes(a ^ b for a, b in zip(key, mac(hashlib.new(self.hash, key).digest(), message)))
        if base64.b64decode(frame.value[len(without) + 3:]) != proof:
            return [{"status": 0x20, "value": "the login failed"}]
        signature = base64.b64encode(mac(mac(salted, b"Server Key"), message))
        if self.fault == "signature":
            signature = base64.b64encode(bytes(32))
        status = 0x21 if self.fault == "continue" else 0
        return [{"status": status, "value": b"" if self.fault == "empty" else b"v=" + signature}]


def test_login_by_scram():
    for mechanisms in ("SCRAM-SHA-256 SCRAM-SHA-1 PLAIN", "PLAIN SCRAM-SHA-1"):
        with ScramServer(mechanisms=mechanisms) as server:
            done = server.run("-u", "ann", "reload", env={"HEADGATE_PASSWORD": "pw"})
            assert (done.returncode, done.stderr) == (OK, ""), done
            assert [frame.opcode for frame in server.sent] == [
                Op.SASL_LIST, Op.SASL_AUTH, Op.SASL_STEP, Op.CONFIG_RELOAD]
            assert server.bare.startswith(b"n=ann,")
    with ScramServer(fault="continue") as server:      # the final as a challenge
        assert server.run("-u", "ann", "reload", env={"HEADGATE_PASSWORD": "pw"}).returncode == OK
        assert [frame.opcode for frame in server.sent].count(Op.SASL_STEP) == 2


@pytest.mark.parametrize("fault", ["nonce", "signature", "empty"])
def test_a_server_that_does_not_know_the_password_is_not_spoken_to(fault):
    with ScramServer(fault=fault) as server:
        done = server.run("-u", "ann", "reload", env={"HEADGATE_PASSWORD": "pw"})
        assert done.returncode == LOGIN and "ann" in done.stderr, done
        assert Op.CONFIG_RELOAD not in [frame.opcode for frame in server.sent]


def test_failed_login():
    with ScramServer() as server:
        done = server.run("-u", "ann", "reload", env={"HEADGATE_PASSWORD": "wrong"})
        assert done.returncode == LOGIN and "the login failed" in done.stderr, done
        assert "wrong" not in done.stderr and not done.stdout
    for mechanisms in ("", "PLAIN", "SCRAM-SHA-256-PLUS"):
        with ScramServer(mechanisms=mechanisms) as server:
            done = server.run("-u", "ann", "reload", env={"HEADGATE_PASSWORD": "pw"})
            assert done.returncode == LOGIN and "SCRAM" in done.stderr, done
            assert [frame.opcode for frame in server.sent] == [Op.SASL_LIST], "nothing is given away"


def test_where_the_password_comes_from(tmp_path):
    file = tmp_path / "password"
    file.write_bytes(b"from file\r\nsecond line\n")
    run = lambda server, *args, **more: server.run("-u", "ann", *args, "reload", **more)
    env = {"HEADGATE_PASSWORD": "from variable"}
    with ScramServer("from file") as server:
        assert run(server, "--password-file", str(file), env=env).returncode == OK
        assert run(server, "--password-file", "-", stdin="from file", env=env).returncode == OK
    with ScramServer("from variable") as server:
        assert run(server, env=env).returncode == OK
        for arguments, names in [(["--password-file", str(tmp_path / "none")], "none"),
                                 (["--password-file", str(tmp_path)], str(tmp_path))]:
            done = run(server, *arguments)
            assert done.returncode == USAGE and names in done.stderr, done
        for stdin, why in [("", "empty"), ("x" * 1025 + "\n", "1024")]:
            done = run(server, "--password-file", "-", stdin=stdin)
            assert done.returncode == USAGE and why in done.stderr, done
        assert run(server, env={"HEADGATE_PASSWORD": ""}).returncode == USAGE
        assert run(server, env={"HEADGATE_PASSWORD": "x" * 1025}).returncode == USAGE


# ---- the terminal ----

class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # A shell ignores SIGINT for what it runs in the background; a terminal does not.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.environ.pop("HEADGATE_PASSWORD", None)
            os.execv(HEADGATECTL, [HEADGATECTL, *args])
        self.text = ""

    def expect(self, pattern):
        """Reads until the pattern is there; what was read so far."""
        deadline = time.monotonic() + scaled(10)
        while not re.search(pattern, self.text):
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.fd], [], [], left)[0], self.text
            try:
                more = os.read(self.fd, 4096)
            except OSError:
                more = b""
            assert more, "%r ended without %r" % (self.text, pattern)
            self.text += more.decode()
        return self.text

    def type(self, text):
        os.write(self.fd, text.encode())

    def echoes(self):
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)

    def end(self):
        """Everything that was shown, and the wait status."""
        while True:
            if not select.select([self.fd], [], [], scaled(10))[0]:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                raise AssertionError("no end after %r" % self.text)
            try:
                more = os.read(self.fd, 4096)
            except OSError:
                break
            if not more:
                break
            self.text += more.decode()
        os.close(self.fd)
        return self.text.replace("\r\n", "\n"), os.waitpid(self.pid, 0)[1]


def test_passwd_on_a_terminal():
    terminal = Terminal("passwd", "ann")
    terminal.expect("New password of ann: $")
    assert not terminal.echoes()
    terminal.type("geheim\n")
    terminal.expect("Once more: $")
    assert not terminal.echoes()
    terminal.type("geheim\n")
    text, status = terminal.end()
    assert status == 0 and "geheim" not in text, text
    secret = re.search(r'"(SCRAM-SHA-256\$[^"]+)"', text).group(1)
    assert is_secret_of(secret, "geheim")


def test_passwd_typed_differently():
    terminal = Terminal("passwd")
    terminal.expect("New password: $")
    terminal.type("geheim\n")
    terminal.expect("Once more: $")
    terminal.type("geheim!\n")
    text, status = terminal.end()
    assert os.waitstatus_to_exitcode(status) == USAGE and "not the same" in text, text
    assert "SCRAM" not in text and "geheim" not in text


def test_interrupted_prompt_gives_the_echo_back():
    terminal = Terminal("passwd")
    terminal.expect("New password: $")
    assert not terminal.echoes()
    terminal.type("gehe\x03")
    text, status = terminal.end()
    assert os.waitstatus_to_exitcode(status) == -2, (text, status)


def test_login_prompt():
    with ScramServer("geheim") as server:
        terminal = Terminal("-s", server.where, "-u", "ann", "reload")
        terminal.expect("Password of ann: $")
        assert not terminal.echoes()
        terminal.type("geheim\n")
        text, status = terminal.end()
        assert status == 0 and "geheim" not in text, text
        assert server.sent[-1].opcode == Op.CONFIG_RELOAD


# ---- passwd ----

def is_secret_of(secret, password):
    """PBKDF2 and HMAC by Python's own means."""
    scheme, rest = secret.split("$", 1)
    count, salt = rest.split("$")[0].split(":")
    name = scheme.replace("SCRAM-", "")
    made = scram_secret(password, scheme, int(count), base64.b64decode(salt))
    digest = {"SHA-256": "sha256", "SHA-1": "sha1"}[name]
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(salt), int(count))
    stored = hashlib.new(digest, hmac.new(salted, b"Client Key", digest).digest()).digest()
    server = hmac.new(salted, b"Server Key", digest).digest()
    keys = rest.split("$")[1].split(":")
    return made == secret and keys == [base64.b64encode(k).decode() for k in (stored, server)]


def made_by(*args, stdin):
    done = ctl("passwd", *args, stdin=stdin)
    assert (done.returncode, done.stderr) == (OK, ""), done
    return done.stdout


@pytest.mark.parametrize("password", ["pw", " spaces ", "p:$,=\"'\\", "ä€", "x" * 1024])
def test_passwd_secrets(password):
    text = made_by("ann", stdin=password + "\n")
    secrets = re.findall(r'"(SCRAM-SHA-[^"]+)"', text)
    assert [secret.split("$")[0] for secret in secrets] == ["SCRAM-SHA-256", "SCRAM-SHA-1"]
    assert all(is_secret_of(secret, password) for secret in secrets), text
    assert not is_secret_of(secrets[0], password + "x")
    again = re.findall(r'"(SCRAM-SHA-[^"]+)"', made_by("ann", stdin=password))
    assert not set(secrets) & set(again), "another salt each time"
    salts = [base64.b64decode(secret.split("$")[1].split(":")[1]) for secret in secrets + again]
    assert {len(salt) for salt in salts} == {16} and len(set(salts)) == 4


def test_passwd_normalises():
    """A letter and its accent typed apart are the letter with the accent, as SCRAM's clients do."""
    secrets = re.findall(r'"(SCRAM-SHA-[^"]+)"', made_by("ann", stdin="a\u0308\u00a0\n"))
    assert all(is_secret_of(secret, "\u00e4 ") for secret in secrets)


def test_passwd_is_users_yaml(tmp_path):
    """What is printed is what goes under `users:`, whatever the name."""
    config = tmp_path / "c.yaml"
    users = tmp_path / "users.yaml"
    config.write_text("data_dir: %s\nusers_file: %s\n" % (tmp_path, users))
    names = ["ann", "a \"quoted\" name", "back\\slash", "null", "ünï", "007", "# no comment"]
    text = "users:\n" + "".join(made_by(name, stdin="pw") for name in names)
    users.write_text(text)
    done = subprocess.run([HEADGATE, "--check", "-c", str(config)], capture_output=True, text=True,
                          timeout=scaled(10))
    assert done.returncode == 0, done.stderr + text


def test_passwd_json():
    made = json.loads(made_by("--json", "ann", stdin="pw"))
    assert made["name"] == "ann" and len(made["secrets"]) == 2
    assert all(is_secret_of(secret, "pw") for secret in made["secrets"])
    assert list(json.loads(made_by("--json", stdin="pw"))) == ["secrets"]


def test_passwd_takes_no_password_from_the_login_variable():
    done = ctl("passwd", stdin="", env={"HEADGATE_PASSWORD": "pw"})
    assert done.returncode == USAGE and "empty" in done.stderr, done
