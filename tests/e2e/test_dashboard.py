"""test_dashboard - the page that an operator reads at night, in a real browser, over the real server
under a real flood. One browser and one server serve most of the tests, in their order."""
# SPDX-License-Identifier: BSD-3-Clause

import contextlib
import glob
import json
import os
import re
import urllib.request

import pytest

from browser_tools import Browser, axe_source, missing
from flood import Flood
from hotkey_tools import Heater, heat_get, heat_set
from credit_tools import put
from mcbin import scaled
from servers import Headgate, Memcached, free_port

pytestmark = [pytest.mark.browser,
              pytest.mark.skipif(missing() is not None, reason=missing() or "")]

EPOCH_S = 1.0
# A key that becomes hot in the middle of an epoch is above its threshold in the next one at the
# latest; then the page asks within a second, and this machine may be slow.
SHOWN_S = 2 * EPOCH_S + 1 + 3
LIMIT = 300      # units a second of noisy
THRESHOLD = 100  # operations an epoch of hot
FILLERS = 94     # tenants that only have to be shown: 100 in all, with `default`
WEB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "web")
SCRIPT = b"<script>alert(1)</script>"
LONG = b"long:" + b"0123456789" * 24 + b"!!!!!"  # 250 bytes
BINARY = b"nul\0and\xff\xfebytes"
PUNCTUATED = "Odd._%-name"


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.quit()


class Night:
    """Headgate over memcacheds with its page, floods that can be begun and ended."""

    def __init__(self):
        self.caches = [Memcached(), Memcached()]
        self.admin_port = free_port()
        tenants = [{"name": "noisy", "upstream": "cache", "hard_limit": LIMIT, "reserved": 100},
                   {"name": "shop", "upstream": "cache", "reserved": 1000, "hard_limit": 5000},
                   {"name": "hot", "upstream": "cache", "kv_hotkey_throttle_threshold": THRESHOLD,
                    "hotkey_control": "proportional"},
                   {"name": PUNCTUATED, "upstream": "cache"},
                   {"name": "default", "upstream": "cache"}]
        tenants += [{"name": "filler-%03d" % i, "upstream": "cache", "reserved": 10 + i}
                    for i in range(FILLERS)]
        self.daemon = Headgate({
            "admin": {"address": "127.0.0.1:%d" % self.admin_port},
            "threads": 2, "hotkey_epoch_ms": int(EPOCH_S * 1000), "throttle_slot_ms": 200,
            "throttle_max_wait_ms": 600, "slow_request_ms": 1,
            "upstreams": [
                {"name": "cache", "kind": "memcached", "servers": [{"address": self.caches[0].where}]},
                {"name": "breaks", "kind": "memcached", "servers": [{"address": self.caches[1].where}]}],
            "tenants": tenants + [{"name": "broken", "upstream": "breaks"}]})
        self.clients = []

    @property
    def url(self):
        return "http://127.0.0.1:%d/" % self.admin_port

    def api(self, part):
        with urllib.request.urlopen(self.url + "api/%s.json" % part, timeout=scaled(5)) as answer:
            return json.load(answer)

    def client(self, bucket):
        self.clients.append(self.daemon.client(15.0, bucket))
        return self.clients[-1]

    @contextlib.contextmanager
    def flood(self):
        """noisy asks for far more than its limit, hot for one key all the time, shop for little."""
        floods = [Flood([self.client("noisy") for _ in range(4)], put, pipeline=200)]
        heaters = [Heater(self.client("hot"), [heat_get(SCRIPT)] * 9 + [heat_get(b"other")], burst=20),
                   Heater(self.client("shop"), [heat_set(LONG), heat_get(BINARY)], burst=2)]
        with contextlib.ExitStack() as stack:
            for each in floods + heaters:
                stack.enter_context(each)
            yield
        for client in self.clients:
            client.close()
        self.clients.clear()

    def stop(self):
        self.daemon.stop()
        for cache in self.caches:
            cache.stop()


@pytest.fixture(scope="module")
def night():
    made = Night()
    yield made
    made.stop()


@pytest.fixture
def page(browser, night):
    """The page, loaded if it is not there yet, as a person at a desk has it."""
    browser.window(1440, 900)
    browser.dark(False)
    if browser.driver.current_url != night.url:
        browser.driver.get(night.url)
    browser.wait(lambda: browser.column("#tenants", "Tenant"), 10, "a page with tenants")
    yield browser
    browser.notice()


