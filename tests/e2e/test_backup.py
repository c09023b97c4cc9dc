"""test_backup - copies of an embedded store while it serves, and starts from them

headgatectl backup fetches a copy, headgate --restore puts it in place. Whatever a client does in
the middle, nothing is left behind in the server's directory.
"""
# SPDX-License-Identifier: BSD-3-Clause

import hashlib
import json
import os
import pty
import re
import signal
import socket
import stat
import struct
import subprocess
import threading

import pytest

from mcbin import Op, St, poll, request, scaled
from servers import (ADMIN, HEADGATE, HEADGATECTL, Headgate, Memcached, headgatectl,
                     temporary_directory, user_row)
from tablebin import H, Rows, T, cell, deletion, item, pb

END = 2**64 - 1


def step(backup=0, offset=0, count=0):
    return struct.pack(">QQI", backup, offset, count)


def call(client, backup=0, offset=0, count=0, upstream=b""):
    return client.call(Op.BACKUP, key=upstream, extras=step(backup, offset, count))


def ready(client, frame):
    """Waits for the copy that was begun; its description."""
    assert frame.status == 0, frame
    described = json.loads(frame.value)

    def is_ready():
        described.update(json.loads(client.ok(Op.BACKUP, extras=step(described["id"])).value))
        return described["state"] == "ready"
    poll(is_ready, what="the copy is ready")
    return described


def files(hg):
    return sorted(os.listdir(hg.config["data_dir"]))


def open_files(hg):
    """Names of the files without a name that the server holds open in its directory."""
    folder = "/proc/%d/fd" % hg.pid
    names = []
    for fd in os.listdir(folder):
        try:
            names.append(os.readlink(os.path.join(folder, fd)))
        except OSError:
            pass
    return [n for n in names if n.startswith(hg.config["data_dir"]) and n.endswith("(deleted)")]


def restore(path, data_dir, *more):
    return subprocess.run([HEADGATE, "--restore", path, "-d", data_dir, *more], text=True,
                          capture_output=True, timeout=scaled(20), check=False)


@pytest.fixture
def folder():
    return temporary_directory("hg-backup-")


@pytest.fixture(scope="module")
def shared():
    with Headgate() as hg:
        with hg.client() as client:
            for n in range(500):
                client.set("key%d" % n, b"v" * 300, flags=n)
        yield hg


def test_file_and_its_description(shared, folder):
    path = os.path.join(folder, "copy")
    done = shared.ctl("backup", path, "--json")
    told = json.loads(done.stdout)
    with open(path, "rb") as copy:
        content = copy.read()
    assert told == {"upstream": "embedded", "file": path, "bytes": len(content),
                    "sha256": hashlib.sha256(content).hexdigest()}
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(folder) == ["copy"]
    assert not open_files(shared)
    text = shared.ctl("backup", os.path.join(folder, "other")).stdout
    assert "upstream embedded" in text and told["sha256"] in text
    out = subprocess.run([HEADGATECTL, "-s", shared.where, "backup", "-"], check=True,
                         capture_output=True, timeout=scaled(20))
    assert out.stdout == content and out.stderr == b""


def test_existing_file(shared, folder):
    path = os.path.join(folder, "copy")
    with open(path, "w") as old:
        old.write("old")
    done = shared.ctl("backup", path, check=False)
    assert done.returncode == 2 and "exists (--force replaces it)" in done.stderr
    with open(path) as old:
        assert old.read() == "old"
    shared.ctl("backup", path, "--force")
    assert os.path.getsize(path) > 100000
    assert os.listdir(folder) == ["copy"]


def test_wrong_usage(shared, folder):
    path = os.path.join(folder, "copy")
    for args, code, text in [
            (["backup"], 2, "takes one file"),
            (["backup", path, path], 2, "takes one file"),
            (["backup", os.path.join(folder, "no", "such")], 2, "cannot create"),
            (["backup", path, "--upstream", "nix"], 1, "no upstream of this name (accepted: emb"),
            (["status", "--force"], 2, "")]:
        done = shared.ctl(*args, check=False)
        assert done.returncode == code and text in done.stderr, (args, done)
    assert os.listdir(folder) == []
    done = headgatectl("backup", path, server="127.0.0.1:1", check=False)
    assert done.returncode == 3
    assert os.listdir(folder) == []


