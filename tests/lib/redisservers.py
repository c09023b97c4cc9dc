"""redisservers - real Redis servers and clusters for tests, and what stands between them and
headgate: a server that answers some commands wrongly, and one that counts connections.

As in servers: everything listens on 127.0.0.1 or a unix socket, is waited for with a bound, and is
ended by its pid.
"""
# SPDX-License-Identifier: BSD-3-Clause

import collections
import os
import selectors
import shutil
import socket
import threading
import time

from mcbin import PATIENCE, Closed, connect_socket, poll, scaled
from respbin import Resp, RespError, SLOTS, cut, slot_of
from servers import Process, free_port, temporary_directory

# The tests' own user, whatever the server asks of others.
USER, PASSWORD = "tests", "tests-password"


class Redis:
    """A real redis-server that stores nothing on disk.

    password: of the default user; users: {name: rules of ACL SETUSER}; memory: maxmemory in bytes
    (with noeviction); tls: a certs.Tls, then it speaks nothing else; options: further ones of its
    configuration, by name."""

    def __init__(self, password=None, users=None, memory=None, databases=16, unix=False, port=None,
                 tls=None, **options):
        self.directory = temporary_directory("hg-rd-")
        self.unix_path = os.path.join(self.directory, "sock") if unix else None
        self.port = None if unix else port
        self.password, self.users, self.memory = password, dict(users or {}), memory
        self.databases, self.options, self.tls = databases, options, tls
        self.process = None
        self.start()

    @property
    def address(self):
        return self.unix_path or ("127.0.0.1", self.port)

    @property
    def where(self):
        """The address as configurations write it."""
        return "unix:" + self.unix_path if self.unix_path else "127.0.0.1:%d" % self.port

    @property
    def pid(self):
        return self.process.pid

    def argv(self):
        options = {"save": "", "appendonly": "no", "databases": self.databases,
                   "enable-debug-command": "local", "dir": self.directory,
                   "repl-diskless-sync-delay": 0}
        if self.unix_path:
            options.update(port=0, unixsocket=self.unix_path)
        else:
            options.update(port=self.port, bind="127.0.0.1")
        if self.tls:
            options.update({"port": 0, "tls-port": self.port, "tls-replication": "yes",
                            "tls-cert-file": self.tls.shown.certificate,
                            "tls-key-file": self.tls.shown.key,
                            "tls-ca-cert-file": self.tls.authority.certificate,
                            "tls-auth-clients": "yes" if self.tls.ask else "no"})
        if self.password is not None:
            options["requirepass"] = self.password
        if self.memory is not None:
            options.update({"maxmemory": self.memory, "maxmemory-policy": "noeviction"})
        options.update({name.replace("_", "-"): value for name, value in self.options.items()})
        argv = ["redis-server"]
        for name, value in options.items():
            argv += ["--" + name, str(value)]
        for name, rules in {**self.users, USER: "on >%s ~* &* +@all" % PASSWORD}.items():
            argv += ["--user", name, *rules.split()]
        return argv

    def client(self, database=0, timeout=PATIENCE):
        """A connection of the tests' own user, who may do anything."""
        return Resp(self.address, timeout, USER, PASSWORD, database,
                    self.tls.client if self.tls else None)

    def command(self, *arguments, database=0):
        with self.client(database) as client:
            return client.command(*arguments)

    def _is_up(self):
        """That process answers there, not another run's that took the port first."""
        try:
            with self.client(timeout=1.0) as client:
                return client.info("server").get("process_id") == str(self.process.pid)
        except (OSError, Closed, RespError, AssertionError):
            return False

    def start(self):
        fixed, log = self.port, b""
        for _ in range(5):
            self.port = fixed
            if not self.unix_path and self.port is None:
                self.port = free_port()
            self.process = Process(self.argv(), self.directory, "redis")
            deadline = time.monotonic() + scaled(PATIENCE)
            while self.process.alive() and time.monotonic() < deadline:
                if self._is_up():
                    return self
                time.sleep(0.01)
            log = self.process.stderr()
            self.process.kill()
        raise AssertionError("redis-server did not start: %r" % log[-2000:])

    def restart(self):
        """Start again on the same port after kill(): empty, and knowing no script."""
        return self.start()

    def pause(self):
        self.process.pause()

    def resume(self):
        self.process.resume()

    def kill(self):
        self.process.kill()

    def stop(self):
        self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()


