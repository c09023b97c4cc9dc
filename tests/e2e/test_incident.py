"""test_incident - a night from begin to end, against the real server: a flood, an alert, the
operator's look at dashboard and console, a lower limit, a reload, a restart under load, and what
can be read of it afterwards. Metrics, statistics, API and page say the same, and every request has
ended in one outcome."""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import contextlib
import json
import re
import shutil
import urllib.request

import pytest

from browser_tools import Browser, missing
from credit_tools import put
from flood import Flood
from handover_tools import Load, take_over
from mcbin import Op, poll, request, scaled
from prometheus_tools import Prometheus, quick_rules
from screen_tools import Screen
from servers import Headgate, Memcached, free_port, headgatectl, temporary_directory

pytestmark = [pytest.mark.browser, pytest.mark.prometheus,
              pytest.mark.skipif(missing() is not None, reason=missing() or "")]
LIMIT, LOWER = 400, 100  # units a second of noisy, before and after


class Night:
    def __init__(self):
        self.cache = Memcached()
        self.admin_port = free_port()
        self.daemon = Headgate({
            "admin": {"address": "127.0.0.1:%d" % self.admin_port},
            "threads": 2, "throttle_slot_ms": 200, "throttle_max_wait_ms": 600,
            "upstreams": [{"name": "cache", "kind": "memcached",
                           "servers": [{"address": self.cache.where}]}],
            "tenants": [{"name": "default", "upstream": "cache", "reserved": 1000},
                        {"name": "noisy", "upstream": "cache", "hard_limit": LIMIT}]})

    def api(self, part):
        url = "http://127.0.0.1:%d/%s" % (self.admin_port, part)
        with urllib.request.urlopen(url, timeout=scaled(5)) as answer:
            return answer.read().decode()

    def tenant(self, name):
        rows = json.loads(self.api("api/tenants.json"))["tenants"]
        return next(row for row in rows if row["name"] == name)

    def outcomes_of_metrics(self, tenant):
        found = re.findall(r'^headgate_tenant_outcomes_total\{(.*)\} (\S+)$', self.api("metrics"), re.M)
        rows = [(dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(n)) for labels, n in found]
        return {row["outcome"]: int(n) for row, n in rows if row["tenant"] == tenant and n > 0}

    def outcomes_of_stats(self, tenant):
        done = headgatectl("stats", "bucket_details " + tenant, "--json", server=self.daemon.where)
        text = json.loads(done.stdout)
        row = text[tenant] if tenant in text else list(text.values())[0]
        return {name: n for name, n in row["outcomes"].items() if n > 0}

    def flood(self):
        """noisy asks for far more than it may have."""
        return Flood([self.daemon.client(15.0, "noisy") for _ in range(4)], put, pipeline=50)

    def stop(self):
        self.daemon.stop()
        self.cache.stop()


@contextlib.contextmanager
def night_shift():
    """Server, Prometheus with the alert rules, and a browser with the page."""
    folder = temporary_directory("hg-incident-")
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        night = Night()
        stack.callback(night.stop)
        target = "127.0.0.1:%d" % night.admin_port
        prometheus = stack.enter_context(Prometheus([target], rules=[quick_rules(folder)]))
        browser = Browser()
        stack.callback(browser.quit)
        browser.driver.get("http://%s/" % target)
        yield night, prometheus, browser


def alert(prometheus, name):
    return prometheus.query('ALERTS{alertname="%s",alertstate="firing"}' % name)


def test_an_incident():
    with night_shift() as (night, prometheus, browser):
        quiet(prometheus, browser)
        with Load(night.daemon.address) as others:
            with night.flood() as flood:
                it_rings(prometheus)
                the_page_says_who(browser)
                so_does_the_console(night)
                a_lower_limit(night)
            # What is unanswered when its client goes is counted, too.
            all_agree(night, browser, flood)
            a_reload(night, others)
            a_restart(night, others)
            others.more()
        others.check(night.daemon)
        what_is_left(night, prometheus)


def quiet(prometheus, browser):
    browser.wait(lambda: browser.text("#sentence") == "Nobody is throttled, every server is up.",
                 10, "a quiet page")
    poll(lambda: prometheus.value('up{job="headgate"}') == 1, timeout=20, what="a scrape")
    assert not alert(prometheus, "HeadgateTenantThrottled")


def it_rings(prometheus):
    rung = poll(lambda: alert(prometheus, "HeadgateTenantThrottled"), timeout=30, what="the alert")
    assert all(dict(labels)["tenant"] == "noisy" for labels in rung), rung


