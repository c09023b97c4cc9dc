"""test_trace - what the log says of single requests: trace_sample, with every verdict and every wait."""
# SPDX-License-Identifier: BSD-3-Clause

import re

from credit_tools import admin, enter, start
import hotkey_tools
from hotkey_tools import tenant, wait_listed
from mcbin import Feature, Op, St, poll


def traces(daemon, **wanted):
    """The traced requests of the log, as dictionaries, that have these fields."""
    with open(daemon.config["log_file"]) as log:
        lines = [line for line in log if " trace=" in line]
    rows = [dict(re.findall(r"(\w+)=(\S+)", line)) for line in lines]
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def traced(tmp_path, tenants, **options):
    options.setdefault("trace_sample", 1)
    return start(tenants, log_file=str(tmp_path / "log"), **options)


def test_a_request_that_passes(tmp_path):
    with traced(tmp_path, [{"name": "shop"}]) as daemon:
        shop, fast = enter(daemon, "shop"), enter(daemon, "fast")
        assert shop.set("cart:42", "x").status == St.OK
        fast.select("shop")
        assert fast.get("cart:42").value == b"x"
        poll(lambda: len(traces(daemon)) == 2, what="two lines")
        first, second = traces(daemon)
        assert (first["tenant"], first["op"], first["key"], first["outcome"]) == \
            ("shop", "set", "cart:42", "success"), first
        assert (first["hot"], first["bind"], first["credits"], first["tickets"]) == \
            ("none", "none", "passed", "taken"), first
        assert first["user"] == "shop" and first["client"].startswith("127.0.0.1:"), first
        assert second["credits"] == "exempt" and second["op"] == "get", second
        assert int(second["total_us"]) >= int(second["store_us"]), second


def test_a_hostile_key_is_escaped_and_cut(tmp_path):
    key = b"\n trace=9 \x00\xff" + b"k" * 200
    with traced(tmp_path, [{"name": "shop"}]) as daemon:
        shop = enter(daemon, "shop")
        assert shop.get(key).status == St.ENOENT
        poll(lambda: len(traces(daemon)) == 1, what="one line")
        line, = traces(daemon)
        assert line["key"].startswith("\\x0a\\x20trace=9\\x20\\x00\\xffkkk"), line
        assert line["key"].endswith("k..."), line
        assert line["outcome"] == "miss", line


def test_held_and_refused_for_credits(tmp_path):
    with traced(tmp_path, [{"name": "shop", "hard_limit": 20}]) as daemon:
        shop = enter(daemon, "shop")
        eager = enter(daemon, "shop", features=(Feature.XERROR, Feature.NON_BLOCKING))
        for _ in range(60):
            assert shop.set("k", "x").status == St.OK
        poll(lambda: traces(daemon, credits="held(hard_limit)"), what="a line of a held request")
        held = traces(daemon, credits="held(hard_limit)")[0]
        assert int(held["throttle_us"]) > 0 and held["outcome"] == "success", held
        while eager.set("k", "x").status == St.OK:
            pass
        poll(lambda: traces(daemon, outcome="throttled"), what="a line of a refused request")
        refused = traces(daemon, outcome="throttled")[0]
        assert refused["credits"] == "refused(hard_limit)", refused
        assert refused["tickets"] == "not_asked", refused


def test_one_in_so_many_and_changed_at_run_time(tmp_path):
    with traced(tmp_path, [{"name": "shop"}], trace_sample=0) as daemon:
        shop = enter(daemon, "shop")
        for _ in range(20):
            shop.get("a")
        daemon.write_config(trace_sample=10)
        with admin(daemon) as boss:
            boss.ok(Op.CONFIG_RELOAD)
        for _ in range(95):
            shop.get("a")
        poll(lambda: len(traces(daemon)) >= 10, what="ten lines")
        assert len(traces(daemon)) == 10, traces(daemon)


def test_a_hot_key(tmp_path):
    log = str(tmp_path / "log")
    with hotkey_tools.start([tenant("shop", threshold=20)], trace_sample=1,
                            log_file=log) as daemon:
        shop, boss = enter(daemon, "shop"), admin(daemon)
        for _ in range(200):
            shop.get("hot")
        wait_listed(boss, "shop")
        poll(lambda: shop.get("hot").status == St.ETMPFAIL, what="a refusal")
        shop.get("cold")
        poll(lambda: traces(daemon, outcome="hot_key", key="hot"), what="a line of a refused one")
        refused = traces(daemon, outcome="hot_key", key="hot")[0]
        assert refused["hot"] == "refused" and refused["credits"] == "not_asked", refused
        poll(lambda: traces(daemon, key="cold", hot="listed"), what="a line of another key")


def test_what_never_becomes_a_request(tmp_path):
    with traced(tmp_path, [{"name": "shop"}]) as daemon:
        with daemon.client() as nobody:
            assert nobody.call(Op.DELETE_BUCKET, "shop").status == St.EACCESS
        poll(lambda: traces(daemon, outcome="denied"), what="a line")
        line = traces(daemon, outcome="denied")[0]
        assert line["op"] == "DeleteBucket" and line["tenant"] == "default", line
