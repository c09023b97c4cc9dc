"""test_ops - the command line, reload, drain, statistics and headgatectl: what an operator does."""
# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import signal
import socket
import subprocess
import time

import pytest

from credit_tools import admin, details, enter, start
from mcbin import Client, Closed, Feature, Op, St, poll, request, scaled, set_extras, show
from servers import (FakeBackend, HEADGATE, Headgate, describe_config, free_port, headgatectl,
                     user_row)


def run(*args, **options):
    return subprocess.run([HEADGATE, *args], capture_output=True, text=True, timeout=scaled(20),
                          **options)


def check(tmp_path, text):
    path = tmp_path / "headgate.yaml"
    path.write_text(text)
    return run("--check", "-c", str(path))


# ---- the command line ----

def test_version_and_help():
    done = run("--version")
    assert done.returncode == 0 and "headgate" in done.stdout, done
    done = run("--help")
    assert done.returncode == 0
    for option in ("-c", "-l", "-d", "-t", "--check", "--describe-config", "--describe-stats",
                   "--version", "--help"):
        assert option in done.stdout, "%s is not in --help" % option
    done = run("--nonsense")
    assert done.returncode != 0 and "nonsense" in done.stderr, done


@pytest.mark.parametrize("first,second", [
    ("--check", "--take-over"), ("--check", "--restore=x"), ("--restore=x", "--take-over"),
    ("--sample-config", "--check"), ("--describe-config", "--describe-stats"),
    ("--describe-metrics", "--take-over")])
def test_one_thing_at_a_time(first, second):
    for both in ([first, second], [second, first]):
        done = run(*both)
        assert (done.returncode, done.stdout) == (2, ""), done
        assert all(one.split("=")[0] in done.stderr for one in both), done
    helped = run(first, "--help")
    assert helped.returncode == 0 and helped.stdout.startswith("usage:"), helped


def test_describe_config_names_every_option():
    text = describe_config()
    for option in ("listen", "threads", "data_dir", "state_file", "users_file", "node_capacity",
                   "throttle_slot_ms", "throttle_max_wait_ms", "free_pool", "slow_start_percent",
                   "max_value_bytes", "max_frame_bytes", "idle_timeout_s", "max_connections",
                   "request_deadline_ms", "drain_timeout_s", "ring", "hash", "backend_timeout_ms",
                   "connect_timeout_ms", "queue_timeout_ms", "reconnect_max_ms", "pool_depth",
                   "multiget_backend_error", "eject_servers", "allow_flush", "reserved",
                   "hard_limit", "credit_mode", "reject_status", "key_prefix",
                   "embedded_max_bytes", "sync", "default_throttle_reserved_units",
                   "default_throttle_hard_limit"):
        assert option in text, "%s is not described" % option


def test_describe_stats():
    done = run("--describe-stats")
    assert done.returncode == 0
    for name in ("num_throttled", "ru", "wu", "bucket_details", "where", "reset"):
        assert name in done.stdout, name


GOOD = """
listen:
  - {address: 127.0.0.1:11311}
threads: 2
node_capacity: 25000
upstreams:
  - {name: cache, kind: memcached, ring: ketama, servers: [{address: 127.0.0.1:1, weight: 1}]}
  - {name: rows, kind: embedded}
tenants:
  - {name: shop, upstream: cache, reserved: 5000, hard_limit: 20000}
  - {name: ledger, upstream: rows, reserved: 1666, hard_limit: unlimited}
"""


def test_check_accepts_a_good_file(tmp_path):
    done = check(tmp_path, GOOD)
    assert done.returncode == 0, done


