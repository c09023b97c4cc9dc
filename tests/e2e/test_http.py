"""test_http - metrics, health and JSON over HTTP, against the statistics of the same server."""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.request

import pytest

from credit_tools import enter, start
from mcbin import Op, St, poll, request, scaled
from prometheus_tools import Prometheus, quick_rules
from servers import (HEADGATE, FakeBackend, Memcached, Process, free_port, headgatectl,
                     temporary_directory)
from webclient import Metrics, api, ask, check_metrics, place, promtool, scrape, serve

ADMIN = {"address": "127.0.0.1:0"}
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
HOSTILE = [b"<script>alert(1)</script>", b"q" * 250, b"a\x00b", b"\xff\xfe\x80", b'"quote\\back\nline']


def described():
    """name -> (type, labels) of all metrics that the program knows."""
    out = subprocess.run([HEADGATE, "--describe-metrics"], capture_output=True, text=True,
                         check=True).stdout
    rows = [line.split("\t") for line in out.splitlines()]
    return {row[0]: (row[1], [label for label in row[2].split(", ") if label], row[3])
            for row in rows}


def flood(client, key, n):
    mark = client.opaque()
    client.send(b"".join(request(Op.GET, key, opaque=i) for i in range(n)) +
                request(Op.NOOP, opaque=mark))
    return list(client.replies_until(mark))


# ---- metrics ----

@pytest.fixture(scope="module")
def busy():
    """A daemon with all kinds of things to tell: embedded store, memcached, a dead server."""
    backend = Memcached()
    config = {
        "upstreams": [{"name": "file", "kind": "embedded"},
                      {"name": "cache", "kind": "memcached", "servers": [{"address": backend.where}]},
                      {"name": "gone", "kind": "memcached",
                       "servers": [{"address": "127.0.0.1:%d" % free_port()}]}],
        "tenants": [{"name": "default", "upstream": "file"}, {"name": "shop", "upstream": "cache"},
                    {"name": "lost", "upstream": "gone"}],
        "threads": 2,
    }
    with serve(config) as daemon:
        for bucket in ("default", "shop", "lost"):
            with daemon.client(bucket=bucket) as client:
                for i in range(30):
                    client.set("k%d" % i, "v")
                    client.get("k%d" % i)
                for key in HOSTILE:
                    client.call(Op.GET, key)
        yield daemon
    backend.stop()


@pytest.mark.prometheus
def test_metrics_are_clean(busy):
    check_metrics(ask(busy, "/metrics").text)


def test_metrics_are_those_described(busy):
    known = described()
    seen = scrape(busy)
    assert set(seen.types) == set(known)
    for name, (kind, labels, text) in known.items():
        assert seen.types[name] == kind, name
        assert seen.helps[name] == text, name
        for suffix in ("_bucket", "_sum", "_count") if kind == "histogram" else ("",):
            for have, _ in seen.all(name + suffix):
                assert set(have) - {"le"} <= set(labels), name
    # Clusters are elsewhere; whatever else there is has a value here.
    empty = {name for name in known if not any(key[0].startswith(name) for key in seen.values) and
             not name.startswith("headgate_cluster_")}
    assert not empty


def test_each_statistic_is_a_metric():
    """Sentence by sentence: what --describe-stats has of counters, --describe-metrics has too."""
    out = subprocess.run([HEADGATE, "--describe-stats"], capture_output=True, text=True,
                         check=True).stdout
    helps = {row[2] for row in described().values()}
    parts = {head: body for head, body in re.findall(r"^(\S[^\n]*):\n((?:  [^\n]*\n?)+)", out, re.M)}
    assert len(parts) >= 7
    for head, body in parts.items():
        if head.startswith("outcomes"):
            continue  # values of a label
        for line in body.splitlines():
            name, _, text = line.strip().partition(" ")
            assert text.strip() in helps, (head, name)


def test_keys_are_no_labels(busy):
    text = ask(busy, "/metrics").text
    assert "alert" not in text and "qqqq" not in text and "quote" not in text


