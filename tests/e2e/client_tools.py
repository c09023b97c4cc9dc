"""client_tools - how each real client's programs are run, and which versions they are"""
# SPDX-License-Identifier: BSD-3-Clause

import fcntl
import json
import os
import subprocess

from servers import BUILD

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "clients")
MEMJS = "memjs@1.3.2"


def memjs_path():
    """node_modules with memjs in the build folder, installed by npm when it is not there yet."""
    home = os.path.join(BUILD, "clients")
    os.makedirs(home, exist_ok=True)
    modules = os.path.join(home, "node_modules")
    with open(os.path.join(home, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(modules, "memjs", "package.json")):
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", home, MEMJS],
                           check=True, capture_output=True, cwd=home, timeout=180)
    return modules


def client_command(name, program):
    """(argv, environment) of a client's program: "scenario" or "probe"."""
    env = dict(os.environ)
    script = lambda suffix: os.path.join(PROGRAMS, program + suffix)
    if name == "libmemcached":
        return [os.path.join(BUILD, program + "_c")], env
    if name == "pylibmc":
        return ["/usr/bin/python3", script(".py")], env
    if name == "php":
        return ["php", script(".php")], env
    if name == "dalli":
        return ["ruby", script(".rb")], env
    env["NODE_PATH"] = memjs_path()
    return ["node", script(".js")], env


def versions():
    """One text for each client, for the manual."""
    ask = lambda *argv: subprocess.run(argv, check=True, capture_output=True,
                                       text=True).stdout.strip()
    with open(os.path.join(memjs_path(), "memjs", "package.json")) as package:
        memjs = json.load(package)["version"]
    return [
        "libmemcached " + ask("pkg-config", "--modversion", "libmemcached"),
        "pylibmc " + ask("/usr/bin/python3", "-c", "import pylibmc; print(pylibmc.__version__)"),
        "PHP memcached " + ask("php", "-r", "echo phpversion('memcached');"),
        "Dalli " + ask("ruby", "-e", "require 'dalli'; print Dalli::VERSION"),
        "memjs " + memjs,
    ]