class Node(Redis):
    """A node of a cluster."""

    def __init__(self, **options):
        self.bus_port = free_port()
        if options.get("tls"):
            options = dict(options, tls_cluster="yes")
        super().__init__(cluster_enabled="yes", cluster_port=self.bus_port,
                         cluster_config_file="nodes.conf", **options)
        self.id = self.command("CLUSTER", "MYID").decode()

    def cluster_info(self):
        text = self.command("CLUSTER", "INFO").decode()
        return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


class RedisCluster:
    """A real cluster on loopback: `masters` nodes that share the slots, each with one replica.

    A node that does not answer for `timeout_ms` is given up by the others; then its replica takes
    over. `nodes` are all, in the order in which they were made: masters first."""

    def __init__(self, masters=3, replicas=3, timeout_ms=1500, **options):
        self.options = dict({"cluster_node_timeout": timeout_ms,
                             "cluster_replica_validity_factor": 0,
                             "cluster_allow_replica_migration": "no",
                             "repl_ping_replica_period": 1}, **options)
        self.nodes, self._receiver = [], None
        try:
            self.nodes = [Node(**self.options) for _ in range(masters + replicas)]
            self._join(masters)
        except BaseException:
            self.stop()
            raise

    def _join(self, masters):
        for number, node in enumerate(self.nodes):
            node.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            self.meet(node)
        for number in range(masters):
            low, high = SLOTS * number // masters, SLOTS * (number + 1) // masters - 1
            self.nodes[number].command("CLUSTER", "ADDSLOTSRANGE", low, high)
        self.wait_known()
        for number, node in enumerate(self.nodes[masters:]):
            node.command("CLUSTER", "REPLICATE", self.nodes[number % masters].id)
        self.wait_ok()
        poll(lambda: all(node.client().info("replication").get("master_link_status") == "up"
                         for node in self.nodes[masters:]), 20, 0.05, "replicas in step")

    def meet(self, node):
        node.command("CLUSTER", "MEET", "127.0.0.1", self.nodes[0].port, self.nodes[0].bus_port)

    # -- what it looks like --

    def alive(self):
        return [node for node in self.nodes if node.process.alive()]

    @property
    def where(self):
        """The seeds of a configuration: two nodes that live."""
        return [node.where for node in self.alive()[:2]]

    def wait_known(self):
        """Every living node knows of every other."""
        living = self.alive()
        poll(lambda: all(len(self.table(node)) >= len(living) for node in living), 20, 0.05,
             "all nodes known")

    def wait_ok(self, timeout=20):
        """Every living node serves, and all agree on who has which slots."""
        seen = {}

        def agreed():
            seen.clear()
            for node in self.alive():
                try:
                    state = node.cluster_info()["cluster_state"], self._owners_of(node)
                except (OSError, Closed, RespError) as wrong:
                    state = repr(wrong)
                seen.setdefault(state, []).append(node.port)
            return len(seen) == 1 and list(seen)[0][0] == "ok"
        try:
            poll(agreed, timeout, 0.05, "cluster state ok")
        except AssertionError as late:
            raise AssertionError("%s; the nodes say: %s" % (late, {
                str(ports): state for state, ports in seen.items()})) from None

    @staticmethod
    def table(node):
        """{id: (flags, link, [(low, high)])} as that node sees them."""
        found = {}
        for line in node.command("CLUSTER", "NODES").decode().splitlines():
            words = line.split()
            ranges = [tuple(int(n) for n in (word + "-" + word).split("-")[:2])
                      if "-" not in word else tuple(int(n) for n in word.split("-"))
                      for word in words[8:] if not word.startswith("[")]
            found[words[0]] = (words[2].split(","), words[7], ranges)
        return found

    def _owners_of(self, node):
        return tuple(sorted((low, high, name) for name, (_, _, ranges) in self.table(node).items()
                            for low, high in ranges))

    def node_of(self, name):
        return next(node for node in self.nodes if node.id == name)

    def _witness(self):
        """A living master: those are told of a move, replicas hear of it later."""
        for node in self.alive():
            flags, _, ranges = self.table(node)[node.id]
            if "master" in flags and ranges:
                return node
        raise AssertionError("no master lives")

    def owner(self, slot):
        """The node that has a slot, as the living masters see it."""
        for low, high, name in self._owners_of(self._witness()):
            if low <= slot <= high:
                return self.node_of(name)
        raise AssertionError("nobody has slot %d" % slot)

    def where_is(self, key):
        """The node that serves a key."""
        return self.owner(slot_of(key))

    def masters(self):
        """The nodes that have slots."""
        return [self.node_of(name) for name in sorted({n for _, _, n in
                                                       self._owners_of(self._witness())})]

    def is_master(self, node):
        return "master" in self.table(node)[node.id][0]

    def command(self, key, *arguments):
        """A command on the node that serves `key`."""
        return self.where_is(key).command(*arguments)

    def keys(self):
        """All keys of the living masters."""
        return [key for node in self.masters() if node.process.alive()
                for key in node.command("KEYS", "*")]

    # -- what happens to it --

    def kill_master(self, node):
        """Kills it; returns once a replica has its slots and all living nodes agree.

        All agree before that, too: a slot that the node has only just got, and of which its
        replica has not heard, would die with it."""
        self.wait_ok()
        slots = self.table(node)[node.id][2]
        assert slots, "no master"
        node.kill()
        poll(lambda: self.owner(slots[0][0]) is not node, 30, 0.05, "a replica promoted")
        self.wait_ok()
        return self.owner(slots[0][0])

    def add_node(self):
        """One more master, without slots yet."""
        node = Node(**self.options)
        self.nodes.append(node)
        self.meet(node)
        self.wait_known()
        self.wait_ok()
        return node

    def start_move(self, slot, to):
        """The state between: the slot is leaving its node (ASK), no key has moved."""
        if to is not self._receiver:
            # A node that receives a slot takes a new epoch. Nodes that have not heard of the last
            # receiver's yet would never believe it once there is a newer one.
            self.wait_ok()
            self._receiver = to
        source = self.owner(slot)
        assert source is not to
        to.command("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
        return source

    @staticmethod
    def move_keys(slot, source, to, count=1000, client=None):
        """Moves up to `count` keys of the slot; the number that was moved."""
        with client or source.client(timeout=10) as at:
            keys = at.command("CLUSTER", "GETKEYSINSLOT", slot, count)
            if keys:
                at.command("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "AUTH2", USER, PASSWORD,
                           "KEYS", *keys, timeout=10)
        return len(keys)

    def end_move(self, slot, source, to):
        for node in [to, source] + [n for n in self.masters() if n not in (to, source)]:
            node.command("CLUSTER", "SETSLOT", slot, "NODE", to.id)

    def move_slot(self, slot, to, count=100):
        """A slot with its keys, `count` keys at a time, while clients go on."""
        source = self.start_move(slot, to)
        while self.move_keys(slot, source, to, count):
            pass
        self.end_move(slot, source, to)

    def stop(self):
        for node in self.nodes:
            node.stop()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()


# ---- a server that says what a test wants, now and then ----

HANG, CUT = object(), object()


class FakeRedis:
    """Stands in front of a real Redis: handler(connection, arguments) is called for every command
    and returns None (the real one answers), the bytes of a reply, HANG (no answer) or CUT (the
    connection ends). Without a real one every command needs an answer of the handler.

    seen: list of (time, connection number, [arguments])."""

    def __init__(self, real=None, handler=None):
        self.real, self.handler = real, handler or (lambda connection, arguments: None)
        self.port = free_port()
        self.seen, self.connects, self.open = [], [], {}
        self.lock = threading.Lock()
        self.listener = None
        self.listen()

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    @property
    def where(self):
        return "127.0.0.1:%d" % self.port

    def listen(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(self.address)
        self.listener.listen(256)
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()
        return self

    def refuse(self):
        """Stop listening and cut every connection: connects are refused."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.cut()

    def cut(self):
        with self.lock:
            gone, self.open = list(self.open.values()), {}
        for sock in gone:
            _end(sock)

    stop = refuse

    def commands(self, name=None):
        """The commands seen so far, those of one name only when given."""
        with self.lock:
            return [a for _, _, a in self.seen if name is None or a[0].upper() == name]

    def _accept(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                number = len(self.connects)
                self.connects.append(time.monotonic())
                self.open[number] = sock
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        behind, data = None, bytearray()
        try:
            behind = Resp(self.real.address) if self.real else None
            while True:
                arguments, end = cut(data)
                if end is None:
                    more = sock.recv(1 << 16)
                    if not more:
                        return
                    data += more
                    continue
                raw = bytes(data[:end])
                del data[:end]
                with self.lock:
                    self.seen.append((time.monotonic(), number, arguments))
                answer = self.handler(number, arguments)
                if answer is None:
                    behind.send(raw)
                    answer = behind.recv_raw()[1]
                if answer is CUT:
                    return
                if answer is not HANG:
                    sock.sendall(answer)
        except (OSError, Closed, AssertionError):
            pass
        finally:
            with self.lock:
                self.open.pop(number, None)
            sock.close()
            if behind:
                behind.close()


def _end(sock):
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


# ---- a server that counts ----

class CountingProxy:
    """Passes bytes on between its clients and a server, in one thread, and counts connections:
    `connects` are the times of all, `refused` those that found no server behind, `most` is how many
    there were at a time."""

    def __init__(self, address, port=None):
        self.behind = address
        self.port = port or free_port()
        self.connects, self.most, self.refused = [], 0, 0
        self.peers, self.clients = {}, set()
        self.cutting = False
        self.waiting = collections.defaultdict(bytearray)
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(256)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.stopping = False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def where(self):
        return "127.0.0.1:%d" % self.port

    @property
    def now(self):
        """Connections at this moment."""
        return len(self.peers) // 2

    def worst_second(self, begin=0.0):
        """The most connects in any one second from `begin` (monotonic) on."""
        times = [at for at in list(self.connects) if at >= begin]
        most, low = 0, 0
        for high, at in enumerate(times):
            while at - times[low] >= 1.0:
                low += 1
            most = max(most, high - low + 1)
        return most

    def cut(self):
        """Ends all connections at once."""
        self.cutting = True
        poll(lambda: not self.cutting, what="all connections cut")

    def stop(self):
        self.stopping = True
        self.thread.join(scaled(PATIENCE))
        for sock in list(self.peers):
            sock.close()
        self.listener.close()
        self.selector.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    def _run(self):
        while not self.stopping:
            if self.cutting:
                for sock in list(self.clients):
                    self._drop(sock)
                self.cutting = False
            for ready, events in self.selector.select(0.05):
                if ready.fileobj is self.listener:
                    self._accept()
                    continue
                if events & selectors.EVENT_READ and ready.fileobj in self.peers:
                    self._pass(ready.fileobj)
                if events & selectors.EVENT_WRITE and ready.fileobj in self.peers:
                    self._flush(ready.fileobj)

    def _accept(self):
        # Whatever was closed before this one came is counted as gone: its end is in the socket.
        for old in list(self.peers):
            if old in self.clients:
                self._pass(old)
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        self.connects.append(time.monotonic())
        try:
            other = connect_socket(self.behind, 1.0)
        except OSError:
            self.refused += 1
            sock.close()
            return
        self.clients.add(sock)
        for one, peer in (sock, other), (other, sock):
            one.setblocking(False)
            if one.family != socket.AF_UNIX:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.peers[one] = peer
            self.selector.register(one, selectors.EVENT_READ)
        self.most = max(self.most, self.now)

    def _pass(self, sock):
        """Hands on what is there, up to the end."""
        while sock in self.peers:
            try:
                data = sock.recv(1 << 17)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._drop(sock)
                return
            peer = self.peers[sock]
            self.waiting[peer] += data
            self._flush(peer)

    def _flush(self, sock):
        data = self.waiting[sock]
        try:
            del data[:sock.send(data)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(sock)
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if data else 0)
        self.selector.modify(sock, wanted)

    def _drop(self, sock):
        peer = self.peers.pop(sock)
        self.peers.pop(peer)
        for one in sock, peer:
            self.selector.unregister(one)
            self.waiting.pop(one, None)
            self.clients.discard(one)
            one.close()