def test_disk_of_the_client_is_full(shared):
    with open("/dev/full", "w") as full:
        done = subprocess.run([HEADGATECTL, "-s", shared.where, "backup", "-"], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=scaled(20), check=False)
    assert done.returncode == 2 and "No space left" in done.stderr
    poll(lambda: not open_files(shared), what="the copy is dropped")


def test_progress_on_a_terminal(shared, folder):
    master, slave = pty.openpty()
    child = subprocess.Popen([HEADGATECTL, "-s", shared.where, "backup",
                              os.path.join(folder, "copy")], stderr=slave,
                             stdout=subprocess.DEVNULL)
    os.close(slave)
    shown = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        if not data:
            break
        shown += data
    assert child.wait(scaled(10)) == 0
    os.close(master)
    assert b"copying" in shown and b"fetching" in shown and b"(100%)" in shown


def test_steps_of_the_opcode(shared):
    with shared.client() as one, shared.client() as two:
        told = ready(one, call(one))
        busy = call(two)
        assert busy.status == St.EBUSY and b"under way" in busy.value
        assert call(two, told["id"] + 1).status == St.ENOENT
        size = told["bytes"]
        for offset, count in [(size, 1), (0, size + 1), (0, 2**20 + 1), (2**63, 5), (END - 1, 9)]:
            frame = call(one, told["id"], offset, count)
            assert frame.status == St.EINVAL, (offset, count, frame)
        content = b""
        while len(content) < size:
            count = min(100001, size - len(content))
            frame = call(one, told["id"], len(content), count)
            assert frame.status == 0 and len(frame.value) == count
            content += frame.value
        assert hashlib.sha256(content).hexdigest() == told["sha256"]
        assert one.call(Op.BACKUP, extras=b"1234").status == St.EINVAL
        assert call(one, told["id"], END).status == 0
        assert call(one, told["id"]).status == St.ENOENT
        assert not open_files(shared)
        told = ready(two, call(two))
        assert call(two, told["id"], END).status == 0


def test_client_goes_in_the_middle(shared):
    """The copy goes with its connection, at once; the next one may begin."""
    before = files(shared)
    for _ in range(10):
        client = shared.client()
        frame = call(client)
        assert frame.status == 0, frame
        client.close()
        poll(lambda: not open_files(shared), what="the copy is dropped")
        assert files(shared) == before


def test_client_goes_before_the_answer(shared):
    """Nobody has heard of the copy: it does not stand in the way of the next one."""
    for _ in range(20):
        client = shared.client()
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.send(request(Op.BACKUP, extras=step()))
        client.close()
        with shared.client() as other:
            found = []

            def begins():
                found[:] = [call(other)]
                return found[0].status == 0
            poll(begins, what="the next backup begins")
            assert call(other, json.loads(found[0].value)["id"], END).status == 0


def test_server_ends_in_the_middle(folder):
    hg = Headgate()
    with hg.client() as client:
        for n in range(300):
            client.set("key%d" % n, b"v" * 100000)
        for kill in (False, True):
            with hg.client() as reader:
                told = ready(reader, call(reader))
                assert told["bytes"] > 30_000_000
                (hg.process.kill if kill else hg.terminate)()
            assert set(files(hg)) <= {"embedded.mdb", "embedded.mdb-lock", "handover.sock"}
            if not kill:
                hg.start()
    done = hg.ctl("backup", os.path.join(folder, "copy"), check=False)
    assert done.returncode == 3 and os.listdir(folder) == []
    hg.stop(check=False)


def test_upstream_is_removed_in_the_middle():
    config = {"upstreams": [{"name": "one", "kind": "embedded"}, {"name": "two", "kind": "embedded"}],
              "tenants": [{"name": "default", "upstream": "one"}]}
    with Headgate(config) as hg, hg.client() as client:
        told = ready(client, call(client, upstream=b"two"))
        both = list(config["upstreams"])
        hg.write_config(upstreams=both[:1])
        hg.ctl("reload")
        poll(lambda: call(client, told["id"]).status == St.ENOENT, what="the backup is dropped")
        assert not open_files(hg)
        hg.write_config(upstreams=both)
        poll(lambda: hg.ctl("reload", check=False).returncode == 0, what="it can come back")
        ready(client, call(client, upstream=b"two"))