def test_histograms_fit_together(busy):
    seen = scrape(busy)
    for name in ("headgate_operation_duration_seconds", "headgate_tickets_wait_seconds"):
        for labels, count in seen.all(name + "_count"):
            buckets = sorted(((float(have["le"]), value)
                              for have, value in seen.all(name + "_bucket", **labels)))
            values = [value for _, value in buckets]
            assert values == sorted(values) and values[-1] == count, labels
            assert buckets[-1][0] == float("inf") and len(buckets) == 15
    done = seen.get("headgate_operation_duration_seconds_count", op="set")
    assert done >= 60
    assert 0 < seen.get("headgate_operation_duration_seconds_sum", op="set") < 60


def test_metrics_stats_and_api_agree(busy):
    """Nothing happens meanwhile but the Stat requests themselves, which end as `session`."""
    with busy.client(bucket="default") as client:
        def all_three():
            before = scrape(busy)
            stats = client.stat()
            detail = {row["name"]: row for row in json.loads(
                client.stat("bucket_details")["bucket details"])["buckets"]}
            status = api(busy, "status")
            tenants = {row["name"]: row for row in api(busy, "tenants")["tenants"]}
            after = scrape(busy)
            return before, stats, detail, status, tenants, after
        before, stats, detail, status, tenants, after = all_three()
    outcomes = {have["outcome"]: value for have, value in before.all("headgate_requests_total")}
    for name, value in outcomes.items():
        if name == "session":
            continue
        assert value == int(stats["outcome_" + name]) == status["outcomes"][name], name
        assert value == after.get("headgate_requests_total", outcome=name)
    for tenant, row in detail.items():
        for name, value in row["outcomes"].items():
            if name == "session":
                continue
            assert value == tenants[tenant]["outcomes"][name]
            assert value == before.get("headgate_tenant_outcomes_total", tenant=tenant,
                                       outcome=name), (tenant, name)
        assert row["units"] == before.get("headgate_tenant_units_total", tenant=tenant)
        assert row["ru"] == before.get("headgate_tenant_ru_total", tenant=tenant)
        assert row["get_hits"] == before.get("headgate_tenant_get_hits_total", tenant=tenant)
    assert before.sum("headgate_worker_get_hits_total") == int(stats["get_hits"])
    assert status["requests"] == sum(status["outcomes"].values())
    assert before.get("headgate_connections") == int(stats["curr_connections"])


def test_sum_of_outcomes_is_what_was_sent(busy):
    def sent():
        return scrape(busy).sum("headgate_requests_total")
    with busy.client(bucket="shop") as client:
        before = sent()
        flood(client, b"k1", 1000)  # and one NOOP
        client.call(Op.GET, b"x" * 250)
        client.send(request(0x7e, opaque=77))
        assert client.recv().status == St.UNKNOWN_COMMAND
    poll(lambda: sent() == before + 1003, what="1003 requests are counted")


def test_stats_reset(busy):
    with busy.client(bucket="default") as client:
        client.set("a", "b")
        assert scrape(busy).get("headgate_tenant_outcomes_total", tenant="default",
                                outcome="success") > 0
        client.stat("reset")
        now = scrape(busy)
        assert now.get("headgate_tenant_outcomes_total", tenant="default", outcome="success") == 0
        assert now.get("headgate_connections") >= 1


@pytest.mark.prometheus
def test_metrics_are_clean_after_a_reset(busy):
    with busy.client(bucket="default") as client:
        client.set("a", "b")
        client.stat("reset")
        check_metrics(scrape(busy).text)


def test_breaker_and_unreachable_server(busy):
    with busy.client(bucket="lost") as client:
        poll(lambda: client.get("a").status != St.OK and
             scrape(busy).sum("headgate_server_breaker_state", upstream="gone") in (2, 3),
             what="the breaker opens")
    seen = scrape(busy)
    assert seen.get("headgate_upstream_up", upstream="gone") == 0
    assert seen.get("headgate_upstream_up", upstream="cache") == 1
    assert seen.get("headgate_upstream_info", upstream="file", type="embedded") == 1
    assert seen.sum("headgate_server_breaker_state", upstream="cache") == 0
    row = next(row for row in api(busy, "upstreams")["upstreams"] if row["name"] == "gone")
    assert row["alive"] is False and row["servers"][0]["breaker"] in ("open", "half-open")


