"""demo - the commands of the README's demonstrations run, and show what they are said to show (TAP)

    demo.py             credits, hot keys, rows, Redis; run by demo.sh
    demo.py overload    overload, which takes a machine that does nothing else; run by demo-overload.sh

The commands are those of the README, in order, with shorter loads and another port.
Only `overload` depends on speed; the other demonstrations also pass on a slow machine.
"""
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.environ.get("top_srcdir", "."))
BUILD = os.path.abspath(os.environ.get("top_builddir", "build"))
os.environ["HG_BUILD"] = BUILD
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
from mcbin import scaled       # noqa: E402
from servers import free_port  # noqa: E402

SECONDS = 2
HOT_SECONDS = 9  # the key turns hot at 2, and an epoch has 2
OVERLOAD_SECONDS = 7  # it begins at 2, and the key is found after 1; three lines of 2 s
LIMIT = 2000   # of the demonstration's configuration
SLOT_S = 0.1


def section_commands(title):
    """The commands of a section of the README."""
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as page:
        section = re.search(r"^## %s\n(.*?)^## " % title, page.read(), re.M | re.S).group(1)
    return "\n".join(re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S))


def end_with_the_script(script, log):
    """The README asks until it is ready; what is left is to end it whatever happens."""
    started = "2>%s &\n" % log
    assert started + "until grep -qs ready" in script, "the commands have changed"
    return script.replace(started, started + "server=$!\ntrap 'kill $server' EXIT\n")


def to_the_end(script):
    return "set -e\n" + script.replace("kill $!\n", "trap - EXIT; kill $server; wait $server\n")


def commands(port):
    """The README's, as one script."""
    script = section_commands("One minute")
    assert "./quickstart build\n" in script and "kill -HUP $!" in script, "the commands have changed"
    script = script.replace("./quickstart build\n", "").replace("11299", str(port))
    script = end_with_the_script(script, "build/demo.log")
    reload = "kill -HUP $!\n"
    script = script.replace(reload, reload + "for i in $(seq 1000); do "
                            "grep -q reloaded build/demo.log && break; sleep 0.01; done\n")
    return to_the_end(script)


def hot_commands(port):
    """The hot key's, and the rows' behind them, whose server is the same."""
    script = section_commands("A hot key") + section_commands("Rows")
    return to_the_end(end_with_the_script(script.replace("11299", str(port)), "build/hot.log"))


def overload_commands(port):
    """Those of the overload, whose memcached is installed already, and ends whatever happens."""
    script = section_commands("Overload")
    install = re.search(r"^sudo apt-get install .* memcached\n", script, re.M)
    begun, ended = "& cache=$!\n", "kill $! $cache\n"
    assert install and begun in script and script.endswith(ended), "the commands have changed"
    script = end_with_the_script(script.replace(install.group(), ""), "build/overload.log")
    script = script.replace("'kill $server'", "'kill $server $cache'")
    script = script.replace(begun, begun + "trap 'kill $cache' EXIT\nfor i in $(seq 1000); do "
                            "(echo >/dev/tcp/127.0.0.1/11298) 2>/dev/null && break; sleep 0.01; done\n")
    reload = "kill -HUP $!\n"
    assert reload in script, "the commands have changed"
    script = script.replace(reload, "kill -HUP $server\nfor i in $(seq 1000); do "
                            "grep -q reloaded build/overload.log && break; sleep 0.01; done\n")
    script = script.replace(ended, "trap - EXIT\nkill $server; wait $server\n"
                            "kill $cache; wait $cache || true\n")
    return "set -e\n" + script.replace("11299", str(port)).replace("11298", str(port + 1))


