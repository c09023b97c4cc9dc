"""since - which end-to-end files a change can affect, for use while working.

A path without a row selects all files, so a missing row costs only time. Each suite is in at least one
subject.
"""
# SPDX-License-Identifier: BSD-3-Clause
import fnmatch
import os
import subprocess

from commands import TOP, Failure

E2E = "tests/e2e"

# Subject -> patterns of the names of suites, the part between test_ and .py.
SUBJECTS = {
    "admin": ["admin", "ctl_operate", "states", "identity"],
    "backup": ["backup"],
    "binds": ["bindevict", "events", "innocents_tenants", "keyshare", "tickets_config"],
    "clients": ["clients", "semantics", "wire"],
    "config": ["admin", "ops", "reload", "ring", "redis_config", "tickets_config"],
    "credits": ["credits", "states"],
    "ctl": ["ctl_*", "top", "backup", "hotkeys_views"],
    "embedded": ["backup", "chaos", "leaks", "ops", "restart", "semantics", "sizes", "table", "hbase"],
    "hotkeys": ["hotkeys*"],
    "http": ["http*", "dashboard", "incident", "top"],
    "identity": ["identity", "tls*", "admin"],
    "load": ["load*", "bench"],
    "memcached": ["semantics", "failures", "pool", "relay", "ring", "wire", "sizes", "chaos"],
    "pool": ["pool", "breaker", "events", "relay", "failures", "redis*", "reload", "leaks", "identity",
             "chaos", "innocents_servers"],
    "redis": ["redis*", "semantics", "table", "hbase", "reload"],
    "restart": ["restart"],
    "rows": ["table", "hbase", "ctl_table", "load_rows"],
    "sessions": ["wire", "semantics", "sizes", "clients", "chaos", "leaks", "failures"],
    "tickets": ["overload", "fairby", "innocents_*", "tickets_config", "failures", "bindevict",
                "keyshare", "events"],
    "tls": ["tls*"],
    "trace": ["trace"],
}

NONE = ()

