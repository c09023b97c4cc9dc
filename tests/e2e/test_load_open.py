"""test_load_open - headgate-load's open loop, its rates in steps, its file of intervals and the
plot that is made of it, against a real memcached and against servers that are slow"""
# SPDX-License-Identifier: BSD-3-Clause

import csv
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest

from test_load import (BUILD, LOAD, ROOT, SCALE, fake, good_answer, load,  # noqa: F401
                       memcached, run, value_of)

PLOT = os.path.join(ROOT, "doc", "plot-overload")
COUNTS = ("offered", "sent", "answered", "ok", "within_slo", "missed", "refused", "wrong",
          "not_sent", "unanswered")


def read_series(path):
    """{(scope, tenant): [row]}, numbers as numbers."""
    found = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name = row.pop("scope"), row.pop("tenant")
            found.setdefault(name, []).append(
                {k: None if v == "" else float(v) if "." in v else int(v) for k, v in row.items()})
    return found


def total(rows, name):
    return sum(row[name] for row in rows)


def check_account(result):
    """Every intended request became one thing."""
    assert result["intended"] == result["sent"] + result["shed"] + result["left"]
    assert result["sent"] == sum(result[name] for name in (
        "done", "missed", "refused", "wrong", "unanswered"))
    assert result["operations"] == result["sent"] - result["unanswered"]
    assert sum(result["statuses"].values()) == result["operations"]


def check_series(rows, result):
    """The intervals of a load add up to its report."""
    for name, wanted in (("offered", result["intended"]), ("sent", result["sent"]),
                         ("answered", result["operations"]),
                         ("ok", result["done"] + result["missed"]), ("missed", result["missed"]),
                         ("refused", result["refused"]), ("wrong", result["wrong"]),
                         ("within_slo", result["within_slo"]),
                         ("not_sent", result["shed"] + result["left"]),
                         ("unanswered", result["unanswered"])):
        assert total(rows, name) == wanted, name
    for code, count in result["statuses"].items():
        assert total(rows, "status_" + code) == count
    assert rows[-1]["waiting"] == rows[-1]["in_flight"] == 0
    assert all(row["waiting"] >= 0 and row["in_flight"] >= 0 for row in rows)
    slowest = max(row["max_ms"] for row in rows if row["ok"])
    assert abs(slowest - result["latency_us"]["max"] / 1000) <= 0.001
    for row in rows:
        if row["ok"]:
            assert 0 < row["p50_ms"] <= row["p99_ms"] <= row["max_ms"]
        else:
            assert row["p50_ms"] is row["p99_ms"] is row["max_ms"] is None


def slow(seconds):
    def answer(request, peer):
        time.sleep(seconds)
        return good_answer(request, peer)
    return answer


# What becomes of the requests.

@pytest.mark.parametrize("arrivals", ["steady", "poisson"])
@pytest.mark.parametrize("threads,connections,depth,waiting", [
    (1, 2, 1, 20), (2, 3, 2, 7), (2, 2, 1, 0), (1, 1, 4, 100000)])
def test_an_overload_is_accounted_for(fake, tmp_path, arrivals, threads, connections, depth,
                                      waiting):
    """400 requests in 0.8 s, to a server that takes 10 ms for each, on a connection at a time."""
    server = fake(slow(0.01))
    path = tmp_path / "series.csv"
    report, _ = load("-s", server.address, "-t", 0.8, "-c", connections, "-p", depth, "--threads",
                     threads, "--rate", 500, "--arrivals", arrivals, "--waiting", waiting,
                     "--slo-ms", 30, "--series", path, "--warmup", 0.2 if waiting < 1000 else 0)
    result = report["total"]
    check_account(result)
    if arrivals == "steady":
        assert result["intended"] == 400
    else:
        assert 280 < result["intended"] < 520, "six deviations of a Poisson count"
    assert result["left"] <= waiting and result["late_us"]["max"] >= result["late_us"]["p99"]
    assert (result["shed"] > 0) == (waiting < 1000)
    assert result["within_slo"] <= result["done"]
    series = read_series(path)
    assert list(series) == [("run", "*"), ("tenant", "default")]
    for rows in series.values():
        check_series(rows, result)
        assert max(row["in_flight"] for row in rows) <= connections * depth
        assert max(row["waiting"] for row in rows) <= waiting + connections * depth
    if waiting == 100000:
        assert result["left"] > 200 and result["latency_us"]["max"] > 100000


