"""credit_tools - what the suites of the credits share: a daemon with short slots, tenants with
users of their own, floods of one-unit writes, and the administration opcodes."""
# SPDX-License-Identifier: BSD-3-Clause

import json

from flood import Flood, whole_slots
from mcbin import Op, request, set_extras, show
from servers import ADMIN, Headgate, bucket_details, user_row

SLOT_MS = 200
SLOT = SLOT_MS / 1000
UNLIMITED = "unlimited"


def start(tenants, users=(), store=None, wrapper=(), **options):
    """A daemon with these tenants. Each has a user of its name with the password "pw", `admin` may
    administrate, `fast` is Unthrottled everywhere. Anonymous clients are in `default`, where only
    `tenants` may say otherwise about limits."""
    rows = [dict(row) for row in tenants]
    if not any(row["name"] == "default" for row in rows):
        rows.append({"name": "default"})
    config = dict(store or {"upstreams": [{"name": "store", "kind": "embedded"}]})
    config.update({"throttle_slot_ms": SLOT_MS, "throttle_max_wait_ms": 8000,
                   "request_deadline_ms": 10000, "tenants": rows})
    config.update(options)
    people = [user_row("admin", privileges=ADMIN, buckets={"*": ["Read", "Write", "Stats"]}),
              user_row("fast", privileges=("Unthrottled",), buckets={"*": ["Read", "Write"]})]
    people += [user_row(row["name"]) for row in rows]
    people += list(users)
    return Headgate(config, users={"users": people, "anonymous": {
        "bucket": "default", "privileges": ["Read", "Write", "Stats"]}}, wrapper=wrapper,
        start_timeout=60.0 if wrapper else 10.0)


def enter(daemon, bucket, count=None, timeout=15.0, features=()):
    """One connection logged in as the bucket's user, or a list of `count`."""
    clients = []
    for _ in range(count or 1):
        client = daemon.client(timeout)
        client.login(bucket, "pw")
        if features:
            client.hello(*features)
        clients.append(client)
    return clients if count else clients[0]


def admin(daemon, bucket=None):
    client = daemon.client(15.0)
    client.login("admin", "pw")
    if bucket:
        assert client.select(bucket).status == 0
    return client


def put(number):
    """A write of one unit."""
    return request(Op.SET, b"k%d" % (number % 64), b"v" * 32, set_extras(), opaque=number)


def get(number):
    """A read of one unit, found or not."""
    return request(Op.GET, b"k%d" % (number % 64), opaque=number)


def set_bucket(client, bucket, **properties):
    frame = client.call(Op.SET_BUCKET_THROTTLE, bucket, json.dumps(properties))
    assert frame.status == 0, show(frame)


def set_node(client, **properties):
    frame = client.call(Op.SET_NODE_THROTTLE, b"", json.dumps(properties))
    assert frame.status == 0, show(frame)


def details(client, bucket):
    return bucket_details(client, bucket)


def flood_slots(make_clients, slots, slot_s=SLOT, make=put, pipeline=1, tries=3):
    """Floods for so many whole slots; (good replies, slots seen). When the machine stood still for
    half a slot the measurement says nothing, so it is made again."""
    for attempt in range(tries):
        flood = Flood(make_clients(), make, pipeline)
        with flood:
            # One slot to get in step, one that is cut off at the end.
            poll_until(flood, (slots + 2.5) * slot_s)
        for client in flood.clients:
            client.close()
        if flood.stalled_s < slot_s / 2 or attempt == tries - 1:
            return whole_slots(flood.events, slot_s) + (flood,)
    raise AssertionError("unreachable")


def poll_until(flood, seconds):
    """Lets the flood run for so long."""
    flood.thread.join(seconds)
    if flood.error:
        raise flood.error
