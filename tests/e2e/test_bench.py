"""test_bench - the comparison of `make bench` measures, reports and leaves nothing behind"""
# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import signal
import subprocess
import time

import pytest

from built import BUILD, SCALE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPARE = os.path.join(ROOT, "tests", "bench", "compare.py")


def servers_in(folder):
    """Processes that work below the folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/cwd" % pid).startswith(str(folder) + "/"):
                found.append(int(pid))
        except OSError:
            pass
    return found


def heed_interrupts():
    """In the child: what a shell starts in the background ignores SIGINT, and hands that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(tmp_path, *args):
    return subprocess.Popen(["/usr/bin/python3", COMPARE, "--build", BUILD, "--keys", "500",
                             "--warmup", "0.05", *args],
                            env={**os.environ, "TMPDIR": str(tmp_path)}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=heed_interrupts)


def poll_until(question, seconds=10.0):
    end = time.monotonic() + seconds * SCALE
    while time.monotonic() < end:
        if question():
            return
        time.sleep(0.02)
    raise AssertionError("waited %g s for %s" % (seconds * SCALE, question))


@pytest.mark.alone
def test_it_compares(tmp_path):
    file = tmp_path / "result.json"
    process = start(tmp_path, "--seconds", "0.1", "--repetitions", "2", "--connections", "1,3",
                    "--pipelines", "4", "--values", "20", "--targets", "memcached,haproxy",
                    "--json", str(file))
    out, err = process.communicate(timeout=60 * SCALE)
    assert process.returncode == 0, err
    assert "| memcached direct | 1 / " in out and "| haproxy, TCP mode | " in out
    result = json.loads(file.read_text())
    assert result["skipped"] == {} and result["failures"] == []
    assert [(r["target"], r["connections"]) for r in result["rows"]] == [
        ("memcached", 1), ("memcached", 3), ("haproxy", 1), ("haproxy", 3)]
    for row in result["rows"]:
        assert row["runs"] == 2 and row["ops_per_s"] > 0
        assert row["cpu_us"] > 0 and row["load_cpu_us"] > 0
        assert row["ratio_min"] <= row["ratio"] <= row["ratio_max"]
        assert (row["store_cpu_us"] is None) == (row["target"] == "memcached")
    assert all(row["ratio"] == 1 for row in result["rows"] if row["target"] == "memcached")
    assert servers_in(tmp_path) == []
    assert os.listdir(tmp_path) == ["result.json"]


@pytest.mark.alone
def test_what_stands_before_redis_is_compared_with_redis(tmp_path):
    file = tmp_path / "result.json"
    process = start(tmp_path, "--seconds", "0.1", "--repetitions", "1", "--connections", "50",
                    "--pipelines", "16", "--values", "32", "--targets",
                    "memcached,redis,nutcracker-redis,headgate-redis", "--json", str(file))
    out, err = process.communicate(timeout=60 * SCALE)
    assert process.returncode == 0, err
    assert "× of Redis direct / CPU" in out and "× of memcached direct / CPU" in out
    assert ": Headgate → Redis, 50 connections, depth 16, 32 bytes:" in out
    assert "µs, nutcracker → Redis has " in out
    rows = {r["target"]: r for r in json.loads(file.read_text())["rows"]}
    assert list(rows) == ["memcached", "redis", "nutcracker-redis", "headgate-redis"]
    for name, row in rows.items():
        assert row["runs"] == 1 and row["ops_per_s"] > 0 and row["cpu_us"] > 0
        assert (row["store_cpu_us"] is None) == (name in ("memcached", "redis"))
    assert rows["redis"]["ratio"] == 1
    assert rows["headgate-redis"]["ratio"] == pytest.approx(
        rows["headgate-redis"]["ops_per_s"] / rows["redis"]["ops_per_s"])


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_leaves_nothing_behind(tmp_path, number):
    process = start(tmp_path, "--seconds", "30", "--targets", "memcached,haproxy,nutcracker")
    try:
        poll_until(lambda: len(servers_in(tmp_path)) >= 4)
        process.send_signal(number)
        process.communicate(timeout=20 * SCALE)
    finally:
        process.kill()
    assert process.returncode == (130 if number != signal.SIGKILL else -signal.SIGKILL)
    poll_until(lambda: servers_in(tmp_path) == [])
    if number != signal.SIGKILL:
        assert os.listdir(tmp_path) == []


@pytest.mark.alone
def test_a_target_that_is_missing_is_skipped_with_the_reason(tmp_path):
    build = tmp_path / "build"
    build.mkdir()
    os.symlink(os.path.join(BUILD, "headgate-load"), build / "headgate-load")
    process = start(tmp_path, "--build", str(build), "--seconds", "0.1", "--repetitions", "1",
                    "--connections", "1", "--pipelines", "1", "--values", "20", "--targets",
                    "memcached,headgate")
    out, _ = process.communicate(timeout=60 * SCALE)
    assert process.returncode == 0
    assert "skipped: Headgate → memcached: %s/headgate does not exist" % build in out


def test_an_unknown_target_is_named(tmp_path):
    process = start(tmp_path, "--targets", "mcrouter")
    _, err = process.communicate(timeout=20 * SCALE)
    assert process.returncode == 2
    assert "'mcrouter' is none of memcached, haproxy, nutcracker, headgate, embedded, redis," in err