def test_process_metrics(busy):
    seen = scrape(busy)
    assert abs(seen.get("process_resident_memory_bytes") - busy.process.rss_bytes()) < 64 << 20
    assert seen.get("process_open_fds") == pytest.approx(
        len(os.listdir("/proc/%d/fd" % busy.pid)), abs=8)
    assert 0 < seen.get("process_cpu_seconds_total") < 600
    assert seen.get("process_start_time_seconds") > 1.6e9
    assert [have["version"] for have, _ in seen.all("headgate_build_info")]


@contextlib.contextmanager
def more_tenants(names):
    """A daemon with more tenants than it may show, each of which has set a key."""
    config = {"tenants": [{"name": name} for name in names]}
    with serve(config, admin={"metrics_tenants": 3}) as daemon:
        for name in names:
            with daemon.client(bucket=name) as client:
                client.set("k", "v")
        yield daemon


@pytest.mark.prometheus
def test_metrics_are_clean_with_more_tenants_than_series():
    with more_tenants(["t%02d" % i for i in range(8)]) as daemon:
        check_metrics(scrape(daemon).text)


def test_more_tenants_than_series():
    names = ["t%02d" % i for i in range(8)]
    with more_tenants(names) as daemon:
        seen = scrape(daemon)
        got = {have["tenant"]: value for have, value in
               seen.all("headgate_tenant_outcomes_total", outcome="success")}
        assert set(got) == {"t00", "t01", "t02", "(others)"}
        assert got["(others)"] == 5 and got["t01"] == 1
        # Who is deleted takes nothing away from the sum, and a reset neither.
        daemon.write_config(tenants=[{"name": name} for name in names[:5]])
        daemon.ctl("reload")
        with daemon.client(bucket="t03") as client:
            client.stat("reset")
            scrape(daemon)  # a look between the reset and what comes after it
            client.set("k", "v")
        seen = scrape(daemon)
        assert seen.get("headgate_tenant_outcomes_total", tenant="(others)", outcome="success") == 6
        assert len(api(daemon, "tenants")["tenants"]) == 5


# ---- a real Prometheus ----

@pytest.mark.prometheus
def test_prometheus_scrapes_and_an_alert_fires(busy):
    scratch = temporary_directory("hg-rules-")
    with start([{"name": "small", "hard_limit": 50}], admin=ADMIN) as daemon, \
            Prometheus(["%s:%d" % place(busy), "%s:%d" % place(daemon)],
                       rules=[quick_rules(scratch)]) as prometheus, \
            busy.client(bucket="shop") as client, enter(daemon, "small") as flooder:
        poll(lambda: prometheus.value('sum(up{job="headgate"})') == 2, timeout=20, what="both are up")
        for i in range(50):
            client.set("p%d" % i, "v")
        poll(lambda: (prometheus.value(
            'headgate_tenant_outcomes_total{tenant="shop",outcome="success"}') or 0) >= 50,
            timeout=20, what="it sees the requests")
        assert prometheus.value(
            'histogram_quantile(0.99, '
            'sum by (le) (headgate_operation_duration_seconds_bucket{op="set"}))') > 0
        assert prometheus.value('headgate_tenant_hard_limit_units_per_second{tenant="shop"}') == \
            float("inf")

        def fires():
            flood(flooder, b"k", 20)
            return prometheus.query(
                'ALERTS{alertname="HeadgateTenantThrottled",tenant="small",alertstate="firing"}')
        poll(fires, timeout=30, what="the alert fires")
        assert not prometheus.query('ALERTS{alertname="HeadgateTenantThrottled",tenant="shop"}')
    shutil.rmtree(scratch, ignore_errors=True)


# ---- health ----