def attention(browser):
    """{(what is the matter, who): why} of the list below the sentence."""
    return {(tag.split(" ", 1)[1], who): why for tag, who, why in browser.run(
        "return [...document.querySelectorAll('#attention li')]"
        ".map(item => [...item.children].map(part => part.textContent))")}


def test_idle(page, night):
    """Nobody asks for anything: it says so, knows the version and every tenant."""
    page.wait(lambda: page.text("#sentence") == "Nobody is throttled, every server is up.", 5, "quiet")
    assert night.api("status")["version"] in page.text("#about")
    assert page.text("#tenants .count") == "100 tenants" and len(night.api("tenants")["tenants"]) == 100
    assert page.row("#upstreams", night.caches[0].where)["Breaker"].endswith("closed")
    assert page.row("#tenants", PUNCTUATED)["State"].endswith("ok")
    assert page.driver.title == "Headgate"


def test_flood(page, night):
    """The throttled tenant with its reason, and the hot key with its percent, within an epoch."""
    page.run("window.said = []; new MutationObserver(() => said.push(performance.now())).observe("
             "document.querySelector('#announce'), {childList: true})")
    with night.flood():
        page.wait(lambda: "tenant is throttled" in page.text("#sentence") or
                  "tenants are throttled" in page.text("#sentence"), SHOWN_S, "a throttled tenant")
        said = page.wait(lambda: attention(page).get(("throttled", "noisy")), SHOWN_S, "noisy in the list")
        assert "hard limit" in said and str(LIMIT) in said.replace(",", ""), said
        row = page.row("#tenants", "noisy")
        assert row["State"].endswith("throttled") and row["Hard limit"] == str(LIMIT), row
        assert "hard limit" in row["Why"], row
        # Among the rows that are shown as soon as a second of its use has been seen.
        assert page.wait(lambda: page.row("#tenants", "shop"), SHOWN_S, "shop")["State"].endswith("ok")

        name = SCRIPT.decode()
        key = page.wait(lambda: (lambda row: row if row and row["Refused"] != "0 %" else None)(
            page.row("#hotkeys", name)), SHOWN_S, "the hot key, refused in part")
        assert key["Tenant"] == "hot" and float(key["Share"].split()[0]) > 50, key
        # What the page says is what the server says, if both are asked often enough.
        page.wait(lambda: page.row("#hotkeys", name)["Refused"] in {
            "%g %%" % row["percent"] for row in night.api("hotkeys")["keys"]
            if row["tenant"] == "hot" and row["percent"] > 0}, SHOWN_S, "the server's percent")
        assert "hot key" in page.text("#sentence")
        assert "throttled" in page.driver.title

        # The charts have it too, and so have the numbers.
        throttled = lambda: page.run("return [...document.querySelectorAll('.legend li')].find("
                                     "item => item.textContent.startsWith('throttled')).querySelector('b').textContent")
        page.wait(lambda: throttled() not in ("0", "–"), SHOWN_S, "refusals in the chart")
        hostile_keys(page)
        everything_fits(page)
        nothing_for_axe(page)
        page.wait(lambda: re.search("tenants? (is|are) throttled", page.text("#announce")), 12, "words for a screen reader")
    page.wait(lambda: page.text("#sentence") == "Nobody is throttled, every server is up.",
              SHOWN_S + 10 * EPOCH_S, "quiet again")
    # Who listens is not told each second.
    said = page.run("return said")
    assert said and all(b - a > 9900 for a, b in zip(said, said[1:])), said


def hostile_keys(page):
    """Names of keys are text, whatever is in them: nothing is run, nothing is lost."""
    shown = lambda: set(page.column("#hotkeys", "Key"))
    page.wait(lambda: {SCRIPT.decode(), LONG.decode(), "nul\\x00and\\xff\\xfebytes"} <= shown(),
              SHOWN_S, "the hostile keys")
    assert page.run("return document.querySelectorAll('main script').length") == 0
    assert page.run("return [...document.querySelectorAll('#hotkeys button.key')]"
                    ".every(node => node.children.length === 0 && node.title === node.textContent)")
    # A long one is cut, and whole when it is asked for.
    height = ("return [...document.querySelectorAll('#hotkeys button.key')]"
              ".find(node => node.textContent === arguments[0])")
    low = page.run(height + ".offsetHeight", LONG.decode())
    page.run(height + ".click()", LONG.decode())
    assert page.run(height + ".offsetHeight", LONG.decode()) > 1.5 * low
    page.run(height + ".click()", LONG.decode())


