"""test_ring - keys that real clients put straight onto several memcached servers are found through
headgate, for every ring and hash, and `where` names the server that has them."""
# SPDX-License-Identifier: BSD-3-Clause

import os
import subprocess

import pytest

from mcbin import Client, Op, request, scaled, show
from servers import BUILD, Headgate

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT = 10000
RINGS = ("ketama", "ketama_weighted", "consistent", "modula")
# "-": no hash is named; the ring brings its own, as it does in libmemcached.
HASHES = ("-", "default", "md5", "crc", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "murmur",
          "jenkins", "murmur3")
COMBINATIONS = [(ring, name) for ring in RINGS for name in HASHES]
# 2 to 9 servers in turn; one ring runs through all numbers.
SIZES = {pair: 2 + number % 8 for number, pair in enumerate(COMBINATIONS)}


def bucket(ring, name):
    return "%s_%s" % (ring, "own" if name == "-" else name)


def weight(ring, number):
    return number % 4 + 1 if ring == "ketama_weighted" else 1


@pytest.fixture(scope="module")
def rings(farm):
    """One daemon with an upstream and a tenant for each combination, so that no key has a
    prefix; plus one tenant on a single server."""
    running = farm.servers(9)
    upstreams, tenants = [], [{"name": "default", "upstream": "one"}]
    upstreams.append({"name": "one", "kind": "memcached",
                      "servers": [{"address": running[0].where}]})
    for ring, name in COMBINATIONS:
        row = {"name": bucket(ring, name), "kind": "memcached", "ring": ring}
        if name != "-":
            row["hash"] = name
        row["servers"] = [{"address": server.where, "weight": weight(ring, number)}
                          for number, server in enumerate(running[:SIZES[ring, name]])]
        upstreams.append(row)
        tenants.append({"name": bucket(ring, name), "upstream": bucket(ring, name)})
    with Headgate({"upstreams": upstreams, "tenants": tenants}) as daemon:
        daemon.memcacheds = running
        yield daemon