def test_ctl_is_killed_in_the_middle(shared, folder):
    """What it leaves is a part that the next one writes over, never a file that looks whole."""
    path = os.path.join(folder, "copy")
    with shared.client() as holder:
        told = ready(holder, call(holder))  # the verb waits in vain: busy
        assert "under way" in shared.ctl("backup", path, check=False).stderr
        assert call(holder, told["id"], END).status == 0
    child = subprocess.Popen([HEADGATECTL, "-s", shared.where, "backup", path])
    poll(lambda: os.path.exists(path + ".part"), what="it has begun")
    child.send_signal(signal.SIGKILL)
    child.wait(scaled(10))
    assert set(os.listdir(folder)) <= {"copy", "copy.part"}
    shared.ctl("backup", path, "--force")
    assert os.listdir(folder) == ["copy"]
    poll(lambda: not open_files(shared), what="nothing is left")


def test_rights():
    users = {"users": [user_row("admin", privileges=ADMIN),
                       user_row("shop", buckets={"default": ["Read", "Write", "Stats"]})]}
    with Headgate(users=users) as hg:
        folder = temporary_directory("hg-backup-")
        path = os.path.join(folder, "copy")
        env = {"HEADGATE_PASSWORD": "pw"}
        done = hg.ctl("backup", path, user="shop", env=env, check=False)
        assert done.returncode == 1 and "0x24" in done.stderr
        assert hg.ctl("backup", path, check=False).returncode == 1
        assert os.listdir(folder) == []
        hg.ctl("backup", path, user="admin", env=env)
        assert "admin=admin" in hg.stderr() and "backup begun" in hg.stderr()


def test_upstreams_of_other_kinds(folder):
    memcached = Memcached()
    config = {"upstreams": [{"name": "cache", "kind": "memcached",
                             "servers": [{"address": memcached.where}]},
                            {"name": "one", "kind": "embedded"}, {"name": "two", "kind": "embedded"}],
              "tenants": [{"name": "default", "upstream": "one"},
                          {"name": "second", "upstream": "two"}]}
    with Headgate(config) as hg:
        path = os.path.join(folder, "copy")
        done = hg.ctl("backup", path, check=False)
        assert done.returncode == 1 and "name one of them: one, two" in done.stderr
        done = hg.ctl("backup", path, "--upstream", "cache", check=False)
        assert done.returncode == 1
        assert "of kind memcached: its servers keep its data (accepted: one, two)" in done.stderr
        with hg.client(bucket="second") as client:
            client.set("in two", b"2")
        hg.ctl("backup", path, "--upstream", "two")
        target = os.path.join(folder, "new")
        done = subprocess.run([HEADGATE, "--restore", path, "-c", hg.config_path, "-d", target],
                              capture_output=True, text=True, timeout=scaled(20), check=False)
        assert done.returncode == 1 and "use --upstream (accepted: one, two)" in done.stderr
        done = subprocess.run([HEADGATE, "--restore", path, "-c", hg.config_path, "-d", target,
                               "--upstream", "one"], capture_output=True, text=True,
                              timeout=scaled(20), check=True)
        assert "1 tenants, 1 items" in done.stdout
        assert os.listdir(target) == ["one.mdb"]
    memcached.stop()


