"""test_redis_servers - the test library's Redis servers do what the suites believe of them: a server
that restarts empty, a cluster that moves slots and promotes replicas, fakes that can be wrong."""
# SPDX-License-Identifier: BSD-3-Clause

import threading

import pytest

from mcbin import Closed, poll
from redisservers import CUT, HANG, CountingProxy, FakeRedis, Redis, RedisCluster
from respbin import Resp, RespError, bulk, cut, encode, slot_of


@pytest.fixture(scope="module")
def cluster():
    with RedisCluster() as made:
        yield made


def test_cutting_replies():
    first = encode("SET", b"k\r\n", b"")
    data = first + b"$-1\r\n*-1\r\n:-7\r\n-ERR no\r\n+OK\r\n*2\r\n$1\r\na\r\n*0\r\n"
    at, values = 0, []
    while at < len(data):
        value, at = cut(data, at)
        values.append(value)
    assert values[0] == [b"SET", b"k\r\n", b""] and values[1:4] == [None, None, -7]
    assert isinstance(values[4], RespError) and values[4].code == "ERR"
    assert values[5:] == ["OK", [b"a", []]]
    for end in range(len(data)):
        value, after = cut(data[:end])
        assert (after is None) == (end < len(first)), (end, value)


def test_slots_of_keys():
    assert slot_of(b"123456789") == 0x31C3
    assert slot_of(b"x{a}b") == slot_of(b"a") and slot_of(b"{}a") != slot_of(b"")


def test_a_server_restarts_empty_on_its_port():
    with Redis(password="pw", users={"app": "on >secret ~app:* +@all"}) as server:
        port = server.port
        with server.client() as client, Resp(server.address, user="app", password="secret") as app:
            client.command("SET", "k", "v")
            app.command("SET", "app:k", b"\x00\xff")
            with pytest.raises(RespError) as wrong:
                app.command("SET", "k", "w")
            assert wrong.value.code == "NOPERM"
            assert len(client.clients()) == 1
        with Resp(server.address) as stranger:
            assert stranger.pipeline([["GET", "k"]])[0].code == "NOAUTH"
        server.kill()
        server.restart()
        assert server.port == port and server.command("GET", "k") is None


def test_slots_of_a_cluster(cluster):
    for key in (b"", b"k", b"{a}b", b"x{a}b", b"{}a", b"a{}{b}", b"{a", b"}a{b}", b"{a}{b}",
                b"{{a}}", bytes(range(256))):
        assert cluster.nodes[0].command("CLUSTER", "KEYSLOT", key) == slot_of(key), key


def test_a_cluster_serves_moves_and_heals(cluster):
    keys = [b"key:%d" % n for n in range(300)]
    for key in keys:
        cluster.command(key, "SET", key, b"of " + key)
    assert sorted(cluster.keys()) == sorted(keys)
    slot = slot_of(keys[0])
    source = cluster.owner(slot)
    target = next(node for node in cluster.masters() if node is not source)
    # A slot that is leaving: its node serves what it still has and sends the rest on.
    cluster.start_move(slot, target)
    with source.client() as at:
        assert at.command("GET", keys[0]) == b"of " + keys[0]
        assert at.pipeline([["GET", b"{%s}x" % keys[0]]])[0].code == "ASK"
    cluster.move_keys(slot, source, target)
    cluster.end_move(slot, source, target)
    with source.client() as at:
        assert at.pipeline([["GET", keys[0]]])[0].code == "MOVED"
    assert cluster.where_is(keys[0]) is target
    cluster.wait_ok()

    node = cluster.add_node()
    cluster.move_slot(slot, node)
    assert cluster.command(keys[0], "GET", keys[0]) == b"of " + keys[0]
    assert cluster.where_is(keys[0]) is node
    # Back, so that the node with a replica has it when it dies.
    cluster.move_slot(slot, target)
    cluster.wait_ok()

    poll(lambda: all(cluster.command(key, "WAIT", 1, 100) >= 1 for key in keys[:3]), 10,
         what="replicas in step")
    dead = cluster.where_is(keys[0])
    promoted = cluster.kill_master(dead)
    assert promoted in cluster.nodes[3:6] and cluster.is_master(promoted)
    assert all(cluster.command(key, "GET", key) == b"of " + key for key in keys)
    dead.restart()
    cluster.wait_known()
    poll(lambda: not cluster.is_master(dead), 20, what="the old master a replica")


def test_a_fake_answers_what_it_is_told():
    def handler(connection, arguments):
        if arguments[0].upper() == b"GET":
            return {b"hang": HANG, b"cut": CUT, b"mine": bulk("other")}.get(arguments[1])
        return None
    with Redis() as real:
        fake = FakeRedis(real, handler)
        with Resp(fake.address, timeout=0.3) as client:
            assert client.command("SET", "k", b"v" * 100000) == "OK"
            assert client.command("GET", "k") == b"v" * 100000
            assert client.command("GET", "mine") == b"other"
            with pytest.raises(TimeoutError):
                client.command("GET", "hang")
            with pytest.raises(Closed):
                client.command("GET", "cut")
        assert len(fake.commands(b"GET")) == 4
        fake.refuse()
        with pytest.raises(OSError):
            Resp(fake.address)
        fake.listen()
        with Resp(fake.address) as client:
            assert client.command("PING") == "PONG"
        fake.stop()


def test_a_proxy_counts():
    with Redis() as real, CountingProxy(real.address) as proxy:
        address = ("127.0.0.1", proxy.port)
        clients = [Resp(address) for _ in range(5)]
        value = b"x" * 3000000
        threads = [threading.Thread(target=c.command, args=("SET", "k%d" % n, value))
                   for n, c in enumerate(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert all(c.command("GET", "k%d" % n) == value for n, c in enumerate(clients))
        for client in clients:
            client.close()
        poll(lambda: proxy.now == 0, what="all gone")
        assert proxy.most == 5 and proxy.worst_second() == 5 and not proxy.refused
        real.kill()
        with Resp(address, timeout=1) as client, pytest.raises(Closed):
            client.command("PING")
        assert proxy.refused == 1 and len(proxy.connects) == 6