def the_page_says_who(browser):
    row = browser.wait(lambda: (lambda row: row if row and row["State"].endswith("throttled") else None)(
        browser.row("#tenants", "noisy")), 10, "noisy, throttled")
    assert "hard limit" in row["Why"] and row["Hard limit"] == str(LIMIT), row
    assert browser.row("#tenants", "default")["State"].endswith("ok")


def so_does_the_console(night):
    with Screen(night.daemon.where) as screen:
        screen.wait(lambda: (screen.row("noisy") or {}).get("LIMIT") == str(LIMIT), "noisy in top")
        assert "noisy" in screen.text.split("\n\n")[0] or "noisy" in screen.text
        screen.send("q")
        assert screen.end()[0] == 0


def a_lower_limit(night):
    headgatectl("set", "bucket", "noisy", "hard_limit=%d" % LOWER, server=night.daemon.where)
    assert night.tenant("noisy")["hard_limit"] == LOWER
    # A slot's worth beyond it at the most, over some seconds.
    poll(lambda: 0 < night.tenant("noisy")["units_per_s"] <= 1.5 * LOWER, timeout=10,
         what="noisy at its lower limit")
    change, = [line for line in night.daemon.stderr().splitlines()
               if "option=tenant.noisy.hard_limit" in line]
    assert 'before="%d"' % LIMIT in change and 'after="%d"' % LOWER in change, change
    assert "from=127.0.0.1" in change, change


def all_agree(night, browser, flood):
    """Nothing runs in noisy any more: three views of its counters, and the client's own."""
    statuses = collections.Counter(event.status for event in flood.events)
    for client in flood.clients:
        client.sock.setblocking(True)
        client.send(request(Op.NOOP, opaque=0xFFFFFFFE))
    for client in flood.clients:
        statuses.update(frame.status for frame in client.replies_until(0xFFFFFFFE, timeout=20))
        client.close()
    assert sum(statuses.values()) == flood.sent, (statuses, flood.sent)
    poll(lambda: night.tenant("noisy")["connections"] == 0, timeout=10, what="its connections' end")
    seen = night.outcomes_of_stats("noisy")
    assert night.outcomes_of_metrics("noisy") == seen
    assert {name: n for name, n in night.tenant("noisy")["outcomes"].items() if n > 0} == seen
    # Every request has ended in one outcome; those of "session" are noops and bucket selections.
    assert sum(seen.values()) - seen["session"] == flood.sent, (seen, statuses)
    assert seen["success"] == statuses[0] and seen["session"] <= 2 * len(flood.clients), seen
    browser.wait(lambda: (lambda row: row["State"].endswith("ok") and row["Hard limit"] == str(LOWER))(
        browser.row("#tenants", "noisy")), 10, "the page with the lower limit, and all quiet")


def a_reload(night, others):
    night.daemon.config["tenants"][0]["reserved"] = 2000
    night.daemon.write_config()
    said = headgatectl("reload", server=night.daemon.where).stdout
    assert "tenant.default.reserved" in said and "1000" in said and "2000" in said, said
    assert night.tenant("default")["reserved"] == 2000
    assert night.tenant("noisy")["hard_limit"] == LOWER  # what was set by hand wins over the file
    others.more()


def a_restart(night, others):
    before = json.loads(night.api("api/status.json"))["pid"]
    night.old_log = take_over(night.daemon)
    others.more()
    assert json.loads(night.api("api/status.json"))["pid"] not in (before, None)
    assert night.tenant("noisy")["hard_limit"] == LOWER
    # The new process remembers since it began; what was before is Prometheus'.
    poll(lambda: any(json.loads(night.api("api/history.json"))["series"]["served_per_s"]),
         timeout=10, what="the last seconds in the server's own history")


def what_is_left(night, prometheus):
    """What one reads the next morning."""
    peak = prometheus.value('max_over_time(sum(rate('
                            'headgate_tenant_held_for_hard_limit_total{tenant="noisy"}[5s]))[5m:1s])')
    assert peak > 1, peak
    assert prometheus.value('max_over_time(headgate_tenant_hard_limit_units_per_second'
                            '{tenant="noisy"}[5m])') == LIMIT
    assert prometheus.value('headgate_tenant_hard_limit_units_per_second{tenant="noisy"}') == LOWER
    assert prometheus.value('min_over_time(up{job="headgate"}[5m])') == 1
    text = night.old_log
    for line in ("option=tenant.noisy.hard_limit", "configuration reloaded", 'msg="ended"'):
        assert line in text, line
    poll(lambda: not alert(prometheus, "HeadgateTenantThrottled"), timeout=30, what="the alert's end")
