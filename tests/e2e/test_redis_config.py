"""test_redis_config - upstreams of kind redis as an operator meets them: what --check says, logins
that change while the server runs, passwords that are nowhere to be read, the rights that the manual
names."""
# SPDX-License-Identifier: BSD-3-Clause

import os
import re
import stat
import subprocess

import pytest

from mcbin import Op, St, poll, show
from redis_tools import client_of, config, over, upstream
from redisservers import Redis, RedisCluster
from respbin import slot_of
from servers import HEADGATE, FakeBackend, Headgate, to_yaml
from tablebin import Rows

MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "stores.md")
LATER = 4000000000  # a point in time
SECRETS = ("one-secret", "other-secret", "third-secret")


def rights():
    """What the manual says that the user of Redis needs."""
    with open(MANUAL) as manual:
        line, = re.findall(r"^ACL SETUSER headgate (.*)$", manual.read(), re.M)
    return line.replace("PASSWORD", "pw")


# ---- faults of the file ----

def checked(tmp_path, setup):
    path = tmp_path / "headgate.yaml"
    path.write_text(to_yaml(dict(setup, data_dir=str(tmp_path / "data"))))
    done = subprocess.run([HEADGATE, "--check", "-c", str(path)], capture_output=True, text=True,
                          timeout=20)
    return done.returncode, (done.stdout + done.stderr).replace(str(path), "FILE")


class At:
    def __init__(self, *where):
        self.where = list(where)