def test_the_server_is_sent_what_is_said_to_be_sent(memcached):
    report, _ = load("-s", memcached.address, "-t", 0.5, "--rate", 2000, "--arrivals", "poisson",
                     "-c", 20, "--threads", 2)
    result = report["total"]
    check_account(result)
    assert memcached.stat("cmd_get") + memcached.stat("cmd_set") == result["sent"]
    assert report["tenants"][0]["arrivals"] == "poisson"


@pytest.mark.parametrize("arrivals", ["steady", "poisson"])
@pytest.mark.parametrize("warmup", [[], ["--warmup", 0.1]])
def test_operations_bound_an_open_loop(memcached, arrivals, warmup):
    report, _ = load("-s", memcached.address, "-n", 501, "--rate", 2000, "--arrivals", arrivals,
                     "--threads", 2, "-c", 5, *warmup)
    assert report["total"]["intended"] == report["total"]["operations"] == 501


def test_a_connection_that_is_lost_in_an_open_loop(fake, tmp_path):
    def answer(request, peer):
        peer["n"] = peer.get("n", 0) + 1
        return None if peer["n"] == 10 else good_answer(request, peer)
    server = fake(answer)
    path = tmp_path / "series.csv"
    report, stderr = load("-s", server.address, "-t", 2, "-c", 2, "--rate", 400, "--arrivals",
                          "steady", "--series", path, code=1)
    result = report["total"]
    check_account(result)
    check_series(read_series(path)["run", "*"], result)
    assert "lost a connection" in stderr
    assert (result["lost"], result["unanswered"], result["done"]) == (2, 2, 18)


def test_refused_and_wrong_replies_of_an_open_loop(fake, tmp_path):
    """Of each ten replies one is refused and one wrong; both have their columns."""
    def answer(request, peer):
        peer["n"] = peer.get("n", 0) + 1
        if peer["n"] % 10 == 3:
            return request.reply(status=0xFF03, cas=0)
        return request.reply(status=0x77) if peer["n"] % 10 == 6 else good_answer(request, peer)
    server = fake(answer)
    path = tmp_path / "series.csv"
    report, stderr = load("-s", server.address, "-n", 200, "-c", 1, "-p", 4, "--rate", 1000,
                          "--arrivals", "poisson", "--series", path, code=1)
    result = report["total"]
    check_account(result)
    assert (result["done"], result["refused"], result["wrong"]) == (160, 20, 20)
    assert result["statuses"] == {"0x00": 160, "0x77": 20, "0xff03": 20}
    check_series(read_series(path)["run", "*"], result)
    assert stderr.count("wrong reply") == 1


def test_the_depth_bounds_an_open_loop(fake):
    """Four requests gather on the only connection, then no fifth comes, though many are due."""
    seen = []

    def answer(request, peer):
        waiting = peer.setdefault("waiting", [])
        waiting.append(good_answer(request, peer))
        if len(waiting) < 4:
            return b""
        try:
            peer["socket"].settimeout(0.02)
            seen.append(len(peer["socket"].recv(1, 2)))  # MSG_PEEK
        except (BlockingIOError, TimeoutError):
            seen.append(0)
        finally:
            peer["socket"].settimeout(None)
        out, peer["waiting"] = b"".join(waiting), []
        return out
    server = fake(answer)
    report, _ = load("-s", server.address, "-n", 80, "-c", 1, "-p", 4, "--rate", 5000, "--arrivals",
                     "steady")
    assert seen == [0] * 20
    assert report["total"]["done"] == 80


def test_waiting_in_the_generator_is_no_silence_of_the_server(fake):
    """The timeout counts from sending, the latency from when a request was due."""
    server = fake(slow(0.01))
    report, _ = load("-s", server.address, "-t", 1.5, "-c", 1, "--rate", 400, "--arrivals",
                     "steady", "--timeout", 0.5 * SCALE)
    result = report["total"]
    check_account(result)
    assert result["lost"] == 0 and result["latency_us"]["max"] > 500000
    assert result["late_us"]["max"] > 500000