class Writer(threading.Thread):
    """Writes pairs, first a then b, and notes how far the answers have come."""

    def __init__(self, hg, number):
        super().__init__(daemon=True)
        self.client = hg.client(bucket="shop" if number % 2 else "default")
        self.number, self.answered, self.going = number, 0, True
        self.start()

    def run(self):
        n = 0
        while self.going:
            for half in "ab":
                frame = self.client.set("%d%s%d" % (self.number, half, n), b"%d" % n + b"x" * 200)
                assert frame.status == 0
            n += 1
            self.answered = n

    def end(self):
        self.going = False
        self.join()
        self.client.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_copy_under_load_and_start_from_it(folder, threads):
    config = {"threads": threads, "tenants": [{"name": "default", "upstream": "main"},
                                              {"name": "shop", "upstream": "main"}],
              "upstreams": [{"name": "main", "kind": "embedded"}]}
    path = os.path.join(folder, "copy")
    with Headgate(config) as hg:
        with hg.client() as client, hg.client(bucket="shop") as shop:
            cas = {n: client.set("k%d" % n, b"%d" % n * (n % 700), flags=n).cas for n in range(1500)}
            shop.set("k1", b"another tenant's", flags=7)
            shop.set("gone soon", b"1", expiry=2)
            shop.set("gone late", b"2", expiry=1000)
            client.set("large", bytes(range(256)) * 4000)
            rows = Rows(shop, "orders")
            for n in range(100):
                assert rows.insert("row%03d" % n, number=n, text="t" * n).affected == 1
        writers = [Writer(hg, n) for n in range(4)]
        poll(lambda: all(w.answered > 20 for w in writers), what="the writers write")
        answered = [w.answered for w in writers]
        hg.ctl("backup", path)
        later = [w.answered for w in writers]
        for writer in writers:
            writer.end()
        hg.config["data_dir"] = os.path.join(folder, "new")
        hg.terminate()
        done = restore(path, hg.config["data_dir"], "-c", hg.config_path)
        assert done.returncode == 0 and "2 tenants" in done.stdout, done
        hg.write_config()
        hg.start()
        with hg.client() as client, hg.client(bucket="shop") as shop:
            for n, value in cas.items():
                frame = client.get("k%d" % n)
                assert (frame.status, frame.value, frame.cas) == (0, b"%d" % n * (n % 700), value)
                assert frame.extras == struct.pack(">I", n)
            assert client.get("large").value == bytes(range(256)) * 4000
            assert shop.get("k1").value == b"another tenant's"
            assert shop.get("gone late").value == b"2"
            poll(lambda: shop.get("gone soon").status == St.ENOENT, what="it expires")
            assert client.get("gone late").status == St.ENOENT
            rows = Rows(shop, "orders")
            for n in range(100):
                assert rows.get("row%03d" % n) == {"number": n, "text": b"t" * n}
            # No CAS is given twice.
            assert client.set("new", b"v").cas > max(cas.values())
            for number, before, after in zip(range(4), answered, later):
                reader = shop if number % 2 else client
                a = b = 0
                while reader.get("%da%d" % (number, a)).status == 0:
                    a += 1
                while reader.get("%db%d" % (number, b)).status == 0:
                    b += 1
                # All that was answered before, nothing of a b without its a, no hole behind.
                assert before <= b <= a <= b + 1
                assert b <= after + 1
                for n in range(a, a + 50):
                    assert reader.get("%da%d" % (number, n)).status == St.ENOENT
                    assert reader.get("%db%d" % (number, n)).status == St.ENOENT


def test_large_store(folder):
    """100 MB, while a client is served."""
    path = os.path.join(folder, "copy")
    with Headgate({"threads": 2}) as hg:
        with hg.client(timeout=30) as client:
            for n in range(100):
                client.set("key%d" % n, os.urandom(1000) * 1000)
        writer = Writer(hg, 0)
        hg.ctl("backup", path)
        writer.end()
        assert writer.answered > 0
        assert os.path.getsize(path) > 100_000_000
        rss = hg.process.rss_bytes()
        assert rss < 700_000_000
    done = restore(path, os.path.join(folder, "new"))
    assert done.returncode == 0, done
    items, size = re.search(r"1 tenants, (\d+) items, (\d+) bytes", done.stdout).groups()
    assert int(items) >= 100 and int(size) > 100_000_000


