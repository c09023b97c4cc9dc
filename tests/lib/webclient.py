"""webclient - what the suites of the HTTP interface share: requests, metrics, promtool."""
# SPDX-License-Identifier: BSD-3-Clause

import http.client
import json
import re
import socket
import subprocess

from mcbin import scaled
from servers import Headgate

LINE = re.compile(r'^([a-z_:][a-z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"(?:,|$)')


def serve(config=None, admin=None, **kwargs):
    """A daemon that serves HTTP on a free port of loopback."""
    config = dict(config or {})
    config["admin"] = dict({"address": "127.0.0.1:0"}, **(admin or {}))
    return Headgate(config, **kwargs)


def place(daemon):
    """(host, port) of HTTP, from the log."""
    host, port = re.findall(r"admin=(\S+):(\d+) msg=", daemon.stderr())[-1]
    return host, int(port)


class Reply:
    def __init__(self, reply):
        self.status = reply.status
        self.headers = reply.headers
        self.body = reply.read()

    @property
    def text(self):
        return self.body.decode("utf-8")

    def json(self):
        return json.loads(self.body)


def ask(daemon, path, method="GET", headers=None, body=None, timeout=10.0):
    connection = http.client.HTTPConnection(*place(daemon), timeout=scaled(timeout))
    try:
        connection.request(method, path, body=body, headers=headers or {})
        return Reply(connection.getresponse())
    finally:
        connection.close()


def api(daemon, name, **kwargs):
    reply = ask(daemon, "/api/%s.json" % name, **kwargs)
    assert reply.status == 200, (reply.status, reply.text)
    assert reply.headers["Content-Type"] == "application/json"
    return reply.json()


def raw(daemon, data, timeout=10.0):
    """What comes back for these bytes, up to the end of the connection."""
    with socket.create_connection(place(daemon), timeout=scaled(timeout)) as sock:
        sock.sendall(data)
        out = b""
        while True:
            more = sock.recv(65536)
            if not more:
                return out
            out += more


class Metrics:
    """A scrape: values by name and labels."""

    def __init__(self, text):
        self.text = text
        self.types, self.helps, self.values = {}, {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ", 3)
                assert name not in self.types, "two times " + name
                self.types[name] = kind
            elif line.startswith("# HELP "):
                name, _, text = line[7:].partition(" ")
                self.helps[name] = text
            else:
                name, labels, value = LINE.match(line).groups()
                key = (name, tuple(sorted(LABEL.findall(labels or ""))))
                assert key not in self.values, "two lines for %r" % (key,)
                self.values[key] = float(value)

    def get(self, name, **labels):
        return self.values[(name, tuple(sorted(labels.items())))]

    def all(self, name, **labels):
        """[(labels, value)] of the name that have these labels."""
        return [(dict(have), value) for (n, have), value in self.values.items()
                if n == name and set(labels.items()) <= set(have)]

    def sum(self, name, **labels):
        return sum(value for _, value in self.all(name, **labels))


def scrape(daemon, **kwargs):
    reply = ask(daemon, "/metrics", **kwargs)
    assert reply.status == 200, (reply.status, reply.text)
    return Metrics(reply.text)


def promtool(*args, stdin=None):
    return subprocess.run(["promtool", *args], input=stdin, capture_output=True, text=True,
                          timeout=scaled(30))


def check_metrics(text):
    """promtool has nothing to say about it."""
    done = promtool("check", "metrics", stdin=text)
    assert done.returncode == 0 and not done.stdout and not done.stderr, (
        done.returncode, done.stdout, done.stderr)