@pytest.mark.alone
@pytest.mark.parametrize("protocol", ["text", "binary"])
def test_a_pause_of_the_server_is_paid_for_by_all_that_were_due(memcached, tmp_path, protocol):
    """1000 a second; the server stands still for 300 ms. In an open loop all that were due in the
    first 200 ms of it have a latency above 100 ms; a closed loop has no more than connections."""
    slow_ones = {}
    for arrivals in "steady", "closed":
        path = tmp_path / (arrivals + ".csv")
        process = subprocess.Popen(
            [LOAD, "-s", memcached.address, "-t", "1.5", "--rate", "1000", "--arrivals", arrivals,
             "-c", "4", "--slo-ms", "100", "--series", path, "--interval", "0.1", "--protocol",
             protocol],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            assert "0.1 s" in process.stderr.readline()
            memcached.process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            time.sleep(0.3)
            pause = time.monotonic() - began
            memcached.process.send_signal(signal.SIGCONT)
            process.communicate(timeout=20 * SCALE)
        finally:
            process.kill()
        assert process.returncode == 0
        rows = read_series(path)["run", "*"]
        slow_ones[arrivals] = total(rows, "ok") - total(rows, "within_slo")
        assert max(row["max_ms"] for row in rows if row["ok"]) > 1000 * (pause - 0.01)
        if arrivals == "steady":
            assert [row["offered"] for row in rows[:15]] == [100] * 15, "whatever the server does"
            assert total(rows, "ok") == 1500
            assert max(row["waiting"] for row in rows) > 100
    assert slow_ones["steady"] > 1000 * (pause - 0.11)
    assert slow_ones["closed"] < slow_ones["steady"] / 4


def test_a_pause_of_the_generator_hides_nothing(memcached, tmp_path):
    """What was due while it stood still is offered then, and late."""
    path = tmp_path / "series.csv"
    process = subprocess.Popen(
        [LOAD, "-s", memcached.address, "-t", "1", "--rate", "1000", "--arrivals", "steady", "-c",
         "4", "--slo-ms", "50", "--series", path, "--interval", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert "0.1 s" in process.stderr.readline()
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
        stdout, _ = process.communicate(timeout=20 * SCALE)
    finally:
        process.kill()
    rows = read_series(path)["run", "*"]
    assert [row["offered"] for row in rows[:10]] == [100] * 10
    assert total(rows, "ok") == 1000 and total(rows, "within_slo") <= 1000 - 240
    assert "1000 sent, 0 not sent" in stdout and "sent late" in stdout and "within 50 ms" in stdout


# Rates.

@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("warmup", [[], ["--warmup", 0.15]])
def test_steps_of_a_steady_rate(memcached, tmp_path, threads, warmup):
    path = tmp_path / "series.csv"
    report, _ = load("-s", memcached.address, "-t", 1.5, "--rate", "500@0,2000@0.5,0@1,300@1.2",
                     "--arrivals", "steady", "-c", 7, "--threads", threads, "--series", path,
                     "--interval-ms", 100, *warmup)
    rows = read_series(path)["run", "*"]
    offered = [row["offered"] for row in rows[:15]]
    assert offered == [50] * 5 + [200] * 5 + [0] * 2 + [30] * 3
    assert [row["time_s"] for row in rows[:3]] == [0, 0.1, 0.2] and rows[0]["interval_s"] == 0.1
    assert report["total"]["intended"] == 1340
    assert [i["other"]["intended"] for i in report["total"]["intervals"][:10]] == offered[:10]
    assert report["total"]["intervals"][0]["t"] == report["start_ms"]


@pytest.mark.alone
def test_steps_of_a_closed_loop(memcached, tmp_path):
    path = tmp_path / "series.csv"
    load("-s", memcached.address, "-t", 1, "-c", 2, "--rate", "100,0@0.4/max@0.5,0@0.8", "--series",
         path)
    sent = [row["sent"] for row in read_series(path)["run", "*"]][:10]
    assert 0 < sum(sent[:4]) <= 44, "the rate is not exceeded"
    assert sent[4] <= 2 and sum(sent[8:]) <= 2
    assert sum(sent[5:8]) > 300


def dispersion(counts):
    mean = sum(counts) / len(counts)
    return sum((n - mean) ** 2 for n in counts) / len(counts) / mean


def test_poisson_arrivals_vary_and_steady_ones_do_not(memcached, tmp_path):
    """Variance over mean of the counts of 200 intervals: 1 within five deviations, and 0."""
    found = {}
    for arrivals in "poisson", "steady":
        path = tmp_path / arrivals
        load("-s", memcached.address, "-t", 2, "--rate", 5000, "--arrivals", arrivals, "--threads",
             2, "-c", 16, "--interval-ms", 10, "--series", path)
        counts = [row["offered"] for row in read_series(path)["run", "*"]][:200]
        assert 9500 < sum(counts) < 10500
        found[arrivals] = dispersion(counts)
    assert 0.5 < found["poisson"] < 1.5
    assert found["steady"] == 0


# Classes of keys.

@pytest.mark.alone
def test_a_culprit_and_innocent_keys(memcached, tmp_path):
    path = tmp_path / "series.csv"
    report, _ = load("-s", memcached.address, "-t", 1, "--arrivals", "steady", "--threads", 2,
                     "--series", path, "--slo-ms", 1000,
                     "--tenant", "name=innocent,connections=5,keys=50,zipf=0,rate=300",
                     "--tenant", "name=culprit,connections=4,key=culprit-29001111,rate=0@0,"
                     "500@0.3,0@0.7,mix=get=1,set=1",
                     "--tenant", "name=short,connections=1,key=abc,mix=set=1,rate=100,"
                     "arrivals=closed")
    innocent, culprit, short = report["tenants"]
    assert (innocent["intended"], culprit["intended"]) == (300, 200)
    assert memcached.get(b"culprit-29001111") == value_of(0, 32) == memcached.get(b"abc")
    assert culprit["missed"] <= culprit["by_operation"]["get"]["missed"]
    series = read_series(path)
    assert list(series) == [("run", "*"), ("tenant", "innocent"), ("tenant", "culprit"),
                            ("tenant", "short")]
    assert [row["offered"] for row in series["tenant", "culprit"][:10]] == \
        [0] * 3 + [50] * 4 + [0] * 3
    for tenant in innocent, culprit:
        check_account(tenant)
        check_series(series["tenant", tenant["name"]], tenant)
    everything = series["run", "*"]
    assert total(everything, "offered") == 500 + total(series["tenant", "short"], "offered")
    for name in COUNTS + ("waiting", "in_flight"):
        assert [row[name] for row in everything] == [
            sum(rows[i][name] for scope, rows in series.items() if scope[0] == "tenant")
            for i in range(len(everything))], name
    assert short["arrivals"] == "closed" and short["left"] == short["shed"] == 0
    assert 80 <= short["sent"] <= 121


@pytest.mark.parametrize("arrivals", ["steady", "poisson"])
def test_a_hot_key_of_an_open_loop(memcached, tmp_path, arrivals):
    path = tmp_path / "series.csv"
    report, _ = load("-s", memcached.address, "-t", 1, "--rate", 200, "--arrivals", arrivals, "-c",
                     6, "--zipf", 0, "--keys", 1000000, "--hot-rate", 1000, "--hot-key", 999,
                     "--hot-at", 0.4, "--hot-until", 0.8, "--threads", 2, "--series", path)
    series = read_series(path)
    hot, other = series["hot", "default"], series["other", "default"]
    if arrivals == "steady":
        assert [row["offered"] for row in hot[:10]] == [0] * 4 + [100] * 4 + [0] * 2
        assert [row["offered"] for row in other[:10]] == [20] * 10
    assert total(hot[:4], "offered") + total(hot[8:], "offered") <= 1
    assert 280 < total(hot[4:8], "offered") < 520 and 120 < total(other, "offered") < 280
    both = series["tenant", "default"]
    for name in COUNTS:
        assert total(hot, name) + total(other, name) == total(both, name)
    check_account(report["total"])
    check_series(both, report["total"])


# Words and files.

@pytest.mark.parametrize("args,texts", [
    (["--rate", "x"], ["--rate 'x'", "0 to 100000000", "500@0,2000@5.5"]),
    (["--rate", "-5"], ["--rate '-5'"]), (["--rate", "5@"], ["--rate '5@'"]),
    (["--rate", "100000001"], ["--rate '100000001'"]),
    (["--rate", "5@1"], ["--rate '5@1'", "from second 0 on"]),
    (["--rate", "5,6@2,7@2"], ["later than the one before it"]),
    (["--rate", ",".join("%d@%d" % (n, n) for n in range(65))], ["at most 64 rates"]),
    (["--rate", "5,6@2", "-t", "2"], ["'default': rate", "before the end", "second 2"]),
    (["--rate", "5,0@2", "-n", "100"], ["ends with 0", "--time"]),
    (["--arrivals", "bursty"], ["--arrivals 'bursty'", "closed, steady or poisson"]),
    (["--arrivals", "steady"], ["'default': arrivals", "need a rate"]),
    (["--arrivals", "poisson", "--rate", "0"], ["need a rate"]),
    (["--arrivals", "poisson", "--rate", "5,max@1"], ["not max"]),
    (["--tenant", "name=a,rate=5@0,6@1,conections=1"], ["no. 1", "rate '5@0,6@1,conections=1'"]),
    (["--waiting", "x"], ["--waiting 'x'"]), (["--slo-ms", "-1"], ["--slo-ms '-1'"]),
    (["--key", "a b"], ["key 'a b'", "white space"]), (["--key", ""], ["1 to 250"]),
    (["--key", "a", "--mix", "get=1,incr=1"], ["get and incr cannot share one"]),
    (["--series", ""], ["--series ''"]),
])
def test_wrong_words_of_rates_are_named(args, texts):
    done = run(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    for text in texts:
        assert text in done.stderr, done.stderr


def test_a_file_that_cannot_be_made_is_named(tmp_path):
    path = tmp_path / "none" / "series.csv"
    done = run("--series", path, "-n", 1)
    assert done.returncode == 1
    assert "--series '%s'" % path in done.stderr and "No such file" in done.stderr


def test_a_file_that_cannot_be_written_is_named(memcached):
    done = run("-s", memcached.address, "--series", "/dev/full", "-t", 0.2, "-c", 1)
    assert done.returncode == 1
    assert "--series '/dev/full'" in done.stderr and "operations" in done.stdout


def test_names_with_quotes_are_quoted(memcached, tmp_path):
    path = tmp_path / "series.csv"
    load("-s", memcached.address, "-n", 10, "--series", path, "--tenant", 'name=a"b,connections=1')
    assert ("tenant", 'a"b') in read_series(path)


# The plot.

def plot(output, *args, code=0):
    done = subprocess.run([sys.executable, PLOT, "-o", output, *[str(a) for a in args]],
                          capture_output=True, text=True, timeout=60 * SCALE)
    assert done.returncode == code, done.stderr
    return done.stderr if code else output.read_text(encoding="utf-8")


def texts_of(svg):
    root = xml.etree.ElementTree.fromstring(svg)
    return [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]


HEAD = ("time_s,interval_s,scope,tenant,offered,sent,answered,ok,within_slo,missed,refused,wrong,"
        "not_sent,unanswered,waiting,in_flight,p50_ms,p99_ms,max_ms\n")


def line(time_s, tenant="*", offered=10, good=10, refused=0, not_sent=0, p99="2.0"):
    return "%.3f,0.100,%s,%s,%d,%d,%d,%d,%d,0,%d,0,%d,0,0,0,1.0,%s,9.0\n" % (
        time_s, "run" if tenant == "*" else "tenant", tenant, offered, good + refused,
        good + refused, good, good, refused, not_sent, p99)


def test_a_plot_of_a_run(memcached, tmp_path):
    table, picture = tmp_path / "run.csv", tmp_path / "run.svg"
    load("-s", memcached.address, "-t", 1, "--rate", "200,1000@0.4", "--arrivals", "poisson",
         "--series", table, "--slo-ms", 50,
         "--tenant", "name=a", "--tenant", "name=b", "--connections", 4)
    svg = plot(picture, table, "--title", "Two & more", "--capacity", 500, "--slo-ms", 50)
    texts = texts_of(svg)
    for text in "Two & more", "requests a second", "offered", "goodput", "refused", "p99":
        assert text in texts
    assert plot(picture, table, "--title", "Two & more", "--capacity", 500, "--slo-ms", 50) == svg
    texts = texts_of(plot(picture, "%s#a" % table, "the other=%s#b" % table))
    for text in "a goodput", "the other goodput", "a offered", "the other offered", "a refused":
        assert text in texts, texts
    assert len(svg) < 60000


def test_a_plot_shows_the_numbers_of_its_table(tmp_path):
    """Levels are where the axes say: 1000 a second, then 500 refused and a gap in the latency."""
    table, picture = tmp_path / "t.csv", tmp_path / "t.svg"
    table.write_text(HEAD + "".join(line(i / 10, offered=100, good=100) for i in range(5)) +
                     "".join(line(i / 10, offered=100, good=0, refused=50, not_sent=50, p99="")
                             for i in range(5, 10)), encoding="utf-8")
    svg = plot(picture, table, "--window", 0.1)
    root = xml.etree.ElementTree.fromstring(svg)
    paths = [e.get("d") for e in root.iter("{http://www.w3.org/2000/svg}path")
             if e.get("fill") == "none"]
    offered, goodput, refused, dropped, latency = paths
    assert offered == "M64 56H744", "1000 a second, the top of the axis, all the time"
    assert goodput == "M64 56H404V206H744", "then nothing"
    assert refused == dropped == "M64 408H404V283H744", "0, then 500 of 600"
    assert latency.startswith("M64 ") and latency.endswith("H404"), "no success, no latency"


def test_a_wide_window_adds_intervals_up(tmp_path):
    table, picture = tmp_path / "t.csv", tmp_path / "t.svg"
    table.write_text(HEAD + "".join(line(i / 10, offered=i % 2 * 20, good=i % 2 * 20)
                                    for i in range(20)), encoding="utf-8")
    svg = plot(picture, table, "--window", 0.2)
    assert svg.count('d="M64 56H744" fill="none"') == 2, "a level line of 100 a second"


@pytest.mark.parametrize("text,args,words", [
    ("a,b\n1,2\n", [], ["no column time_s"]), ("", [], ["no column time_s"]),
    (HEAD, [], ["no lines of '*'", "none at all"]),
    (HEAD + line(0) + line(0, "shop"), ["#shelf"], ["no lines of 'shelf'", "shop"]),
])
def test_a_table_that_is_none_is_named(tmp_path, text, args, words):
    table = tmp_path / "t.csv"
    table.write_text(text, encoding="utf-8")
    stderr = plot(tmp_path / "t.svg", "%s%s" % (table, "".join(args)), code=1)
    assert str(table) in stderr and stderr.count("\n") == 1
    for word in words:
        assert word in stderr
    assert not (tmp_path / "t.svg").exists()


def test_a_plot_without_a_file(tmp_path):
    assert "No such file" in plot(tmp_path / "t.svg", tmp_path / "none.csv", code=1)
    table = tmp_path / "t.csv"
    table.write_text(HEAD + line(0), encoding="utf-8")
    assert "No such file" in plot(tmp_path / "none" / "t.svg", table, code=1)
    assert "--window" in plot(tmp_path / "t.svg", table, "--window", "0", code=2)


def test_the_plot_of_the_manual_is_that_of_its_table(tmp_path):
    """`make plot-overload` would change nothing."""
    picture = tmp_path / "overload.svg"
    subprocess.run(["make", "-s", "-C", BUILD, "plot-overload", "PLOT_OUTPUT=%s" % picture],
                   check=True, capture_output=True, timeout=120 * SCALE)
    with open(os.path.join(ROOT, "doc", "overload.svg"), encoding="utf-8") as file:
        assert picture.read_text(encoding="utf-8") == file.read()