BAD = [
    ("unknown option", GOOD + "no_such_option: 1\n", 12, "no_such_option"),
    ("unknown in a row", GOOD.replace("reserved: 5000", "reservd: 5000"), 10, "reservd"),
    ("not a number", GOOD.replace("threads: 2", "threads: two"), 4, "threads"),
    ("out of range", GOOD.replace("threads: 2", "threads: 100000"), 4, "threads"),
    ("negative", GOOD.replace("25000", "-1"), 5, "node_capacity"),
    ("fraction", GOOD.replace("25000", "1.5"), 5, "node_capacity"),
    ("bad choice", GOOD.replace("ring: ketama", "ring: circle"), 7, "circle"),
    ("unknown upstream", GOOD.replace("upstream: rows", "upstream: cows"), 11, "cows"),
    ("reserved over the limit", GOOD.replace("reserved: 5000", "reserved: 50000"), 10, "reserved"),
    ("duplicate option", GOOD + "threads: 3\n", 12, "threads"),
    ("duplicate tenant", GOOD + "  - {name: shop, upstream: cache}\n", 12, "shop"),
    ("no name", GOOD + "  - {upstream: cache}\n", 12, "name"),
    ("alias", GOOD + "log_level: &x info\nlog_file: *x\n", 13, ""),
    ("second document", GOOD + "---\nthreads: 1\n", 12, ""),
    ("list for a number", GOOD.replace("threads: 2", "threads: [2]"), 4, "threads"),
    ("broken yaml", GOOD + "x: [1, 2\n", 12, ""),
    ("tab", GOOD + "\tthreads: 1\n", 12, ""),
    ("bad address", GOOD.replace("127.0.0.1:11311", "127.0.0.1:port"), 3, "address"),
    ("bad port", GOOD.replace("127.0.0.1:11311", "127.0.0.1:70000"), 3, "address"),
    ("option of another kind", GOOD.replace("kind: embedded", "kind: embedded, ring: ketama"), 8,
     "ring"),
]


