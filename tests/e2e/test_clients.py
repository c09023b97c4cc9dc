"""test_clients - real client libraries do their work through headgate, on every store, with and
without a login; memcached itself is the model."""
# SPDX-License-Identifier: BSD-3-Clause

import subprocess

import pytest

from client_tools import client_command
from conftest import store_config
from mcbin import scaled
from servers import FakeBackend, Headgate, Memcached, user_row

pytestmark = pytest.mark.foreign

BOTH = ("SCRAM-SHA-256", "SCRAM-SHA-1")
CLIENTS = ("libmemcached", "pylibmc", "php", "dalli", "memjs")


def scenario(name, address, prefix, user="-", password="-"):
    argv, env = client_command(name, "scenario")
    done = subprocess.run([*argv, address[0], str(address[1]), user, password, prefix], env=env,
                          capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode == 0 and done.stdout.endswith("PASS\n"), \
        "%s: exit %d\n%s\n%s" % (name, done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module", params=["embedded", "mc3", "redis"])
def logins(request, farm):
    """A daemon where nobody does anything without a login; the user's bucket has its name."""
    config = store_config(request.param, farm)
    config["tenants"] = [{"name": "default"}, {"name": "app"}]
    users = {"users": [user_row("app", "pa ss,w=rd", mechanisms=BOTH)]}
    with Headgate(config, users=users) as daemon:
        yield daemon


@pytest.mark.parametrize("name", CLIENTS)
def test_without_login(target, name):
    scenario(name, target.address, "plain:%s:%s:" % (name, target.kind))


@pytest.mark.parametrize("name", CLIENTS)
def test_with_login(logins, name):
    scenario(name, logins.address, "login:%s:" % name, "app", "pa ss,w=rd")


@pytest.mark.parametrize("name", CLIENTS)
def test_with_a_wrong_password(logins, name):
    """The scenario fails, and says so in its own time: no client hangs or gets through."""
    argv, env = client_command(name, "scenario")
    argv += [logins.address[0], str(logins.address[1]), "app", "wrong", "wrong:"]
    if name == "memjs":         # it waits for ever after a failed login, whoever the server is
        argv = ["timeout", "-k", "1", "3"] + argv
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode != 0 and "PASS" not in done.stdout, done.stdout


def memccapable(address):
    done = subprocess.run(["memccapable", "-b", "-h", address[0], "-p", str(address[1])],
                          capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode == 0 and "All tests passed" in done.stdout, done.stdout + done.stderr
    assert "[FAIL]" not in done.stdout and done.stdout.count("[pass]") == 27, done.stdout


def test_memccapable(target):
    """libmemcached's own suite of the protocol. It flushes, so the server must be its own."""
    if target.is_model:
        server = Memcached(memory_mb=32)
        try:
            memccapable(server.address)
        finally:
            server.stop()
        return
    memccapable(target.address)


def test_scenarios_notice_what_is_wrong():
    """A scenario against a server that stores nothing fails: the suite can fail."""
    fake = FakeBackend(lambda connection, frame: connection.reply(frame, 0x05))
    try:
        argv, env = client_command("pylibmc", "scenario")
        done = subprocess.run([*argv, "127.0.0.1", str(fake.port), "-", "-", "x"], env=env,
                              capture_output=True, text=True, timeout=scaled(30))
        assert done.returncode != 0 and "PASS" not in done.stdout, done.stdout
    finally:
        fake.stop()