def write_with_libmemcached(ring, name, prefix, memcacheds):
    """{number: server number}, as the library says."""
    where = ["%s/%d" % (server.where, weight(ring, number))
             for number, server in enumerate(memcacheds)]
    done = subprocess.run([os.path.join(BUILD, "ring_writer"), ring, name, prefix, str(COUNT),
                           *where], capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode == 0, done.stderr
    return dict(map(int, line.split()) for line in done.stdout.splitlines())


def read_through(client, prefix, values):
    """Fetches all keys by quiet gets; the numbers of those that are missing or different."""
    wrong = []
    numbers = sorted(values)
    for at in range(0, len(numbers), 1000):
        part = numbers[at:at + 1000]
        frames = client.quiet(*(request(Op.GETQ, prefix + str(n), opaque=n) for n in part))
        found = {frame.opaque: frame for frame in frames}
        for n in part:
            if n not in found or found[n].status or found[n].value != values[n]:
                wrong.append(n)
    return wrong


def where(client, key):
    """The server that `stat where` names, as host:port."""
    rows = client.stat("where " + key)
    return " ".join("%s %s" % item for item in rows.items())


@pytest.mark.foreign
@pytest.mark.parametrize("ring,name", COMBINATIONS)
def test_keys_of_libmemcached_are_found(rings, ring, name):
    memcacheds = rings.memcacheds[:SIZES[ring, name]]
    prefix = "%s:%d:" % (bucket(ring, name), os.getpid())
    placed = write_with_libmemcached(ring, name, prefix, memcacheds)
    assert len(placed) == COUNT
    with rings.client(bucket=bucket(ring, name)) as client:
        wrong = read_through(client, prefix, {n: b"%d@%d" % item for n, item in
                                              ((n, (n, server)) for n, server in placed.items())})
        assert not wrong, "%d of %d keys are not found, for example %s%d" % (
            len(wrong), COUNT, prefix, wrong[0])
        for n in range(0, COUNT, 251):
            told = where(client, prefix + str(n))
            named = [number for number, server in enumerate(memcacheds) if server.where in told]
            assert named == [placed[n]], "%s%d is on %s, where says: %s" % (
                prefix, n, memcacheds[placed[n]].where, told)


@pytest.mark.parametrize("ring,name", [("ketama", "md5"), ("ketama_weighted", "-"),
                                       ("consistent", "murmur"), ("modula", "default")])
def test_headgatectl_where_agrees_with_the_traffic(rings, ring, name):
    memcacheds = rings.memcacheds[:SIZES[ring, name]]
    with rings.client(bucket=bucket(ring, name)) as client:
        for number in range(12):
            key = "where:%s:%d:%d" % (ring, os.getpid(), number)
            assert client.set(key, b"v").status == 0
            told = rings.ctl("where", key, "--bucket", bucket(ring, name)).stdout
            named = [server for server in memcacheds if server.where in told]
            assert len(named) == 1, told
            holders = []
            for server in memcacheds:
                direct = Client(server.address)
                if direct.get(key).status == 0:
                    holders.append(server)
                direct.close()
            assert holders == named, "%s: where says %s" % (key, told)


@pytest.mark.foreign
@pytest.mark.parametrize("ring,name,behaviors", [
    ("ketama", "-", {"ketama": True}),
    ("ketama", "md5", {"ketama": True, "hash": "md5"}),
    ("ketama", "fnv1a_32", {"ketama": True, "hash": "fnv1a_32"}),
    ("consistent", "md5", {"distribution": "consistent", "hash": "md5"}),
    ("modula", "-", {}),
    ("modula", "crc", {"hash": "crc"}),
], ids=lambda item: item if isinstance(item, str) else "")
def test_keys_of_pylibmc_are_found(rings, ring, name, behaviors):
    import pylibmc  # pylint: disable=import-outside-toplevel
    memcacheds = rings.memcacheds[:SIZES[ring, name]]
    prefix = "py:%s:%d:" % (bucket(ring, name), os.getpid())
    direct = pylibmc.Client([server.where for server in memcacheds], binary=True,
                            behaviors=behaviors)
    failed = direct.set_multi({str(n): b"%d@pylibmc" % n for n in range(COUNT)}, key_prefix=prefix)
    assert not failed
    direct.disconnect_all()
    with rings.client(bucket=bucket(ring, name)) as client:
        wrong = read_through(client, prefix, {n: b"%d@pylibmc" % n for n in range(COUNT)})
        assert not wrong, "%d keys are not found, for example %s%d" % (
            len(wrong), prefix, wrong[0])


def dalli(prefix, memcacheds):
    done = subprocess.run(["ruby", os.path.join(HERE, "clients", "ring_writer.rb"), prefix,
                           str(COUNT), *(server.where for server in memcacheds)],
                          capture_output=True, text=True, timeout=scaled(60))
    assert done.returncode == 0, done.stderr


@pytest.mark.foreign
def test_keys_of_dalli_are_found(rings):
    """With one server every client agrees."""
    prefix = "dalli1:%d:" % os.getpid()
    dalli(prefix, rings.memcacheds[:1])
    with rings.client() as client:
        assert not read_through(client, prefix, {n: b"%d@dalli" % n for n in range(COUNT)})


@pytest.mark.foreign
def test_dalli_has_a_ring_of_its_own(rings):
    """With several it agrees with no ring of libmemcached: it takes the point before the key, over
    SHA-1. The manual says so; this notices if it ever changes."""
    prefix = "dalli4:%d:" % os.getpid()
    pair = next(pair for pair in COMBINATIONS if pair[0] == "ketama" and SIZES[pair] == 4)
    dalli(prefix, rings.memcacheds[:4])
    with rings.client(bucket=bucket(*pair)) as client:
        wrong = read_through(client, prefix, {n: b"%d@dalli" % n for n in range(COUNT)})
        assert 0.5 * COUNT < len(wrong) < 0.95 * COUNT, len(wrong)


@pytest.mark.foreign
def test_the_ring_sees_the_key_without_its_prefix(farm):
    """Tenants that share an upstream have prefixes; no key moves for that."""
    memcacheds = farm.servers(4)
    config = {"upstreams": [{"name": "shared", "kind": "memcached", "ring": "ketama",
                             "hash": "md5",
                             "servers": [{"address": server.where} for server in memcacheds]}],
              "tenants": [{"name": "default"}, {"name": "a"}, {"name": "b", "key_prefix": "zz"}]}
    prefix = "noprefix:%d:" % os.getpid()
    placed = write_with_libmemcached("ketama", "md5", prefix, memcacheds)
    with Headgate(config) as daemon:
        for name in ("default", "a", "b"):
            with daemon.client(bucket=name) as client:
                for n in range(0, COUNT, 199):
                    assert memcacheds[placed[n]].where in where(client, prefix + str(n)), name


def test_a_ring_survives_its_configuration_string(farm):
    """A libmemcached configuration string and the options mean the same ring."""
    memcacheds = farm.servers(3)
    text = "--DISTRIBUTION=consistent --HASH=MD5 " + " ".join(
        "--SERVER=" + server.where for server in memcacheds)
    config = {"upstreams": [
        {"name": "text", "kind": "memcached", "configuration": text},
        {"name": "rows", "kind": "memcached", "ring": "consistent", "hash": "md5",
         "servers": [{"address": server.where} for server in memcacheds]}],
        "tenants": [{"name": "default", "upstream": "text"}, {"name": "rows", "upstream": "rows"}]}
    with Headgate(config) as daemon:
        with daemon.client() as one, daemon.client(bucket="rows") as two:
            for number in range(300):
                key = "conf:%d:%d" % (os.getpid(), number)
                assert one.set(key, b"v").status == 0
                frame = two.get(key)
                assert frame.status == 0, "%s: %s" % (key, show(frame))