def redis_commands(port):
    """Those of the Redis, whose server is installed already, and ends whatever happens."""
    script = section_commands("Redis behind")
    install = re.search(r"^sudo apt-get install .* redis-server\n", script, re.M)
    begun, ended = ">build/redis.log &\n", "redis-cli -p 11298 shutdown nosave\n"
    assert install and begun in script and script.endswith(ended), "the commands have changed"
    script = script.replace(install.group(), "").replace(" -t 8 ", " -t %d " % SECONDS)
    script = end_with_the_script(script, "build/behind.log").replace("'kill $server'",
                                                                 "'kill $server $redis'")
    script = script.replace(begun, begun + "redis=$!\ntrap 'kill $redis' EXIT\n"
                            "for i in $(seq 1000); do redis-cli -p 11298 ping >build/ping && break; "
                            "sleep 0.01; done\n")
    script = script.replace("kill $!\n", "kill $server; wait $server\n")
    script = script.replace(ended, "trap - EXIT\n" + ended + "wait $redis\n")
    return "set -e\n" + script.replace("11299", str(port)).replace("11298", str(port + 1))


def two_ports():
    """A free port behind which is another."""
    while True:
        port = free_port()
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                continue


def make_tree(directory, port):
    """What the commands see: the demonstration's files, and the programs in build/."""
    shutil.copytree(os.path.join(TOP, "etc", "demo"), os.path.join(directory, "etc", "demo"))
    for root, _, files in os.walk(directory):
        os.chmod(root, 0o700)
        for name in files:
            path = os.path.join(root, name)
            os.chmod(path, 0o700)
            with open(path) as before:
                text = before.read()
            with open(path, "w") as after:
                after.write(text.replace("11299", str(port)).replace("11298", str(port + 1)))
    os.mkdir(os.path.join(directory, "build"))
    for name in ("headgate", "headgate-load", "headgatectl"):
        os.symlink(os.path.join(BUILD, name), os.path.join(directory, "build", name))