def test_health_and_readiness():
    backend = Memcached()
    config = {"upstreams": [{"name": "cache", "kind": "memcached", "reconnect_max_ms": 200,
                             "servers": [{"address": backend.where}]},
                            {"name": "file", "kind": "embedded"}],
              "tenants": [{"name": "shop", "upstream": "cache", "required": True},
                          {"name": "other", "upstream": "file"}]}
    with serve(config) as daemon, daemon.client(bucket="shop") as client:
        assert ask(daemon, "/healthz").text == "ok\n"
        assert ask(daemon, "/readyz").text == "ready\n"
        assert client.set("a", "b").status == St.OK
        backend.kill()

        def out():
            client.get("a")
            return ask(daemon, "/readyz").status == 503
        poll(out, what="not ready")
        assert ask(daemon, "/readyz").text == \
            "upstream 'cache' of required tenant 'shop' is down\n"
        assert ask(daemon, "/healthz").status == 200
        status = api(daemon, "status")
        assert status["ready"] is False and len(status["reasons"]) == 1
        assert scrape(daemon).get("headgate_ready") == 0
        backend.restart()
        poll(lambda: client.get("a") and ask(daemon, "/readyz").status == 200, what="ready again")
    backend.stop()


def test_a_tenant_that_is_not_required_does_not_matter():
    config = {"upstreams": [{"name": "gone", "kind": "memcached",
                             "servers": [{"address": "127.0.0.1:%d" % free_port()}]}],
              "tenants": [{"name": "lost"}]}
    with serve(config) as daemon, daemon.client(bucket="lost") as client:
        poll(lambda: client.get("a").status != St.OK and
             scrape(daemon).get("headgate_upstream_up", upstream="gone") == 0, what="it is down")
        assert ask(daemon, "/readyz").status == 200
        daemon.write_config(tenants=[{"name": "lost", "required": True}])
        daemon.ctl("reload")
        assert ask(daemon, "/readyz").status == 503


def test_not_ready_while_it_drains():
    """A request that its store does not answer keeps the process for a while."""
    backend = FakeBackend(lambda connection, frame: None if frame.opcode == Op.GET else "default")
    config = {"upstreams": [{"name": "cache", "kind": "memcached", "backend_timeout_ms": 1500,
                             "servers": [{"address": backend.where}]}],
              "tenants": [{"name": "default"}]}
    with serve(config) as daemon:
        client = daemon.client()
        client.send(request(Op.GET, b"never", opaque=1))
        poll(lambda: scrape(daemon).sum("headgate_worker_in_flight") == 1, what="it is under way")
        daemon.process.signal(15)
        poll(lambda: ask(daemon, "/readyz").text == "draining\n", what="draining")
        assert api(daemon, "status")["state"] == "draining"
        assert scrape(daemon).get("headgate_draining") == 1
        daemon.process.wait(scaled(15))
        client.close()
    backend.stop()


# ---- JSON ----

def test_why_a_tenant_is_throttled():
    with start([{"name": "small", "hard_limit": 50}, {"name": "calm"}], admin=ADMIN) as daemon:
        with enter(daemon, "small") as client:
            def told():
                client.send(b"".join(request(Op.GET, b"k", opaque=i) for i in range(20)))
                for _ in range(20):
                    client.recv()
                row = next(r for r in api(daemon, "tenants")["tenants"] if r["name"] == "small")
                return row if row["throttled"] and row["units_per_s"] else None
            row = poll(told, timeout=20, what="small is throttled")
            assert row["why"][0]["code"] == "hard_limit"
            assert row["why"][0]["text"] == "held for its hard limit of 50 units/s"
            assert row["why"][0]["per_s"] > 0 and row["hard_limit"] == 50
            assert 0 < row["units_per_s"] <= 100
        calm = next(r for r in api(daemon, "tenants")["tenants"] if r["name"] == "calm")
        assert calm["throttled"] is False and calm["why"] == [] and calm["hard_limit"] is None


def tenant_row(daemon, name):
    return next(row for row in api(daemon, "tenants")["tenants"] if row["name"] == name)


def test_held_is_throttled_all_the_time():
    """As long as something is held or was refused, it is throttled, for as many as are held."""
    with start([{"name": "small", "hard_limit": 1}], admin=ADMIN, throttle_slot_ms=1000,
               throttle_max_wait_ms=2500) as daemon:
        clients = enter(daemon, "small", count=8)
        for i, client in enumerate(clients):
            client.send(request(Op.GET, b"k", opaque=i))
        poll(lambda: tenant_row(daemon, "small")["held"] >= 5, what="they are held")
        seen = set()

        def is_over():
            row = tenant_row(daemon, "small")
            seen.add((row["held"] > 0, row["rejected_per_s"] > 0))
            if row["held"] or row["rejected_per_s"]:
                why = {reason["code"]: reason["per_s"] for reason in row["why"]}
                assert row["throttled"] and set(why) == {"hard_limit"}, row
                assert why["hard_limit"] >= max(row["held"], row["rejected_per_s"]), row
            return not row["throttled"] and row["why"] == []
        poll(is_over, timeout=15, what="all were refused for waiting too long")
        assert (True, False) in seen and (False, True) in seen, seen
        for client in clients:
            client.close()