def test_restore_refuses(shared, folder):
    path, new = os.path.join(folder, "copy"), os.path.join(folder, "new")
    shared.ctl("backup", path)
    with open(path, "rb") as copy:
        content = copy.read()
    bad = os.path.join(folder, "bad")

    def refused(data, text):
        with open(bad, "wb") as out:
            out.write(data)
        done = restore(bad, new)
        assert done.returncode == 1, done
        assert bad in done.stderr and text in done.stderr, done.stderr
        # The same in the place of a store: the server does not start with it.
        place = os.path.join(folder, "place")
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, "embedded.mdb"), "wb") as out:
            out.write(data)
        return subprocess.run([HEADGATE, "-d", place, "-l", "127.0.0.1:0"], text=True,
                              capture_output=True, timeout=scaled(20), check=False)
    for data, text in [
            (content[:len(content) // 2], "is damaged"),
            (content[:5000], "is damaged"),
            (content[:100], "it has only 100 bytes"),
            (b"garbage" * 5000, "no LMDB file"),
            (content.replace(b"HGES\0\0\0\1", b"HGES\0\0\0\2"),
             "has format version 2, this program reads version 1")]:
        done = refused(data, text)
        assert done.returncode == 1 and "embedded.mdb" in done.stderr and text in done.stderr, done
    assert restore(os.path.join(folder, "none"), new).returncode == 1
    assert restore(folder, new).returncode == 1
    assert not os.path.exists(new) or os.listdir(new) == []
    # A store that is there, or in use.
    assert restore(path, new).returncode == 0
    done = restore(path, new)
    assert done.returncode == 1 and "--force replaces it" in done.stderr
    assert restore(path, new, "--force").returncode == 0
    done = restore(path, shared.config["data_dir"], "--force")
    assert done.returncode == 1 and "used by another process" in done.stderr
    done = subprocess.run([HEADGATE, "--force"], capture_output=True, text=True,
                          timeout=scaled(20), check=False)
    assert done.returncode == 2 and "--restore" in done.stderr
    done = restore(path, new, "--check")
    assert done.returncode == 2 and "--restore and --check" in done.stderr, done
    assert os.listdir(new) == ["embedded.mdb"]
    assert stat.S_IMODE(os.stat(os.path.join(new, "embedded.mdb")).st_mode) == 0o600


def test_damaged_rows():
    """A value that is no row document any more, which no look at a file finds: only a delete of the
    whole row can do something with it, and does."""
    with Headgate() as hg:
        with hg.client() as client:
            rows = Rows(client, "t")
            for name in ("one", "two", "other"):
                assert rows.insert(name, a=name, b=1).affected == 1
            cells = pb.HBaseRequest(cells=[cell("f:q", b"v")])
            assert rows.hbase(H.PUT, "wide", cells).status == 0
        hg.terminate()
        path = os.path.join(hg.config["data_dir"], "embedded.mdb")
        with open(path, "r+b") as file:
            content = file.read()
            for mark in (b"t\0one", b"t\0two", b"t\0wide"):
                at = content.find(mark)
                while at >= 0:
                    at = content.find(b"\xf7HGR", at)
                    content = content[:at + 5] + b"\xff\xff\xff" + content[at + 8:]
                    at = content.find(mark, at)
            file.seek(0)
            file.write(content)
        hg.start()
        with hg.client() as client:
            rows = Rows(client, "t")
            for name in ("one", "two"):
                assert rows.table(T.GET, name).status == St.EINTERNAL
                assert rows.put(name, a=1).status == St.EINTERNAL
            assert rows.hbase(H.GET, "wide").status == St.EINTERNAL
            reply = rows.delete("one")
            assert (reply.status, reply.affected) == (0, 1)
            reply = rows.batch(item(T.DELETE, "two"))
            assert reply.status == 0 and reply.body.items[0].status == 0
            column = pb.HBaseRequest(deletions=[deletion("COLUMNS", "f:q")])
            assert rows.hbase(H.DELETE, "wide", column).status == St.EINTERNAL
            assert rows.hbase(H.DELETE, "wide").status == 0
            for name in ("one", "two"):
                assert rows.get(name) is None
                assert rows.insert(name, a=2).affected == 1
            assert rows.hbase(H.GET, "wide").status == 0
            assert rows.get("other") == {"a": b"other", "b": 1}


def test_when_full():
    """Refuse, then evict by a reload: six times the quota goes in, and the newest is there."""
    config = {"upstreams": [{"name": "main", "kind": "embedded", "embedded_max_bytes": "1 MiB",
                             "embedded_when_full": "refuse"}],
              "tenants": [{"name": "default", "upstream": "main"}]}
    with Headgate(config) as hg, hg.client() as client:
        n = 0
        while client.set("a%d" % n, b"x" * 1000).status == 0:
            n += 1
        assert 500 < n < 1100
        hg.config["upstreams"][0]["embedded_when_full"] = "evict"
        hg.write_config()
        hg.ctl("reload")
        poll(lambda: client.set("first", b"x" * 1000).status == 0, what="it evicts")
        for n in range(6000):
            frame = client.set("b%d" % n, b"y" * 1000)
            assert frame.status == 0, frame
        stats = client.stat("upstreams")
        assert int(stats["main:used_bytes"]) <= 1 << 20
        assert int(stats["main:evicted"]) > 5000
        assert int(stats["main:evicted_bytes"]) > 5_000_000
        present = [n for n in range(6000) if client.get("b%d" % n).status == 0]
        assert len(present) > 350 and sum(n >= 5800 for n in present) > 180