@pytest.mark.parametrize("text,line,name", [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_check_names_line_and_option(tmp_path, text, line, name):
    done = check(tmp_path, text)
    assert done.returncode != 0, done
    told = done.stderr
    assert "headgate.yaml" in told, told
    assert ":%d" % line in told or "line %d" % line in told or ":%d" % (line + 1) in told, \
        "line %d is not named: %s" % (line, told)
    assert name in told, told
    assert "Traceback" not in told


def test_check_of_a_file_that_is_not_there(tmp_path):
    done = run("--check", "-c", str(tmp_path / "missing.yaml"))
    assert done.returncode != 0 and "missing.yaml" in done.stderr, done


def test_check_reads_the_users_file(tmp_path):
    users = tmp_path / "users.yaml"
    users.write_text("users: [{name: x, secrets: [SCRAM-SHA-256$nonsense]}]\n")
    done = check(tmp_path, GOOD + "users_file: %s\n" % users)
    assert done.returncode != 0 and "users.yaml" in done.stderr, done


def test_users_file_that_is_not_there(tmp_path):
    done = check(tmp_path, "threads: 1\nusers_file: nope.yaml\n")
    assert done.returncode == 1 and ("headgate.yaml:2: cannot read users_file 'nope.yaml': "
                                     "No such file or directory") in done.stderr, done


def test_warnings_are_printed_once(tmp_path):
    """By --check, and at a start, which judges the file and then what opcodes have made of it."""
    config = {"upstreams": [{"name": "mc", "kind": "memcached",
                             "servers": [{"address": "127.0.0.1:%d" % free_port()}]}],
              "tenants": [{"name": "default"}, {"name": "shop"}]}
    with Headgate(config) as daemon:
        for text in (run("--check", "-c", daemon.config_path).stderr, daemon.stderr()):
            lines = [line for line in text.splitlines() if line.startswith("warning: ")]
            assert len(lines) == len(set(lines)) == 2 and "'shop:'" in lines[1], text


def test_empty_file_and_no_file(tmp_path):
    assert check(tmp_path, "").returncode == 0
    assert check(tmp_path, "# nothing but a comment\n").returncode == 0


def test_options_of_the_command_line_win(tmp_path):
    """-l, -d and -t without a file: a working server on the embedded store."""
    port = free_port()
    data = tmp_path / "data"
    child = subprocess.Popen([HEADGATE, "-l", "127.0.0.1:%d" % port, "-d", str(data), "-t", "2"],
                             cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        def ready():
            try:
                with Client(("127.0.0.1", port)) as client:
                    return client.stat()["threads"] == "2" and client.set(b"k", b"v").status == 0
            except OSError:
                return False
        poll(ready, 10, what="a server on the port of -l")
        assert data.is_dir() and os.listdir(data)
    finally:
        child.send_signal(signal.SIGTERM)
        log = child.communicate(timeout=scaled(15))[1]
    assert child.returncode == 0, log


def test_busy_port(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        where = "127.0.0.1:%d" % taken.getsockname()[1]
        done = run("-l", where, "-d", str(tmp_path / "data"))
    assert done.returncode != 0
    assert "cannot bind" in done.stderr and where in done.stderr, done.stderr
    assert "in use" in done.stderr.lower(), done.stderr


def test_no_listening_to_the_world_without_users(tmp_path):
    port = free_port()
    done = run("-l", "0.0.0.0:%d" % port, "-d", str(tmp_path / "data"))
    assert done.returncode != 0 and "insecure" in done.stderr, done.stderr


# ---- reload ----

def test_sighup_reload():
    with start([{"name": "shop", "hard_limit": 100}]) as daemon, admin(daemon) as boss:
        tenants = [dict(row) for row in daemon.config["tenants"]]
        tenants[0]["hard_limit"] = 300
        daemon.write_config(tenants=tenants + [{"name": "late"}], throttle_max_wait_ms=1234)
        daemon.process.signal(signal.SIGHUP)
        poll(lambda: details(boss, "shop")["throttle_hard_limit"] == 300, 5, what="the new limit")
        assert boss.select("late").status == 0
        assert "1234" in json.dumps(boss.stat("settings"))
        assert "hard_limit" in daemon.stderr(), "what changed is logged"


def test_reload_of_a_bad_file_changes_nothing():
    with start([{"name": "shop", "hard_limit": 100}]) as daemon, admin(daemon) as boss:
        good = dict(daemon.config)
        errors = int(boss.stat()["reload_errors"])
        daemon.write_config(tenants=[{"name": "shop", "hard_limit": 300}], no_such_option=1)
        daemon.process.signal(signal.SIGHUP)
        poll(lambda: int(boss.stat()["reload_errors"]) > errors, 5, what="the error counted")
        assert "no_such_option" in daemon.stderr()
        assert details(boss, "shop")["throttle_hard_limit"] == 100
        frame = boss.call(Op.CONFIG_RELOAD)
        assert frame.status == St.EINVAL and b"no_such_option" in frame.value, show(frame)
        daemon.config = good
        daemon.write_config()
        assert boss.call(Op.CONFIG_RELOAD).status == 0


def test_reload_names_what_needs_a_restart():
    with start([{"name": "shop"}], threads=1) as daemon, admin(daemon) as boss:
        daemon.write_config(threads=2)
        assert boss.call(Op.CONFIG_RELOAD).status == 0
        assert "threads" in daemon.stderr() and "restart" in daemon.stderr()
        assert boss.stat()["threads"] == "1"


def test_reload_closes_connections_of_revoked_users():
    with start([{"name": "shop"}, {"name": "other"}]) as daemon, admin(daemon) as boss:
        gone, stays = enter(daemon, "shop"), enter(daemon, "other")
        users = dict(daemon.users)
        users["users"] = [row for row in users["users"] if row["name"] != "shop"]
        daemon.write_users(users)
        assert boss.call(Op.CONFIG_RELOAD).status == 0
        with pytest.raises(Closed):
            gone.recv(3)
        assert stays.set(b"k", b"v").status == 0
        with daemon.client() as client:
            assert client.sasl_plain("shop", "pw").status == St.AUTH_ERROR


def test_settings_by_opcode_win_over_the_file():
    with start([{"name": "shop", "hard_limit": 100}]) as daemon, admin(daemon) as boss:
        boss.ok(Op.SET_BUCKET_THROTTLE, b"shop", b'{"hard_limit":55}')
        assert boss.call(Op.CONFIG_RELOAD).status == 0
        assert details(boss, "shop")["throttle_hard_limit"] == 55
        assert "hard_limit" in daemon.stderr(), "the reload warns about lines it overrides"


def test_set_param():
    with start([{"name": "shop", "hard_limit": 100}]) as daemon, admin(daemon) as boss:
        assert boss.call(Op.SET_PARAM, b"tenant.shop.hard_limit", b"66").status == 0
        assert details(boss, "shop")["throttle_hard_limit"] == 66
        assert boss.call(Op.SET_PARAM, b"tenant.shop.hard_limit", b"").status == 0
        assert details(boss, "shop")["throttle_hard_limit"] == 100, "back to the file's"
        assert boss.call(Op.SET_PARAM, b"node_capacity", b"5000").status == 0
        assert boss.call(Op.SET_PARAM, b"node_capacity", b"lots").status == St.EINVAL
        frame = boss.call(Op.SET_PARAM, b"tenant.nobody.hard_limit", b"1")
        assert frame.status in (St.ENOENT, St.EINVAL), show(frame)
        with enter(daemon, "shop") as client:
            assert client.call(Op.SET_PARAM, b"node_capacity", b"1").status == St.EACCESS


# ---- drain ----

def slow_backend(delay_s):
    def handler(connection, frame):
        if frame.key == b"slow":
            time.sleep(delay_s)
        FakeBackend.store(connection, frame)
    return FakeBackend(handler)


def over(fake, **options):
    upstream = {"name": "store", "kind": "memcached", "servers": [{"address": fake.where}],
                "backend_timeout_ms": 5000}
    return dict({"upstreams": [upstream], "tenants": [{"name": "default"}],
                 "request_deadline_ms": 6000}, **options)


def test_sigterm_finishes_what_is_in_flight():
    fake = slow_backend(0.6)
    daemon = Headgate(over(fake))
    with daemon.client() as client, daemon.client() as idle:
        client.set(b"slow", b"v")
        client.send(request(Op.GET, b"slow", opaque=1) + request(Op.GET, b"slow", opaque=2))
        poll(lambda: fake.count(Op.GET) >= 1, what="the request at the backend")
        daemon.process.signal(signal.SIGTERM)

        def refused():
            try:
                Client(daemon.address).close()
                return False
            except OSError:
                return True
        poll(refused, within=2, what="no more connections accepted")
        assert client.recv(3).value == b"v"
        assert client.recv(3).value == b"v"
        with pytest.raises(Closed):
            client.recv(3)
        with pytest.raises(Closed):
            idle.recv(3)
    assert daemon.process.wait(5) == 0
    daemon.stop()
    fake.stop()


def test_second_sigterm_ends_at_once():
    fake = slow_backend(5)
    daemon = Headgate(over(fake, drain_timeout_s=30))
    with daemon.client() as client:
        client.send(request(Op.GET, b"slow"))
        poll(lambda: fake.count(Op.GET) >= 1, what="the request at the backend")
        begun = time.monotonic()
        daemon.process.signal(signal.SIGTERM)
        poll(lambda: "draining" in daemon.stderr(), what="the drain begun")
        assert daemon.process.alive()
        daemon.process.signal(signal.SIGTERM)
        daemon.process.wait(3)
        assert time.monotonic() - begun < scaled(1.5)
    daemon.stop(check=False)
    fake.stop()


def test_drain_has_a_bound():
    fake = slow_backend(5)
    daemon = Headgate(over(fake, drain_timeout_s=1))
    with daemon.client() as client:
        client.send(request(Op.GET, b"slow"))
        poll(lambda: fake.count(Op.GET) >= 1, what="the request at the backend")
        begun = time.monotonic()
        daemon.process.signal(signal.SIGTERM)
        assert daemon.process.wait(5) == 0
        assert 0.5 < time.monotonic() - begun < scaled(2.5)
    daemon.stop()
    fake.stop()


def test_sigterm_while_requests_are_held():
    daemon = start([{"name": "shop", "hard_limit": 0}])
    client = enter(daemon, "shop")
    client.send(request(Op.SET, b"k", b"v", set_extras(), opaque=3))
    assert client.silent(0.1)
    begun = time.monotonic()
    daemon.process.signal(signal.SIGTERM)
    frames = client.recv_until_closed(12)
    assert len(frames) <= 1 and all(f.status for f in frames)
    assert daemon.process.wait(12) == 0
    assert time.monotonic() - begun < scaled(11)
    daemon.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_embedded_store_survives(number):
    """A clean end and the death of the process: every answered write is there afterwards."""
    with Headgate() as daemon:
        with daemon.client() as client:
            assert client.quiet(*(request(Op.SETQ, b"k%d" % n, b"v%d" % n * 50, set_extras(n))
                                  for n in range(2000))) == []
            client.set(b"short", b"v", expiry=1)
            cas = client.set(b"k1", b"changed", flags=9).cas
        if number == signal.SIGTERM:
            daemon.restart()
        else:
            daemon.process.kill()
            daemon.start()
        with daemon.client() as client:
            frames = client.quiet(*(request(Op.GETQ, b"k%d" % n, opaque=n) for n in range(2000)))
            assert len(frames) == 2000
            assert all(f.value == b"v%d" % f.opaque * 50 for f in frames if f.opaque != 1)
            got = client.get(b"k1")
            assert (got.value, got.cas, got.extras) == (b"changed", cas, b"\0\0\0\x09")
            assert client.set(b"k1", b"x").cas > cas, "a CAS is never used again"
            poll(lambda: client.get(b"short").status == St.ENOENT, within=4, what="expiry after restart")


# ---- statistics ----

def test_every_group_ends_with_one_empty_packet():
    with start([{"name": "shop"}]) as daemon, admin(daemon, "shop") as boss:
        boss.set(b"k", b"v")
        for group in ("", "settings", "threads", "connections", "buckets", "bucket_details",
                      "bucket_details shop", "throttle", "ops", "upstreams", "slow", "where k"):
            frames, last = boss.stat_frames(group)
            assert last.status == 0, (group, show(last))
            assert frames or group == "slow", "nothing in '%s'" % group
            boss.noop()
        frames, last = boss.stat_frames("no such group")
        assert last.status == St.ENOENT and not frames, show(last)
        boss.stat("reset")
        boss.noop()


def test_stat_rows_tell_the_truth():
    with start([{"name": "shop", "reserved": 12, "hard_limit": 3456}], node_capacity=7890,
               threads=2) as daemon, admin(daemon, "shop") as boss:
        for number in range(10):
            boss.set(b"k%d" % number, b"v")
        boss.get(b"k1")
        boss.get(b"missing")
        rows = boss.stat()
        assert int(rows["pid"]) == daemon.pid and rows["threads"] == "2"
        assert int(rows["cmd_set"]) == 10 and int(rows["cmd_get"]) == 2
        assert int(rows["get_hits"]) == 1 and int(rows["get_misses"]) == 1
        assert int(rows["curr_connections"]) == 1
        settings = json.dumps(boss.stat("settings"))
        for value in ("7890", "3456", "200"):
            assert value in settings, value
        connections = boss.stat("connections")
        assert len(connections) == 1 and "admin" in json.dumps(connections), connections
        buckets = {name: json.loads(value) for name, value in boss.stat("buckets").items()}
        assert set(buckets) == {"shop", "default"}
        assert buckets["shop"]["throttle_hard_limit"] == 3456
        for name in ("ru", "wu", "num_throttled", "num_rejected", "throttle_reserved",
                     "throttle_wait_time", "state", "clients", "data_ingress_status",
                     "num_commands"):
            assert name in buckets["shop"], name
        throttle = boss.stat("throttle")
        assert throttle["node_capacity"] == "7890", throttle
        ops = boss.stat("ops")
        assert any("set" in name.lower() and value == "10" for name, value in ops.items()), ops
        assert "store" in json.dumps(boss.stat("upstreams"))
        assert json.loads(boss.ok(Op.GET_CMD_TIMER, extras=bytes([Op.SET])).value)


def test_reset_sets_counters_to_zero_and_gauges_not():
    with start([{"name": "shop"}]) as daemon, admin(daemon, "shop") as boss:
        boss.set(b"k", b"v")
        boss.stat("reset")
        rows = boss.stat()
        assert rows["cmd_set"] == "0" and int(rows["curr_connections"]) == 1
        assert details(boss, "shop")["wu"] == 0


def test_outcomes_of_the_process_add_up():
    """Every request in exactly one outcome, session operations too."""
    with start([{"name": "shop"}]) as daemon, admin(daemon, "shop") as boss:
        total = lambda: sum(int(v) for k, v in boss.stat().items() if k.startswith("outcome_"))
        before = total()
        kinds = [request(Op.NOOP), request(Op.GET, b"missing"), request(Op.SET, b"k"),
                 request(0x77), request(Op.VERSION), request(Op.SET, b"k", b"v", set_extras()),
                 request(Op.SELECT_BUCKET, b"nowhere"), request(Op.GETQ, b"missing"),
                 request(Op.STAT, b"nonsense"), request(Op.HELLO)]
        boss.quiet(*kinds * 10)
        # 100 requests, the NOOP behind them, and the stat before this one.
        assert total() - before == 102


def test_slow_requests_are_listed():
    fake = slow_backend(0.3)
    with Headgate(over(fake, slow_request_ms=100)) as daemon, daemon.client() as client:
        client.get(b"quick")
        client.get(b"slow")
        rows = client.stat("slow")
        assert len(rows) == 1, rows
        text = json.dumps(rows)
        assert "slow" in text and fake.where in text, text
    fake.stop()


def test_upstreams_tell_of_servers():
    fake = FakeBackend()
    with Headgate(over(fake)) as daemon, daemon.client() as client:
        client.set(b"k", b"v")
        assert fake.where in json.dumps(client.stat("upstreams"))
        assert fake.where in json.dumps(client.stat("where k"))
    fake.stop()


def test_rows_of_other_tenants_need_stats():
    users = [user_row("blind", buckets={"shop": ["Read", "Write"]})]
    with start([{"name": "shop"}, {"name": "other"}], users=users) as daemon:
        with daemon.client() as client, enter(daemon, "shop"), enter(daemon, "other"):
            client.login("blind", "pw")
            assert client.select("shop").status == 0
            assert set(client.stat("buckets")) == {"shop"}, "the own bucket only"
            assert client.stat_frames("bucket_details other")[1].status == St.EACCESS
            assert "other" not in json.dumps(client.stat("connections"))
            assert "other:" not in json.dumps(client.stat("throttle"))


# ---- the log ----

def test_administrative_changes_are_logged():
    with start([{"name": "shop", "hard_limit": 10}]) as daemon, admin(daemon) as boss:
        boss.ok(Op.SET_BUCKET_THROTTLE, b"shop", b'{"hard_limit":4321}')
        log = next(line for line in daemon.stderr().splitlines() if "4321" in line)
        for part in ("admin", "127.0.0.1", "hard_limit", "10"):
            assert part in log, log


def test_secrets_are_not_logged():
    with start([{"name": "shop"}], log_level="debug") as daemon:
        with daemon.client() as client:
            client.sasl_plain("shop", "a-wrong-secret")
            client.login("shop", "pw")
        log = daemon.stderr()
        assert "a-wrong-secret" not in log and "SCRAM-SHA-256$" not in log


def test_log_file_is_opened_again(tmp_path):
    log = tmp_path / "headgate.log"
    with start([{"name": "shop", "hard_limit": 1}], log_file=str(log)) as daemon:
        with admin(daemon) as boss:
            poll(log.exists, what="the log file")
            log.rename(tmp_path / "old.log")
            daemon.process.signal(signal.SIGUSR1)
            poll(log.exists, what="the log file again")
            boss.ok(Op.SET_BUCKET_THROTTLE, b"shop", b'{"hard_limit":4321}')
            poll(lambda: "4321" in log.read_text(), what="the change in the new file")


# ---- headgatectl ----

@pytest.fixture(scope="module")
def plain():
    """No users file: everybody may do everything on loopback."""
    config = {"upstreams": [{"name": "store", "kind": "embedded"}],
              "tenants": [{"name": "default"}, {"name": "shop", "hard_limit": 1000}]}
    with Headgate(config) as daemon:
        yield daemon


def bucket_rows(daemon):
    return json.loads(daemon.ctl("--json", "buckets").stdout)


def bucket_row(daemon, name):
    rows = bucket_rows(daemon)
    rows = rows.get("buckets", rows) if isinstance(rows, dict) else rows
    if isinstance(rows, dict):
        return rows[name]
    return next(row for row in rows if row["name"] == name)


def test_ctl_status(plain):
    text = plain.ctl("status").stdout
    assert str(plain.pid) in text or "uptime" in text.lower(), text
    json.loads(plain.ctl("--json", "status").stdout)


def test_ctl_stats(plain):
    assert "curr_connections" in plain.ctl("stats").stdout
    assert "throttle_slot_ms" in plain.ctl("stats", "settings").stdout
    assert "throttle_slot_ms" in json.dumps(
        json.loads(plain.ctl("--json", "stats", "settings").stdout))
    done = plain.ctl("stats", "nonsense", check=False)
    assert done.returncode != 0 and "group" in done.stderr, done


def test_ctl_buckets_set_and_unset(plain):
    assert "shop" in plain.ctl("buckets").stdout
    plain.ctl("set", "bucket", "shop", "reserved=5", "hard_limit=55")
    row = bucket_row(plain, "shop")
    assert (row["throttle_reserved"], row["throttle_hard_limit"]) == (5, 55)
    plain.ctl("unset", "bucket", "shop")
    row = bucket_row(plain, "shop")
    assert (row["throttle_reserved"], row["throttle_hard_limit"]) == (0, 1000), "the file's again"
    plain.ctl("set", "node", "capacity=777")
    assert "777" in plain.ctl("stats", "throttle").stdout
    plain.ctl("unset", "node")
    poll(lambda: "777" not in plain.ctl("stats", "throttle").stdout, what="the next slot")
    done = plain.ctl("set", "bucket", "shop", "reserved=500", "hard_limit=5", check=False)
    assert done.returncode != 0 and "reserved" in done.stderr and not done.stdout, done
    done = plain.ctl("set", "bucket", "nobody", "reserved=1", check=False)
    assert done.returncode != 0, done


def test_ctl_create_and_delete(plain):
    plain.ctl("create", "bucket", "fresh", "hard_limit=9")
    assert bucket_row(plain, "fresh")["throttle_hard_limit"] == 9
    assert plain.ctl("create", "bucket", "fresh", check=False).returncode != 0
    plain.ctl("delete", "bucket", "fresh")
    assert "fresh" not in plain.ctl("buckets").stdout
    assert plain.ctl("delete", "bucket", "fresh", check=False).returncode != 0


def test_ctl_where(plain):
    assert plain.ctl("where", "some key").stdout.strip()
    json.loads(plain.ctl("--json", "where", "some key").stdout)


def test_ctl_errors():
    done = headgatectl("status", server="127.0.0.1:%d" % free_port(), check=False)
    assert done.returncode == 3 and done.stderr and not done.stdout, done
    done = headgatectl("nonsense", check=False)
    assert done.returncode == 2 and "nonsense" in done.stderr, done
    assert headgatectl(check=False).returncode == 2
    done = headgatectl("--help")
    for verb in ("status", "stats", "buckets", "set", "unset", "create", "delete", "where",
                 "passwd"):
        assert verb in done.stdout, verb


def test_ctl_passwd_makes_a_secret_that_works():
    secret = headgatectl("passwd", stdin="correct horse\n").stdout.strip().splitlines()
    line = next(text for text in secret if "SCRAM-SHA-256$" in text)
    value = line[line.index("SCRAM-SHA-256$"):].split('"')[0].split(",")[0].rstrip("]}' ")
    users = {"users": [{"name": "ann", "secrets": [value], "buckets": {"default": ["Read"]}}]}
    with Headgate(users=users) as daemon, daemon.client() as client:
        client.login("ann", "correct horse", "SCRAM-SHA-256")
        assert client.select("default").status == 0


def test_ctl_with_a_login():
    with start([{"name": "shop"}]) as daemon:
        done = daemon.ctl("set", "node", "capacity=5", check=False)
        assert done.returncode != 0 and done.stderr, "anonymous may not"
        env = {"HEADGATE_PASSWORD": "pw"}
        daemon.ctl("set", "node", "capacity=5", user="admin", env=env)
        with admin(daemon) as boss:
            assert boss.stat("throttle")["node_capacity"] == "5"
        done = daemon.ctl("status", user="admin", env={"HEADGATE_PASSWORD": "wrong"}, check=False)
        assert done.returncode == 4 and "wrong" not in done.stderr, done


def test_hello_names_the_agent_in_connections(plain):
    with plain.client() as client:
        client.hello(Feature.XERROR, agent=b"my-agent/1.0")
        assert "my-agent/1.0" in json.dumps(client.stat("connections"))