# Pattern of a path -> subjects; of several rows that match, the first decides.
ROWS = [
    ("doc/*", NONE),
    ("*.md", NONE),
    ("README", NONE),
    ("LICENSE", NONE),
    ("debian/*", NONE),
    (".ci/*", NONE),
    ("etc/*", ("http", "config")),
    ("tests/unit/*", NONE),
    ("tests/flow/*", NONE),
    ("tests/sim/*", NONE),
    ("tests/fuzz/*", NONE),
    ("tests/tools/*", NONE),
    ("tests/check/*", NONE),
    ("tests/bench/*", ("load",)),
    ("tests/e2e/clients/*", ("clients",)),
    ("src/core/credit*", ("credits",)),
    ("src/core/fairpool*", ("credits",)),
    ("src/core/gauge*", ("credits", "tickets")),
    ("src/core/held*", ("credits",)),
    ("src/core/hot*", ("hotkeys",)),
    ("src/core/key*", ("hotkeys",)),
    ("src/core/bind*", ("binds",)),
    ("src/core/ticket*", ("tickets",)),
    ("src/core/probe*", ("tickets",)),
    ("src/core/balance*", ("pool",)),
    ("src/core/lease*", ("pool",)),
    ("src/core/breaker*", ("pool", "memcached")),
    ("src/core/notice*", ("tickets", "pool")),
    ("src/core/throttling*", ("tickets",)),
    ("src/core/serverslow*", ("tickets",)),
    ("src/core/backoff*", ("pool", "memcached")),
    ("src/core/loginguard*", ("identity",)),
    ("src/table/*", ("rows",)),
    ("src/proto/table*", ("rows",)),
    ("src/proto/row*", ("rows",)),
    ("src/proto/keyslot*", ("redis",)),
    ("src/proto/redirect*", ("redis",)),
    ("src/back/embedded*", ("embedded",)),
    ("src/back/item*", ("embedded",)),
    ("src/back/redis*", ("redis",)),
    ("src/back/slots*", ("redis",)),
    ("src/back/topology*", ("redis",)),
    ("src/back/tie*", ("redis",)),
    ("src/back/row*", ("rows",)),
    ("src/back/memcached*", ("memcached",)),
    ("src/back/ring*", ("memcached",)),
    ("src/back/pool*", ("pool", "memcached")),
    ("src/back/domain*", ("pool", "memcached")),
    ("src/back/quarantine*", ("pool", "binds")),
    ("src/back/relay*", ("pool",)),
    ("src/back/lease*", ("pool",)),
    ("src/back/hub*", ("pool",)),
    ("src/back/link_tls*", ("tls",)),
    ("src/back/uptls*", ("tls",)),
    ("src/back/link*", ("pool", "memcached", "redis", "tls")),
    ("src/front/hot*", ("hotkeys",)),
    ("src/front/bind*", ("binds",)),
    ("src/front/evict*", ("binds",)),
    ("src/front/gate*", ("tickets",)),
    ("src/front/held*", ("credits",)),
    ("src/front/table*", ("rows",)),
    ("src/front/handshake*", ("tls",)),
    ("src/front/session_tls*", ("tls",)),
    ("src/app/web*", ("http",)),
    ("src/app/metrics*", ("http",)),
    ("src/web/*", ("http",)),
    ("src/app/hot*", ("hotkeys",)),
    ("src/app/binds*", ("binds",)),
    ("src/app/gates*", ("tickets",)),
    ("src/app/handover*", ("restart",)),
    ("src/app/takeover*", ("restart",)),
    ("src/app/inherit*", ("restart",)),
    ("src/app/notify*", ("restart",)),
    ("src/app/liveness*", ("restart",)),
    ("src/app/backup*", ("backup",)),
    ("src/app/restore*", ("backup",)),
    ("src/app/login*", ("identity",)),
    ("src/app/users*", ("identity",)),
    ("src/app/rights*", ("identity",)),
    ("src/app/password*", ("identity",)),
    ("src/app/secret*", ("identity",)),
    ("src/app/tls*", ("tls",)),
    ("src/app/uptls*", ("tls",)),
    ("src/app/conf*", ("config",)),
    ("src/app/yamldoc*", ("config",)),
    ("src/app/reload*", ("config",)),
    ("src/app/ringdiff*", ("config", "ctl")),
    ("src/app/state*", ("admin", "config")),
    ("src/app/admin*", ("admin", "ctl")),
    ("src/app/strictjson*", ("admin", "ctl")),
    ("src/app/stats*", ("admin", "ctl", "http", "hotkeys")),
    ("src/ctl/*", ("ctl", "load")),
    ("src/load/*", ("load",)),
]


def suite_names():
    return sorted(name[len("test_"):-len(".py")] for name in os.listdir(os.path.join(TOP, E2E))
                  if name.startswith("test_") and name.endswith(".py"))


def touched_by(path, names):
    """Names of the end-to-end suites that a change of this path can affect."""
    own = os.path.basename(path)
    if path.startswith(E2E + "/test_"):
        return {own[len("test_"):-len(".py")]} & set(names)
    for pattern, subjects in ROWS:
        if fnmatch.fnmatch(path, pattern):
            wanted = [part for subject in subjects for part in SUBJECTS[subject]]
            return {name for name in names if any(fnmatch.fnmatch(name, part) for part in wanted)}
    return set(names)


def files_for(paths):
    """The end-to-end files for changed paths, as pytest takes them."""
    names = suite_names()
    chosen = set()
    for path in paths:
        chosen |= touched_by(path, names)
    return [os.path.join(E2E, "test_%s.py" % name) for name in sorted(chosen)]


def all_files():
    return [os.path.join(E2E, "test_%s.py" % name) for name in suite_names()]


def changed(ref):
    """Paths that differ from a commit, uncommitted and untracked files included."""
    commit = git("rev-parse", "--verify", "--quiet", "--end-of-options", ref + "^{commit}").strip()
    if not commit:
        raise Failure("--since '%s': no such commit (accepted: what git takes for one, such as main or "
                      "HEAD~3)" % ref)
    base = git("merge-base", commit, "HEAD").strip() or commit
    text = (git("diff", "--name-only", "--no-renames", "-z", base)
            + git("ls-files", "--others", "--exclude-standard", "-z"))
    return sorted(set(text.split("\0")) - {""})


def git(*words):
    """What git prints; nothing when it fails."""
    return subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True,
                          errors="surrogateescape", check=False).stdout