def test_observe_mode_throttles_nobody():
    with start([{"name": "small", "hard_limit": 5, "credit_mode": "observe"}], admin=ADMIN) as daemon, \
            enter(daemon, "small") as client:
        def told():
            flood(client, b"k", 40)
            row = tenant_row(daemon, "small")
            return row if row["units_per_s"] > 10 else None
        row = poll(told, what="its units are seen")
        assert row["throttled"] is False and row["why"] == [] and row["held"] == 0
        assert scrape(daemon).get("headgate_tenant_would_throttle_total", tenant="small") > 0


def test_exempt_users_beyond_the_limit():
    """They are charged and never held: the tenant is above its limit, in debt, and not throttled."""
    with start([{"name": "small", "hard_limit": 50}], admin=ADMIN) as daemon, \
            enter(daemon, "fast") as client:
        assert client.select("small").status == St.OK

        def told():
            flood(client, b"k", 200)
            row = tenant_row(daemon, "small")
            return row if row["why"] and row["debt_units"] > 0 else None
        row = poll(told, timeout=20, what="above its limit")
        assert row["throttled"] is False and row["held"] == 0, row
        assert [reason["code"] for reason in row["why"]] == ["exempt"] and row["units_per_s"] > 75
        assert row["why"][0]["text"] == ("used %d units/s, of which users with Unthrottled %d: above its "
                                         "hard limit of 50 units/s" % (row["units_per_s"], row["units_per_s"]))
        top = json.loads(headgatectl("--json", "-u", "admin", "top", "--once", "-d", "0.3", server=daemon.where,
                                     env=dict(os.environ, HEADGATE_PASSWORD="pw")).stdout)
        small = next(row for row in top["tenants"] if row["tenant"] == "small")
        assert "in debt: " in small["why"] and top["throttled"] == [], small


def test_last_error_of_a_server():
    where = "127.0.0.1:%d" % free_port()
    config = {"upstreams": [{"name": "gone", "kind": "memcached", "servers": [{"address": where}]},
                            {"name": "file", "kind": "embedded"}],
              "tenants": [{"name": "lost", "upstream": "gone"}, {"name": "default", "upstream": "file"}]}
    with serve(config) as daemon, daemon.client(bucket="lost") as client:
        def error(name):
            return next(up for up in api(daemon, "upstreams")["upstreams"]
                        if up["name"] == name)["servers"][0]["last_error"]
        assert error("gone") is None
        poll(lambda: client.get("a").status != St.OK and error("gone"), what="it is refused")
        assert error("gone").endswith("Connection refused") and error("file") is None
        line = next(line for line in headgatectl("status", server=daemon.where).stdout.splitlines()
                    if where in line)
        assert line.endswith("; no connection: " + error("gone")), line


def test_hot_keys_and_hostile_names():
    tenants = [{"name": "shop", "kv_hotkey_throttle_threshold": 20}]
    with start(tenants, admin=ADMIN, hotkey_epoch_ms=300) as daemon, enter(daemon, "shop") as client:
        def listed():
            for key in HOSTILE:
                flood(client, key, 60)
            got = {row["key"]: row for row in api(daemon, "hotkeys")["keys"]
                   if row["type"] == "TABLE_HOTKEY_ALL"}
            return got if len(got) >= len(HOSTILE) and any(r["throttled"] for r in got.values()) \
                else None
        got = poll(listed, timeout=30, what="the keys are hot")
        assert set(got) == {"<script>alert(1)</script>", "q" * 250, "a\\x00b", "\\xff\\xfe\\x80",
                            "\\x22quote\\x5cback\\x0aline"}
        for row in got.values():
            assert row["tenant"] == "shop" and row["threshold"] == 20
            assert 0 <= row["share_percent"] <= 100 and 0 <= row["percent"] <= 100
            assert row["throttled"] == (row["percent"] > 0)
        assert sorted(row["rank"] for row in got.values())[0] == 1
        poll(lambda: listed() and scrape(daemon).get("headgate_tenant_hotkeys_throttled",
                                                     tenant="shop") > 0,
             what="their number is a metric")


