"""browser_tools - a headless Chromium for the dashboard's suite, what it noticed, and axe"""
# SPDX-License-Identifier: BSD-3-Clause

import fcntl
import json
import os
import shutil
import subprocess
from urllib.parse import urlsplit

from mcbin import poll, scaled
from servers import BUILD

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
AXE = "axe-core@4.14.1"


def missing():
    """Why there is no browser here; None when there is one."""
    for program in (CHROMIUM, DRIVER):
        if not os.path.exists(program):
            return "%s is missing" % program
    try:
        import selenium  # noqa: F401  pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        return "python3-selenium is missing"
    return None


def axe_source():
    """axe's program, installed by npm into the build folder when it is not there yet; None without
    npm."""
    home = os.path.join(BUILD, "axe")
    path = os.path.join(home, "node_modules", "axe-core", "axe.min.js")
    os.makedirs(home, exist_ok=True)
    with open(os.path.join(home, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            if shutil.which("npm") is None:
                return None
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", home, AXE],
                           check=True, capture_output=True, cwd=home, timeout=180)
    with open(path, encoding="utf-8") as source:
        return source.read()


class Browser:
    """One Chromium. `complaints` are what its console said, `origins` whom it asked."""

    def __init__(self):
        from selenium import webdriver  # pylint: disable=import-outside-toplevel
        from selenium.webdriver.chrome.service import Service  # pylint: disable=import-outside-toplevel
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                         "--no-first-run", "--disable-background-networking",
                         "--disable-component-update", "--lang=en"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        self.driver.set_script_timeout(scaled(30))
        self.driver.set_page_load_timeout(scaled(30))
        self.origins, self.complaints = set(), []
        self.window(1440, 900)
        self.dark(False)

    def quit(self):
        self.driver.quit()

    def window(self, width, height):
        """In pixels of the style; half of them is what an enlargement to 200 % leaves."""
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def dark(self, dark):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def notice(self):
        """Takes over what the browser has logged so far."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = urlsplit(message["params"]["request"]["url"])
                if url.scheme not in ("data", "chrome", "about"):
                    self.origins.add("%s://%s" % (url.scheme, url.netloc))
        self.complaints += [entry for entry in self.driver.get_log("browser")
                            if entry["level"] in ("SEVERE", "WARNING")]

    # -- asking the page --

    def run(self, script, *args):
        """The value of `return …`."""
        return self.driver.execute_script(script, *args)

    def text(self, selector):
        """All visible text below it, or None when there is no such thing."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? null", selector)

    def texts(self, selector):
        """Text of each one, hidden or not, as it is in the document."""
        return self.run("return [...document.querySelectorAll(arguments[0])]"
                        ".map(node => node.textContent)", selector)

    def row(self, section, name):
        """{column: text} of the row of a table whose first cell says `name`; None without it."""
        return self.run("""
            const [section, name] = arguments;
            const row = [...document.querySelectorAll(section + ' tbody tr')]
                .find(row => row.cells[0].textContent === name);
            return row ? Object.fromEntries([...row.cells].map(cell => [cell.dataset.name, cell.textContent])) : null;
            """, section, name)

    def column(self, section, name):
        return self.run("return [...document.querySelectorAll(arguments[0] + ' tbody td')]"
                        ".filter(cell => cell.dataset.name === arguments[1])"
                        ".map(cell => cell.textContent)", section, name)

    def keys(self, *keys):
        """Types into whatever has the focus."""
        from selenium.webdriver import ActionChains  # pylint: disable=import-outside-toplevel
        ActionChains(self.driver).send_keys(*keys).perform()

    def wait(self, question, timeout, what):
        return poll(question, timeout, step=0.05, what=what)

    def axe(self, source):
        """What axe finds serious or critical: [(rule, impact, nodes)]."""
        # Not by a <script>: that is what the page's policy forbids.
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": source})
        found = self.driver.execute_async_script("""
            const done = arguments[arguments.length - 1];
            axe.run(document, {resultTypes: ['violations']}).then(done, error => done({error: String(error)}));
            """)
        assert "error" not in found, found
        assert found["testEngine"]["name"] == "axe-core" and found["violations"] is not None
        return [(rule["id"], rule["impact"], [node["html"][:200] + " " + node["failureSummary"]
                                              for node in rule["nodes"][:3]])
                for rule in found["violations"] if rule["impact"] in ("serious", "critical")]