WIDTHS = {"desk": (1440, 900), "two columns": (1300, 800), "one column": (1280, 800), "rows": (970, 800),
          "enlarged to 200 %": (720, 450), "telephone": (360, 740)}


def everything_fits(page):
    for name, (width, height) in WIDTHS.items():
        page.window(width, height)
        wide = page.run("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1] == width, "%s: %s" % (name, wide)
        beyond = page.run("""
            return [...document.querySelectorAll('#page *')].filter(node => {
                const box = node.getBoundingClientRect();
                return box.width > 0 && box.right > innerWidth + 1 && !node.closest('.plot');
            }).map(node => node.tagName + '.' + node.className + ' ' + node.textContent.slice(0, 60));""")
        assert not beyond, (name, beyond[:5])
        cut = page.run("""
            return [...document.querySelectorAll('tr')].filter(row => [...row.cells].some(cell =>
                cell.getBoundingClientRect().right > row.parentNode.getBoundingClientRect().right + 1))
                .map(row => row.textContent.slice(0, 80));""")
        assert not cut, (name, cut[:5])
    page.window(1440, 900)


def nothing_for_axe(page):
    """axe finds nothing serious by day, by night, and on a telephone."""
    source = axe_source()
    if source is None:
        pytest.skip("npm is missing, so axe is")
    for dark, width in ((False, 1440), (True, 1440), (False, 360)):
        page.dark(dark)
        page.window(width, 900)
        shade = page.run("return getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, shade[shade.index("(") + 1:-1].split(","))) / 3
        assert light < 40 if dark else light > 220, shade
        found = page.axe(source)
        assert not found, found
    page.dark(False)
    page.window(1440, 900)


def test_breaker(page, night):
    """A memcached is killed: the open breaker, its server and the failures appear."""
    where = night.caches[1].where
    before = page.row("#upstreams", where)
    assert before["Breaker"].endswith("closed"), before
    heater = Heater(night.client("broken"), [heat_get(b"k%d" % i) for i in range(8)], burst=8)
    with heater:
        page.wait(lambda: page.row("#upstreams", where)["Requests/s"] not in ("0", "–"), SHOWN_S,
                  "requests at the server")
        night.caches[1].kill()
        page.wait(lambda: "1 breaker is open" in page.text("#sentence"), SHOWN_S, "the open breaker")
        assert where in attention(page)["breaker open", "breaks"], attention(page)
        page.wait(lambda: "no connection: " in page.text("#upstreams") and "refused" in page.text("#upstreams"),
                  SHOWN_S, "the last error")
        assert page.row("#upstreams", where)["Breaker"].endswith("open")
        assert page.row("#upstreams", night.caches[0].where)["Breaker"].endswith("closed")
        assert page.run("return document.querySelector('#state').classList.contains('bad')")
        failed = lambda: page.run("return [...document.querySelectorAll('#tiles > div')].find("
                                  "tile => tile.textContent.startsWith('Failed')).querySelector('dd').textContent")
        page.wait(lambda: failed() not in ("0", "–"), SHOWN_S, "failures among the numbers")
        night.caches[1].restart()
        page.wait(lambda: page.row("#upstreams", where)["Breaker"].endswith("closed"), 20,
                  "the closed breaker")
    page.wait(lambda: "breaker" not in page.text("#sentence"), SHOWN_S, "a sentence without breakers")
    page.wait(lambda: "no connection" not in page.text("#upstreams"), SHOWN_S, "no error is left")


def test_keyboard(page):
    """Sorting, filtering, the list of keys, freezing: without a pointer."""
    from selenium.webdriver.common.keys import Keys
    page.run("document.activeElement.blur()")
    page.keys("/")
    assert page.run("return document.activeElement.closest('section').id") == "tenants"
    page.keys("filler-01 cache")
    names = page.wait(lambda: (lambda names: names if len(names) == 10 else None)(
        page.column("#tenants", "Tenant")), 3, "ten tenants")
    assert all(name.startswith("filler-01") for name in names), names
    assert page.text("#tenants .count") == "10 of 100 tenants"

    # Back to the column's name by Shift-Tab and so on would depend on the browser: focus, then Enter.
    page.run("document.querySelector('#tenants th.c-reserved button').focus()")
    sorted_by = "return document.querySelector('#tenants th.c-reserved').getAttribute('aria-sort')"
    assert page.run(sorted_by) == "none"
    page.keys(Keys.ENTER)
    assert page.run(sorted_by) == "descending"
    numbers = [int(text) for text in page.column("#tenants", "Reserved")]
    assert numbers == sorted(numbers, reverse=True) and len(set(numbers)) == 10
    page.keys(Keys.SPACE)
    assert page.run(sorted_by) == "ascending"
    assert [int(text) for text in page.column("#tenants", "Reserved")] == sorted(numbers)

    page.keys("/", Keys.ESCAPE)
    assert page.text("#tenants .count") == "100 tenants"
    assert len(page.column("#tenants", "Tenant")) < 100
    page.run("document.querySelector('#tenants .more').focus()")
    page.keys(Keys.ENTER)
    assert len(page.column("#tenants", "Tenant")) == 100
    page.keys(Keys.ENTER)
    assert len(page.column("#tenants", "Tenant")) < 100

    page.keys("3")
    assert page.run("return document.activeElement.id") == "upstreams-title"
    page.keys("?")
    assert page.run("return document.querySelector('#keys').open")
    page.keys(Keys.ESCAPE)
    page.wait(lambda: not page.run("return document.querySelector('#keys').open"), 3, "a closed list")

    # Every stop of Tab can be seen, and the first one leads past the bar.
    page.run("document.activeElement.blur(); window.getSelection().removeAllRanges(); scrollTo(0, 0)")
    page.run("document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')")
    page.keys(Keys.TAB)
    assert page.run("return document.activeElement.className") == "skip"
    for _ in range(6):
        page.keys(Keys.TAB)
        assert page.run("const style = getComputedStyle(document.activeElement);"
                        "return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2"), \
            page.run("return document.activeElement.outerHTML.slice(0, 200)")


def test_freeze(page, night):
    page.run("document.activeElement.blur()")
    page.keys("f")
    page.wait(lambda: "frozen at" in page.text("#live"), 3, "a frozen page")
    assert page.text("#freeze") == "Resume"
    asked = night.api("status")["uptime_s"]
    stopped = page.text("#about")
    page.wait(lambda: night.api("status")["uptime_s"] > asked + 2, 10, "two more seconds")
    assert page.text("#about") == stopped
    page.keys("f")
    page.wait(lambda: page.text("#about") != stopped and "live" in page.text("#live"), 5, "a live page")


def test_charts(page):
    """Lines are drawn, and the values at the cursor can be read and moved by keys."""
    from selenium.webdriver.common.keys import Keys
    assert page.run("return document.querySelectorAll('.chart canvas').length") == 6
    drawn = """
        const canvas = document.querySelector('.chart canvas');
        const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        const seen = new Set();
        for (let i = 0; i < data.length; i += 4) {
            if (data[i + 3] > 200) { seen.add(data[i] + ',' + data[i + 1] + ',' + data[i + 2]); }
        }
        const root = getComputedStyle(document.documentElement).getPropertyValue('--line-1').trim();
        return [seen.size, root, [...seen].includes([1, 3, 5].map(at => parseInt(root.slice(at, at + 2), 16)).join(','))];"""
    assert page.run(drawn)[2], page.run(drawn)
    page.keys("4")
    page.run("document.querySelector('.chart').focus()")
    at = lambda: page.run("return document.querySelector('.chart .at').textContent")
    page.keys(Keys.ARROW_LEFT)
    first = page.wait(at, 3, "a time under the cursor")
    page.keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    page.wait(lambda: at() not in ("", first), 3, "an earlier time")
    assert page.run("return [...document.querySelectorAll('.chart .at')].every("
                    "node => node.textContent === document.querySelector('.chart .at').textContent)")
    page.run("document.activeElement.blur()")
    page.wait(lambda: not at(), 3, "no cursor")


def test_parts(page):
    """The parts that think, by themselves: the history's seams, numbers, a thousand rows."""
    found = page.driver.execute_async_script("""
        const done = arguments[arguments.length - 1];
        (async () => {
            const {History} = await import('./history.js');
            const format = await import('./format.js');
            const {Since} = await import('./since.js');
            const {judge} = await import('./words.js');
            const {Table} = await import('./table.js');
            const one = (now, time, values, tenants = {}) => ({now, time, series: {held: values}, upstreams: {}, tenants});
            const result = {};

            const gap = new History();
            result.since = [gap.ask()];
            gap.add(one(12, [10, 11], [1, 2]));
            result.since.push(gap.ask());
            gap.add(one(14, [11, 12, 14], [2, 3, 4]));
            gap.ask();
            result.gap = structuredClone([gap.time, gap.series.held]);
            gap.add(one(15, [15], [5], {shop: {units_per_s: [7]}}));
            result.newcomer = structuredClone([gap.ask(), gap.groups.tenants.shop.units_per_s]);
            gap.add(one(21, [21], [6]));
            result.newcomer.push(gap.ask());
            gap.add(one(22, [20, 21, 22], [4, 5, 6], {shop: {units_per_s: [6, 7, 8]}}));
            result.whole = structuredClone([gap.ask(), gap.time, gap.groups.tenants.shop.units_per_s]);
            gap.add(one(40, [40], [6], {late: {units_per_s: [1]}}));
            result.restarted = [gap.ask()];
            gap.add(one(41, [40, 41], [1, 2], {late: {units_per_s: [1, 2]}}));
            result.restarted.push(gap.time.length, gap.series.held.slice(-3), gap.groups.tenants.late.units_per_s.slice(-2));
            gap.add(one(5, [4, 5], [1, 1], {}));
            result.back = gap.time;

            const long = new History();
            const times = Array.from({length: 700}, (_, i) => i);
            long.add(one(700, times, times));
            result.span = [long.time.length, long.time[0], long.series.held[0]];

            const since = new Since(), why = [{code: 'hard_limit', text: 'held', per_s: 5}];
            const past = {time: [1, 2, 3, 4, 5, 6, 7, 8, 9], groups: {tenants: {a: {rejected_per_s: [9, 0, 0, 0, 0, 0, 2, 0, 1]}}}};
            result.throttled = [[10, true, 0], [11, false, 0], [13, false, 0], [14, false, 0], [15, true, 1], [30, false, 1], [31, false, 0]].map(
                ([now, throttled, held]) => {
                    const tenant = {name: 'a', throttled, held, why: throttled ? why : []};
                    since.update([tenant], past, now);
                    return [tenant.throttled, tenant.since ?? null, tenant.why.length];
                });

            const server = (breaker, address) => ({address, breaker});
            const {level, sentence, items} = judge({
                status: {state: 'draining', ready: false, reasons: ['draining'], overcommitted: true},
                tenants: {tenants: [{name: 'a', state: 'paused', why: []}, {name: 'b', state: 'active', throttled: true, rejected_per_s: 3,
                    why: [{code: 'backend', text: 'lost', per_s: 9}, {code: 'hot_key', text: 'hot', per_s: 2}]}]},
                hotkeys: {keys: [{tenant: 'b', key: 'k', table: 't', percent: 40, type: 'TABLE_HOTKEY_ALL'}, {tenant: 'b', key: 'k', table: 't', percent: 40, type: 'TABLE_HOTKEY_QUERY'}]},
                upstreams: {upstreams: [{name: 'u', alive: false, backlog: true, evicting: 2, servers: [server('open', 'x'), server('half-open', 'y'), server('closed', 'z')]}]}});
            result.judged = [level, sentence, items.map(item => item.tag), items.find(item => item.who === 'b').text];
            const exempt = {name: 'bulk', state: 'active', throttled: false, held: 0, units_per_s: 195670, hard_limit: 500, debt_units: 9000,
                            rejected_per_s: 0, why: [{code: 'exempt', text: 'used 195670', per_s: 0}]};
            const owes = {...exempt, name: 'owes', why: [], debt_units: 500}, well = {...owes, name: 'well', debt_units: 499};
            const free = {...well, name: 'free', hard_limit: null, debt_units: 0};
            const above = judge({status: {}, hotkeys: {}, upstreams: {}, tenants: {tenants: [exempt, owes, well, free]}});
            result.exempt = [above.level, above.sentence, above.items.map(({tag, who, text}) => [tag, who, text])];
            const {Tenants} = await import('./tenants.js');
            const place = document.createElement('section');
            place.innerHTML = '<h2 id="above">Above</h2>';
            document.body.append(place);
            new Tenants(place).update({status: {}, hotkeys: {}, tenants: {tenants: [free, well, owes, exempt]}});
            result.above = [...place.querySelectorAll('tbody tr')].map(
                row => ['name', 'state', 'why'].map(id => row.querySelector('.c-' + id).textContent));
            place.remove();
            result.empty = judge({status: {}, tenants: {}, hotkeys: {}, upstreams: {}});

            result.words = [0, 7.25, 12345, 1234567, null, undefined].map(format.count)
                .concat([null, 5].map(format.units), [5, 1500, 45000, 2.5e6].map(format.microseconds),
                        [0, 59, 61, 3600, 90061].map(format.duration), format.kind('TABLE_HOTKEY_QUERY'));

            const section = document.createElement('section');
            section.innerHTML = '<h2 id="thousand">Thousand</h2>';
            document.body.append(section);
            const table = new Table(section, {
                name: ['row', 'rows'], id: row => row.id, text: row => row.id, limit: 5000, empty: '',
                sort: {column: 'value', descending: true},
                columns: ['id', 'value', 'more'].map(id => ({id, title: id, value: row => row[id], text: row => String(row[id])}))});
            const spent = [];
            for (let round = 0; round < 12; round++) {
                const rows = Array.from({length: 1000}, (_, i) => ({id: 'r' + i, value: (i * 7919 + round * 31) % 1000, more: round}));
                const begin = performance.now();
                table.update(rows);
                section.offsetHeight;
                spent.push(performance.now() - begin);
            }
            result.rows = section.querySelectorAll('tbody tr').length;
            result.order = [...section.querySelectorAll('tbody td.c-value')].map(cell => Number(cell.textContent));
            result.spent = Math.min(...spent);
            section.remove();
            return result;
        })().then(done, error => done({error: String(error)}));""")
    assert "error" not in found, found
    assert found["since"] == [0, 11]
    assert found["gap"] == [[10, 11, 12, 13, 14], [1, 2, 3, None, 4]]
    assert found["newcomer"] == [15, [None] * 5 + [7], 0], "its past is asked for"
    assert found["whole"][0] == 22 and found["whole"][1][-3:] == [20, 21, 22]
    assert found["whole"][2] == [None] * 5 + [7] + [None] * 4 + [6, 7, 8]
    assert found["restarted"] == [0, 32, [None, 1, 2], [1, 2]]
    assert found["back"] == [4, 5], "a clock that went back begins anew"
    assert found["span"] == [600, 100, 100]
    assert found["throttled"] == [[True, 7, 1], [True, 7, 1], [True, 7, 1], [False, None, 0], [True, 7, 1],
                                  [True, 7, 1], [False, None, 0]]
    assert found["judged"] == [
        "bad", "The server is draining, 1 upstream is down, 1 tenant is throttled, 1 breaker is open, "
        "1 breaker is half-open, 1 hot key is refused in part, 1 upstream has a backlog, 1 tenant is paused.",
        ["draining", "not ready", "down", "breaker open", "throttled", "overcommitted", "half-open", "backlog",
         "evicting", "paused"],
        "hot, now “t › k” 40 % (2/s); lost (9/s)"], found["judged"]
    told = "above its limit: exempt users (used 195670); in debt: 9,000 units"
    assert found["exempt"] == ["warn", "1 tenant is above its hard limit.", [["above limit", "bulk", told]]]
    assert found["above"] == [["bulk", "▲ above limit", told], ["free", "✓ ok", ""],
                              ["owes", "✓ ok", "in debt: 500 units"], ["well", "✓ ok", ""]], found["above"]
    assert found["empty"] == {"level": "ok", "items": [], "sentence": "Nobody is throttled, every server is up."}
    assert found["words"] == ["0", "7.3", "12,345", "1.2 M", "–", "–", "unlimited", "5", "5 µs", "1.5 ms",
                              "45 ms", "2.5 s", "0 s", "59 s", "1 min 1 s", "1 h", "1 d 1 h", "query"]
    assert found["rows"] == 1000 and found["order"] == sorted(found["order"], reverse=True)
    # The best round, since the machine does something else as well: a quarter of a second at most.
    assert found["spent"] < scaled(250), found["spent"]


TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def test_files(night):
    """What is served is what is in src/web, byte for byte, with its type."""
    paths = [os.path.relpath(path, WEB) for path in glob.glob(WEB + "/**", recursive=True)
             if path.rsplit(".", 1)[-1] in TYPES]
    assert len(paths) > 15, paths
    for path in paths:
        url = night.url + ("" if path == "index.html" else path)
        with urllib.request.urlopen(url, timeout=scaled(5)) as answer, open(os.path.join(WEB, path), "rb") as file:
            assert answer.read() == file.read(), path
            assert answer.headers["Content-Type"].split(";")[0] == TYPES[path.rsplit(".", 1)[-1]], path
            assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_lost_and_back(page, night):
    """The server ends: it says so and since when; the server is back: it goes on by itself."""
    page.run("window.sameDocument = true")
    night.daemon.terminate()
    page.wait(lambda: "No connection to the server since" in (page.text("#lost") or ""), 8, "a lost server")
    assert "no connection" in page.text("#live") and "no connection" in page.driver.title
    assert page.run("return document.querySelector('#page').classList.contains('stale')")
    assert page.run("return getComputedStyle(document.querySelector('#page > *')).filter") != "none"
    assert len(page.column("#tenants", "Tenant")) >= 20, "what was known is still there"
    night.daemon.start()
    page.wait(lambda: page.run("return document.querySelector('#lost').hidden") and
              "live" in page.text("#live"), 8, "a server that is back")
    assert not page.run("return document.querySelector('#page').classList.contains('stale')")
    assert page.run("return window.sameDocument"), "it was not loaded anew"
    before = page.text("#live")
    page.wait(lambda: page.text("#live") != before, 5, "the next second")


def test_wrong_answers(page):
    """Something that answers, but not like the server: it is said, and it goes on afterwards."""
    for answer, said in (("new Response('no', {status: 503})", "with 503"),
                         ("new Response('<html>')", "with what is no JSON")):
        page.run("window.realFetch ||= window.fetch; window.fetch = async () => " + answer)
        page.wait(lambda: said in (page.text("#lost-what") or ""), 5, said)
        assert "does not answer as it should" in page.text("#lost-what")
    page.run("window.fetch = window.realFetch")
    page.wait(lambda: page.run("return document.querySelector('#lost').hidden"), 5, "the server again")


def test_nobody_else(page, night):
    """In all that was done above: nobody but the server was asked, and the console has nothing to
    say but that the server was away for a moment."""
    page.notice()
    assert page.origins == {night.url.rstrip("/")}, page.origins
    lost = [entry for entry in page.complaints if entry["source"] == "network" and
            "ERR_CONNECTION_REFUSED" in entry["message"] or "ERR_EMPTY_RESPONSE" in entry["message"]
            or "ERR_CONNECTION_RESET" in entry["message"]]
    assert [entry for entry in page.complaints if entry not in lost] == []
    assert lost, "a console that says nothing at all is not looked at"
    with urllib.request.urlopen(night.url, timeout=scaled(5)) as answer:
        policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy, policy


def test_token(browser, tmp_path):
    """A server that wants a token: the page asks for it, says when it was wrong, and goes on."""
    from selenium.webdriver.common.keys import Keys
    port = free_port()
    with Headgate({"admin": {"address": "127.0.0.1:%d" % port, "token": "night-watch"}}):
        browser.window(1440, 900)
        browser.driver.get("http://127.0.0.1:%d/" % port)
        browser.wait(lambda: browser.run("return document.activeElement.id") == "token", 8, "a form")
        assert browser.run("return document.querySelector('#page').hidden")
        browser.keys("day-watch", Keys.ENTER)
        browser.wait(lambda: browser.text("#login-wrong") == "That is not the token.", 5, "a refusal")
        browser.keys("night-watch", Keys.ENTER)
        browser.wait(lambda: browser.row("#tenants", "default"), 8, "the page")
        assert browser.run("return document.cookie") == "", "a cookie that scripts can read"
        assert browser.run("return document.querySelector('#login').hidden")
        browser.driver.refresh()
        browser.wait(lambda: browser.row("#tenants", "default"), 8, "the page again, without a question")
