"""prometheus_tools - a real Prometheus that scrapes one server, and the alert rules with short waits"""
# SPDX-License-Identifier: BSD-3-Clause

import json
import os
import re
import shutil
import urllib.request

from mcbin import scaled
from servers import Process, free_port, temporary_directory

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def quick_rules(folder):
    """A copy of the rules as they are installed, with their waits shortened; its path."""
    path = os.path.join(folder, "rules.yml")
    with open(os.path.join(TOP, "etc", "prometheus", "headgate.rules.yml")) as file, \
            open(path, "w") as out:
        out.write(re.sub(r"\[\d+m\]", "[5s]", re.sub(r"for: \d+[smh]", "for: 0s", file.read())))
    return path


class Prometheus:
    def __init__(self, targets, rules=()):
        self.directory = temporary_directory("hg-prometheus-")
        self.port = free_port()
        path = os.path.join(self.directory, "prometheus.yml")
        with open(path, "w") as out:
            json.dump({"global": {"scrape_interval": "200ms", "scrape_timeout": "200ms",
                                  "evaluation_interval": "200ms"},
                       "rule_files": list(rules),
                       "scrape_configs": [{"job_name": "headgate",
                                           "static_configs": [{"targets": targets}]}]}, out)
        self.process = Process(
            ["prometheus", "--config.file=" + path, "--storage.tsdb.path=" +
             os.path.join(self.directory, "data"), "--web.listen-address=127.0.0.1:%d" % self.port,
             "--log.level=error"], self.directory, "prometheus")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def query(self, text):
        """{labels: value}, or None while it does not answer."""
        url = "http://127.0.0.1:%d/api/v1/query?query=%s" % (self.port, urllib.request.quote(text))
        try:
            with urllib.request.urlopen(url, timeout=scaled(5)) as reply:
                data = json.load(reply)["data"]["result"]
        except OSError:
            assert self.process.alive(), self.process.stderr()
            return None
        return {tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in data}

    def value(self, text):
        got = self.query(text)
        return list(got.values())[0] if got else None