FAULTS = {
    "two servers": ({"upstreams": [upstream(At("h:1", "h:2"))]},
                    "2 servers of upstream 'store' of kind redis (accepted: one;"),
    "a ring": ({"upstreams": [upstream(At("h:1"), ring="ketama")]},
               "'ring' has no effect on upstream 'store' of kind redis"),
    "a database of a cluster": ({"upstreams": [upstream(At("h:1"), "redis-cluster", database=1)]},
                                "'database' has no effect on upstream 'store' of kind "
                                "redis-cluster"),
    "a login of embedded": ({"tenants": [{"name": "a", "backend_user": "u"}]},
                            "'backend_user' has no effect on tenant 'a', whose upstream "
                            "'embedded' is of kind embedded"),
    "ranges of plain": ({"upstreams": [upstream(At("h:1"), redis_layout="plain", ranges="on")]},
                        "'ranges: on' of upstream 'store' with redis_layout plain"),
    "no such file": ({"upstreams": [upstream(At("h:1"), password_file="/nowhere/secret")]},
                     "cannot read '/nowhere/secret': No such file or directory"),
    "user without password": ({"upstreams": [upstream(At("h:1"), user="u")]},
                              "'user' of upstream 'store' without a password"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_check_tells_faults_with_their_lines(tmp_path, name):
    setup, words = FAULTS[name]
    code, said = checked(tmp_path, setup)
    assert code != 0
    assert re.search(r"^FILE:\d+: " + re.escape(words), said, re.M), said


def test_check_warns_of_a_brace_on_a_cluster(tmp_path):
    setup = {"upstreams": [upstream(At("h:1"), "redis-cluster")],
             "tenants": [{"name": "a", "key_prefix": "{a}"}]}
    code, said = checked(tmp_path, setup)
    assert code == 0
    assert "warning: FILE:" in said and "key prefix '{a}'" in said, said


# ---- the manual's rights ----

def use_everything(daemon, bucket=None, ordered=True):
    """Every kind of request, once."""
    with client_of(daemon, bucket) as client:
        def done(frame):
            assert frame.status == 0, show(frame)
            return frame

        cas = done(client.set(b"k", b"1")).cas
        done(client.set(b"k", b"2", expiry=100))
        assert client.set(b"k", b"9", cas=cas).status == St.EEXISTS
        done(client.add(b"new", b"n"))
        done(client.replace(b"k", b"3", expiry=LATER))
        done(client.call(Op.APPEND, b"k", b"4"))
        done(client.call(Op.PREPEND, b"k", b"5"))
        for expiry in (0, 50, LATER):
            done(client.touch(b"k", expiry))
            assert done(client.gat(b"k", expiry)).value == b"534"
        for _ in range(2):
            done(client.incr(b"n", 1, 7))
        done(client.decr(b"n", 1, 7, expiry=50))
        done(client.delete(b"new"))
        done(client.delete(b"k", cas=client.get(b"k").cas))
        rows = Rows(client, "t")
        for name in ("a", "b", "c"):
            assert rows.insert(name, x=1).status == 0
        assert rows.delete("b").status == 0
        if ordered:
            assert [row for row, _ in rows.query()] == ["a", "c"]
            assert [row for row, _ in rows.query(reverse=True)] == ["c", "a"]


def test_the_rights_of_the_manual_are_enough():
    with Redis(users={"headgate": rights()}) as server:
        tenants = [{"name": "default", "upstream": "store"},
                   {"name": "second", "upstream": "store", "backend_database": 2}]
        # One connection for both, so that it must go from one database to the other.
        login = {"user": "headgate", "password": "pw", "pool_max_connections": 1}
        with over(server, tenants, upstream=login) as daemon:
            for bucket in ("default", "second", "default"):
                with client_of(daemon, bucket) as client:
                    assert client.call(Op.FLUSH).status == 0
                use_everything(daemon, bucket)
            server.command("SCRIPT", "FLUSH")
            with client_of(daemon) as client:
                assert client.call(Op.FLUSH).status == 0
            use_everything(daemon)
            assert [server.command("DBSIZE", database=n) for n in (0, 2)] == [4, 4]
        with over(server, upstream={"user": "headgate", "password": "pw"}) as daemon:
            server.command("ACL", "SETUSER", "headgate", "-flushdb")
            with client_of(daemon) as client:
                assert client.call(Op.FLUSH).status == St.EACCESS


def test_the_rights_of_the_manual_are_enough_on_a_cluster():
    rules = rights() + " +cluster|slots +asking"
    with RedisCluster(replicas=0, users={"headgate": rules}) as cluster:
        tenants = [{"name": "default", "upstream": "store"}]
        with Headgate(dict(config(cluster, tenants, upstream={
                "kind": "redis-cluster", "user": "headgate", "password": "pw",
                "ranges": "on"}))) as daemon:
            use_everything(daemon)


# ---- logins that change ----

def lines_of(daemon, *words):
    return [line for line in daemon.stderr().splitlines() if all(word in line for word in words)]


def test_a_password_from_a_file_is_read_again(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRETS[0] + "\n")
    with Redis(password=SECRETS[0]) as server, \
            over(server, upstream={"password_file": str(secret)}) as daemon, \
            client_of(daemon) as client:
        assert client.set(b"k", b"v").status == 0
        server.command("CONFIG", "SET", "requirepass", SECRETS[1])
        secret.write_text(SECRETS[1] + "\n")
        daemon.ctl("reload")
        assert client.get(b"k").value == b"v", "connections that are up stay up"
        server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        poll(lambda: client.get(b"k").value == b"v", 5, what="the new password")
        told, = lines_of(daemon, "upstream.store.password ")
        assert 'before="(secret)" after="(another secret)"' in told and 'msg="changed"' in told
        # A file that is not there leaves all as it was.
        secret.unlink()
        assert "cannot read" in daemon.ctl("reload", check=False).stderr
        assert client.get(b"k").value == b"v"
        with daemon.client() as boss:
            shown = "\n".join("%s %s" % row for row in boss.stat("settings").items())
        for text in (daemon.stderr(), shown):
            assert not any(secret in text for secret in SECRETS), text
        assert "upstream.store.password (secret)" in shown


def test_a_new_password_is_used_to_ask_a_cluster_for_its_slots(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRETS[0] + "\n")
    users = {"headgate": "on >%s ~* resetchannels +@all" % SECRETS[0]}
    with RedisCluster(replicas=0, users=users) as cluster:
        login = {"kind": "redis-cluster", "user": "headgate", "password_file": str(secret)}
        with over(cluster, upstream=login) as daemon, client_of(daemon) as client, \
                daemon.client() as boss:
            assert client.set(b"k", b"v").status == 0
            secret.write_text(SECRETS[1] + "\n")
            daemon.ctl("reload")
            for node in cluster.nodes:
                node.command("ACL", "SETUSER", "headgate", "resetpass", ">" + SECRETS[1])
            before = int(boss.stat("upstreams")["store:topology_version"])
            slot = slot_of(b"k")
            cluster.move_slot(slot, next(node for node in cluster.masters()
                                         if node is not cluster.owner(slot)))
            assert client.get(b"k").value == b"v"
            poll(lambda: int(boss.stat("upstreams")["store:topology_version"]) > before, 5,
                 what="the slots read again")
            assert not lines_of(daemon, "WRONGPASS")


def test_a_reload_changes_a_tenants_login_and_database():
    users = {name: "on >%s ~* &* +@all" % name for name in ("ann", "ben")}
    with Redis(users=users) as server:
        def tenants(**options):
            return [{"name": "default", "upstream": "store"},
                    dict({"name": "a", "upstream": "store", "backend_database": 1}, **options)]

        def who():
            with server.client() as at:
                return {(row["user"], row["db"]) for row in at.clients()
                        if row["user"] in ("ann", "ben") or row["db"] in ("1", "4")}

        with over(server, tenants(backend_user="ann", backend_password="ann")) as daemon, \
                client_of(daemon, "a") as client:
            assert client.set(b"k", b"of 1").status == 0
            assert who() == {("ann", "1")}
            daemon.write_config(tenants=tenants(backend_user="ben", backend_password="ben"))
            daemon.ctl("reload")
            assert client.get(b"k").value == b"of 1"
            assert ("ben", "1") in who()
            daemon.write_config(tenants=tenants(backend_user="ben", backend_password="ben",
                                                backend_database=4))
            daemon.ctl("reload")
            assert client.get(b"k").status == St.ENOENT
            assert client.set(b"k", b"of 4").status == 0
            assert ("ben", "4") in who()
            daemon.write_config(tenants=tenants())
            daemon.ctl("reload")
            assert client.get(b"k").value == b"of 1"
            told = lines_of(daemon, "tenant.a.")
            assert any('backend_user before="ann" after="ben"' in line for line in told), told
            assert any('backend_password before="(secret)" after=""' in line for line in told)
            assert all("takes effect only" not in line for line in told), told


def test_a_tenant_with_a_database_follows_the_upstreams_password(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(SECRETS[0])
    with Redis(password=SECRETS[0]) as server:
        tenants = [{"name": "default", "upstream": "store"},
                   {"name": "a", "upstream": "store", "backend_database": 1}]
        with over(server, tenants, upstream={"password_file": str(secret)}) as daemon, \
                client_of(daemon, "a") as client:
            assert client.set(b"k", b"v").status == 0
            for password in SECRETS[1:]:
                server.command("CONFIG", "SET", "requirepass", password)
                secret.write_text(password)
                daemon.ctl("reload")
                server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
                poll(lambda: client.get(b"k").value == b"v", 5, what="the new password")
            with daemon.client() as boss:
                blocks = {name.rsplit(":", 1)[0] for name in boss.stat("pool")}
                assert blocks == {"store:0:own", "store:0:/1"}, "each password made another login"


def test_another_user_with_his_password():
    users = {name: "on >%s ~* &* +@all" % name for name in ("ann", "ben")}
    with Redis(users=users) as server:
        setup = config(server, upstream={"user": "ann", "password": "ann"})
        with Headgate(setup) as daemon, client_of(daemon) as client:
            assert client.set(b"k", b"v").status == 0
            setup = config(server, upstream={"user": "ben", "password": "ben"})
            daemon.write_config(upstreams=setup["upstreams"])
            daemon.ctl("reload")
            assert client.get(b"k").value == b"v"
            with server.client() as at:
                assert "ben" in {row["user"] for row in at.clients()}
                poll(lambda: "ann" not in {row["user"] for row in at.clients()}, 5,
                     what="the old login's connections closed")
            assert lines_of(daemon, "upstream.store.user ", "changed")


def test_a_bucket_made_by_opcode_has_a_login_that_survives():
    users = {"ann": "on >%s ~* &* +@all" % SECRETS[0]}
    with Redis(users=users) as server, \
            over(server, [{"name": "default", "upstream": "store"}]) as daemon:
        daemon.ctl("create", "bucket", "made", "upstream=store", "backend_user=ann",
                   "backend_password=" + SECRETS[0], "backend_database=6")
        for _ in range(2):
            with client_of(daemon, "made") as client:
                assert client.set(b"k", b"v").status == 0
                assert server.command("GET", b"made:k", database=6)[12:] == b"v"
                with server.client() as at:
                    assert "ann" in {row["user"] for row in at.clients()}
            state = daemon.config["state_file"]
            assert stat.S_IMODE(os.stat(state).st_mode) == 0o600, "it has the password"
            assert SECRETS[0] not in daemon.stderr()
            daemon.restart()
        done = daemon.ctl("create", "bucket", "other", "backend_password_file=/etc/passwd",
                          check=False)
        assert done.returncode != 0 and "backend_password_file" in done.stderr
        with daemon.client() as boss:
            frame = boss.call(Op.CREATE_BUCKET, b"other",
                              b'{"backend_password_file":"/etc/passwd"}')
            assert frame.status == St.EINVAL and b"unknown key" in frame.value, show(frame)


# ---- flush by place ----

def test_who_is_alone_in_a_database_may_flush():
    with Redis() as server, over(server, [
            {"name": "a", "upstream": "store"}, {"name": "b", "upstream": "store"},
            {"name": "c", "upstream": "store", "backend_database": 2}]) as daemon:
        for name in ("a", "b", "c"):
            with client_of(daemon, name) as client:
                assert client.set(b"k", b"v").status == 0
        for name, status in (("a", St.NOT_SUPPORTED), ("c", 0)):
            with client_of(daemon, name) as client:
                assert client.call(Op.FLUSH).status == status
        assert [server.command("DBSIZE", database=n) for n in (0, 2)] == [2, 0]
        # Whoever comes to it takes the right away, and gives it back by leaving.
        daemon.ctl("create", "bucket", "d", "upstream=store", "backend_database=2")
        with client_of(daemon, "c") as client:
            assert client.call(Op.FLUSH).status == St.NOT_SUPPORTED
            daemon.ctl("delete", "bucket", "d")
            assert client.call(Op.FLUSH).status == 0


def flush_of(server, tenant, **options):
    """What a flush by the only tenant answers, and how many keys are left of two."""
    server.command("FLUSHDB")
    server.command("SET", "of another program", "v")
    with over(server, [dict(tenant, name="default", upstream="store")], upstream=options) as daemon, \
            client_of(daemon) as client:
        assert client.set(b"k", b"v").status == 0
        frame = client.call(Op.FLUSH)
        if frame.status:
            assert b"allow_flush: true on the upstream" in frame.value, show(frame)
        return frame.status, server.command("DBSIZE")


def test_a_flush_spares_what_other_programs_keep():
    with Redis() as server:
        assert flush_of(server, {}) == (0, 0)
        assert flush_of(server, {"key_prefix": "p:"}) == (St.NOT_SUPPORTED, 2)
        assert flush_of(server, {}, redis_layout="plain") == (St.NOT_SUPPORTED, 2)
        assert flush_of(server, {"key_prefix": "p:"}, allow_flush=True) == (0, 0)
        assert flush_of(server, {}, redis_layout="plain", allow_flush=True) == (0, 0)


def test_another_layout_counts_with_the_reload():
    """Whether a flush is allowed, and how items are kept, follow the layout at once."""
    with Redis() as server, over(server) as daemon, client_of(daemon) as client:
        daemon.write_config(upstreams=[upstream(server, redis_layout="plain")])
        daemon.ctl("reload")
        assert lines_of(daemon, "has redis_layout plain instead of item")
        assert client.set(b"k", b"v").status == 0
        assert server.command("GET", "k") == b"v"
        assert client.call(Op.FLUSH).status == St.NOT_SUPPORTED
        daemon.write_config(upstreams=[upstream(server)])
        daemon.ctl("reload")
        assert client.call(Op.FLUSH).status == 0
        assert client.get(b"k").status == St.ENOENT


def test_a_prefix_that_comes_with_a_second_tenant_is_warned_of():
    with Redis() as server, over(server, [{"name": "a", "upstream": "store"}]) as daemon, \
            client_of(daemon, "a") as client:
        assert client.set(b"k", b"v").status == 0
        rows = [{"name": "a", "upstream": "store"}, {"name": "b", "upstream": "store"}]
        daemon.write_config(tenants=rows)
        daemon.ctl("reload")
        told = lines_of(daemon, "the key prefix changes")
        assert len(told) == 1 and "tenant 'a'" in told[0], told
        assert "from '' to 'a:'" in told[0] and "write key_prefix: ''" in told[0], told
        rows.append({"name": "c", "upstream": "store"})
        daemon.write_config(tenants=rows)
        daemon.ctl("reload")
        assert len(lines_of(daemon, "the key prefix changes")) == 1


def test_where_on_a_cluster_asks_it():
    with RedisCluster(replicas=0) as cluster, \
            over(cluster, upstream={"kind": "redis-cluster"}) as daemon:
        def where():
            return daemon.ctl("where", "k").stdout.strip()

        first = where()
        assert first.startswith("not known yet") or first in [n.where for n in cluster.nodes], first
        poll(lambda: where() == cluster.owner(slot_of(b"k")).where, 5, what="the owner's name")


def test_where_names_the_server():
    with Redis() as server, over(server) as daemon:
        assert daemon.ctl("where", "k").stdout.strip() == server.where


# ---- logins of memcached ----

def test_memcached_is_logged_in_to_by_upstream_and_tenant():
    logins = []

    def handler(connection, frame):
        if frame.opcode == Op.SASL_AUTH:
            logins.append((frame.key, frame.value))
        FakeBackend.store(connection, frame)

    server = FakeBackend(handler)
    answer = server._answer
    server._answer = lambda frame: {} if frame.opcode == Op.SASL_AUTH else answer(frame)
    try:
        setup = {"upstreams": [{"name": "store", "kind": "memcached", "user": "gate",
                                "password": SECRETS[0], "servers": [{"address": server.where}]}],
                 "tenants": [{"name": "default", "upstream": "store"},
                             {"name": "a", "upstream": "store", "backend_user": "ann",
                              "backend_password": SECRETS[1]}]}
        with Headgate(setup) as daemon:
            for bucket in ("default", "a"):
                with client_of(daemon, bucket) as client:
                    assert client.set(b"k", b"v").status == 0
            assert not any(secret in daemon.stderr() for secret in SECRETS)
        assert set(logins) == {
            (b"PLAIN", b"\0gate\0" + SECRETS[0].encode()),
            (b"PLAIN", b"\0ann\0" + SECRETS[1].encode())}
    finally:
        server.stop()