def test_slow_requests():
    backend = Memcached()
    config = {"upstreams": [{"name": "cache", "kind": "memcached",
                             "servers": [{"address": backend.where}]}],
              "tenants": [{"name": "default"}], "slow_request_ms": 50, "threads": 2}
    with serve(config) as daemon, daemon.client() as client:
        client.set("a\x01b", "v")
        backend.pause()
        client.send(request(Op.GET, b"a\x01b", opaque=1))
        poll(lambda: scrape(daemon).sum("headgate_worker_in_flight") == 1, what="it is under way")
        began = api(daemon, "status")["uptime_s"]
        poll(lambda: api(daemon, "status")["uptime_s"] > began + 0.06, what="it has become slow")
        backend.resume()
        client.recv()
        rows = poll(lambda: api(daemon, "slow")["slow"], what="it is in the slow log")
        assert rows[0]["tenant"] == "default" and rows[0]["operation"] == "get"
        assert rows[0]["key"] == "a\\x01b" and rows[0]["server"] == backend.where
        assert rows[0]["total_us"] >= 50000 and rows[0]["outcome"] == "success"
        assert rows[0]["backend_us"] > 40000
    backend.stop()


def test_history(busy):
    with busy.client(bucket="shop") as client:
        def seen():
            flood(client, b"h", 200)
            got = api(busy, "history")
            return got if any(got["series"]["requests_per_s"][-2:]) and \
                len(got["time"]) >= 3 else None
        got = poll(seen, timeout=20, what="three seconds of history")
    count = len(got["time"])
    assert got["step_s"] == 1 and got["time"] == sorted(got["time"])
    assert set(got["series"]) == {"requests_per_s", "served_per_s", "throttled_per_s",
                                  "failed_per_s", "held", "queued", "p50_us", "p99_us",
                                  "connections", "backlog"}
    every = list(got["series"].values())
    for rows in (got["upstreams"], got["tenants"]):
        for series in rows.values():
            every += series.values()
    assert all(len(values) == count for values in every)
    # One flood, over as many seconds as this machine took for it.
    assert sum(v or 0 for v in got["tenants"]["shop"]["units_per_s"]) >= 100
    assert max(v or 0 for v in got["series"]["p99_us"]) > 0
    assert got["upstreams"]["cache"]["read_tickets"][-1] > 0
    later = ask(busy, "/api/history.json?since=%d" % got["time"][-2]).json()
    assert later["time"] and min(later["time"]) > got["time"][-2]
    assert ask(busy, "/api/history.json?since=soon").status == 400


def test_rates_of_a_second(busy):
    with busy.client(bucket="shop") as client:
        def rated():
            flood(client, b"r", 300)
            return api(busy, "status")["requests_per_s"] > 200 and \
                api(busy, "upstreams")["upstreams"][1]["servers"][0]["requests_per_s"] > 0
        poll(rated, timeout=20, what="rates")


# ---- what is in etc/ ----

def test_rules_and_dashboard_use_metrics_that_there_are():
    known = described()
    names = set(known)
    for name, row in known.items():
        if row[0] == "histogram":
            names |= {name + suffix for suffix in ("_bucket", "_sum", "_count")}
    for path in ("etc/prometheus/headgate.rules.yml", "etc/grafana/headgate.json"):
        with open(os.path.join(TOP, path)) as file:
            used = set(re.findall(r"\b(?:headgate|process)_[a-z0-9_]+\b", file.read()))
        assert len(used) > 10 and used <= names, used - names


@pytest.mark.prometheus
def test_rules_pass_promtool():
    folder = os.path.join(TOP, "etc", "prometheus")
    done = promtool("check", "rules", os.path.join(folder, "headgate.rules.yml"))
    assert done.returncode == 0, done.stdout + done.stderr
    done = promtool("test", "rules", os.path.join(folder, "headgate.test.yml"))
    assert done.returncode == 0, done.stdout + done.stderr