def run(directory, port, script, seconds):
    make_tree(directory, port)
    env = dict(os.environ, DEMO_SECONDS=str(seconds), DEMO_TIMEOUT=str(scaled(30)), PYTHONDONTWRITEBYTECODE="1")
    child = subprocess.Popen(["bash", "-c", script], cwd=directory, env=env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = child.communicate(timeout=scaled(150))
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        output += "\nno end after %d s" % scaled(150)
    return child.returncode, output


def operations(output):
    """[(tenant, operations, seconds)] of all loads, in order."""
    return [(name, int(count), float(seconds)) for name, count, seconds in
            re.findall(r"^tenant (\w+):.*\n  operations +(\d+) in ([\d.]+) s", output, re.M)]


def attempt(make_script, seconds, log):
    """(exit status, output and log) of one demonstration in a directory of its own."""
    directory, port = tempfile.mkdtemp(prefix="hg-demo-"), two_ports()
    try:
        code, output = run(directory, port, make_script(port), seconds)
        with open(os.path.join(directory, "build", log)) as text:
            return code, output + text.read()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def credits_checks(code, output):
    seen = operations(output)
    names = [name for name, _, _ in seen]
    _, held, seconds = seen[-1] if seen else ("", 0, 0)
    observed = re.search(r"noisy:would_throttle +(\d+)", output)
    return [
        ("the commands succeed", code == 0),
        ("they load shop alone, then twice shop and noisy",
         names == ["shop", "shop", "noisy", "shop", "noisy"]),
        ("observe counts what it would hold", observed and int(observed.group(1)) > 0),
        ("enforce holds noisy to its limit", 0 < held <= LIMIT * (seconds + 2 * SLOT_S)),
        ("which it was beyond before", len(seen) == 5 and seen[2][1] > held),
        ("nothing is refused", set(re.findall(r"(\d+) refused", output)) == {"0"}),
    ]


def hot_checks(code, output):
    listed = re.search(r"k000000000000000 +TABLE_HOTKEY_ALL +(\d+) +\d+ +(\d+) +(\d+)", output)
    frequency, percent, rejected = (int(n) for n in listed.groups()) if listed else (0, 0, 0)
    others = re.findall(r"k0{14}[0-9]*[1-9] +TABLE_HOTKEY_ALL +\d+ +\d+ +(\d+) +(\d+)", output)
    return [
        ("the hot key's commands succeed", code == 0),
        ("the key is listed, throttled and refused", frequency > 0 and percent > 0 and rejected > 0),
        ("the others are not", others and set(others) == {("0", "0")}),
        ("refusals are seen by the load", "0x86:" in output),
        ("rows are inserted, changed and found",
         all(re.search(row, output) for row in (r"alice +age +integer +42", r"visits +integer +1",
                                                r"e1 +f:kind +\d+ +click"))),
    ]


def answers(output, tenant):
    """[{status: replies}] of each load, of a tenant's progress lines."""
    loads = []
    for time, row in re.findall(r"^ *([\d.]+) s  %s +.* ms  ?(.*)$" % tenant, output, re.M):
        if not loads or float(time) <= before:
            loads.append({})
        before = float(time)
        for status, count in re.findall(r"(0x[0-9a-f]+):(\d+)", row):
            loads[-1][status] = loads[-1].get(status, 0) + int(count)
    return loads


def medians(output, tenant):
    """[[p50 in ms]] of each load, of a tenant's progress lines after the first."""
    loads = []
    for time, p50 in re.findall(r"^ *([\d.]+) s  %s +.* p50 +([\d.]+) " % tenant, output, re.M):
        if not loads or float(time) <= before:
            loads.append([])
        else:
            loads[-1].append(float(p50))
        before = float(time)
    return loads


def overload_checks(code, output):
    shop, noisy = answers(output, "shop"), answers(output, "noisy")
    waits = medians(output, "shop")
    two = len(shop) == 2 and len(noisy) == 2
    would = re.search(r"cache:read:wouldWait +(\d+)", output)
    return [
        ("the commands of the overload succeed", code == 0),
        ("observe refuses nothing", two and set(shop[0]) == set(noisy[0]) == {"0x00"}),
        ("and counts what would wait", would and int(would.group(1)) > 0),
        ("enforce refuses shop nothing", two and set(shop[1]) == {"0x00"}),
        ("and shop waits less than half as long", two and max(waits[1]) < min(waits[0]) / 2),
        ("while noisy is served", two and noisy[1].get("0x00", 0) > noisy[0]["0x00"] / 2),
        ("there is no culprit", "BIND_EVICT" not in output),
    ]


def redis_checks(code, output):
    seen = operations(output)
    return [
        ("the commands of Redis succeed", code == 0),
        ("Redis has a row and its table's index",
         r'"users\x00alice"' in output and r'"\x00iusers"' in output),
        ("both tenants load it", [name for name, _, _ in seen] == ["shop", "noisy"]),
        ("and noisy is held", len(seen) == 2 and seen[0][1] > 0
         and 0 < seen[1][1] <= LIMIT * (seen[1][2] + 2)),
    ]


def overload():
    if not shutil.which("memcached"):
        return [("overload # SKIP memcached is missing", True)], ""
    code, output = attempt(overload_commands, OVERLOAD_SECONDS, "overload.log")
    return overload_checks(code, output), output


def other_demonstrations():
    code, output = attempt(commands, SECONDS, "demo.log")
    checks = credits_checks(code, output)
    code, more = attempt(hot_commands, HOT_SECONDS, "hot.log")
    checks += hot_checks(code, more)
    if shutil.which("redis-server") and shutil.which("redis-cli"):
        code, behind = attempt(redis_commands, SECONDS, "behind.log")
        checks += redis_checks(code, behind)
        more += behind
    else:
        checks.append(("Redis # SKIP redis-server is missing", True))
    return checks, output + more


def main():
    checks, output = overload() if sys.argv[1:] == ["overload"] else other_demonstrations()
    print("1..%d" % len(checks))
    for number, (what, good) in enumerate(checks, 1):
        print("%sok %d - %s" % ("" if good else "not ", number, what))
    if not all(good for _, good in checks):
        print("\n".join("# " + line for line in output.splitlines()))
        return 1
    return 0


sys.exit(main())
