"""demo - the commands of the README's demonstration run, and show what they are said to show (TAP)

Run by demo.sh. The commands are those of the README, in order, with shorter loads and another port.
No speed is judged: a machine may be slow.
"""
# SPDX-License-Identifier: BSD-3-Clause
import os
import re
import shutil
import signal
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
LIMIT = 2000   # of the demonstration's configuration
SLOT_S = 0.1


def commands(port):
    """The README's, as one script."""
    with open(os.path.join(TOP, "README.md"), encoding="utf-8") as page:
        section = re.search(r"^## One minute\n(.*?)^## ", page.read(), re.M | re.S).group(1)
    script = "\n".join(re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S))
    assert "./quickstart build\n" in script and "kill -HUP $!" in script, "the commands have changed"
    script = script.replace("./quickstart build\n", "").replace("11299", str(port))
    # Whoever types needs a moment; a script has to ask. The log says when it is ready.
    started = "2>build/demo.log &\n"
    assert started in script, "the commands have changed"
    script = script.replace(started, started + "server=$!\ntrap 'kill $server' EXIT\n"
                            "for i in $(seq 1000); do grep -q ready build/demo.log && break; "
                            "sleep 0.01; done\n")
    reload = "kill -HUP $!\n"
    script = script.replace(reload, reload + "for i in $(seq 1000); do "
                            "grep -q reloaded build/demo.log && break; sleep 0.01; done\n")
    return "set -e\n" + script.replace("kill $!\n", "trap - EXIT; kill $!; wait $!\n")


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
                after.write(text.replace("11299", str(port)))
    os.mkdir(os.path.join(directory, "build"))
    for name in ("headgate", "headgate-load", "headgatectl"):
        os.symlink(os.path.join(BUILD, name), os.path.join(directory, "build", name))


def run(directory, port):
    make_tree(directory, port)
    env = dict(os.environ, DEMO_SECONDS=str(SECONDS), DEMO_TIMEOUT=str(scaled(30)), PYTHONDONTWRITEBYTECODE="1")
    child = subprocess.Popen(["bash", "-c", commands(port)], cwd=directory, env=env,
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


def main():
    directory = tempfile.mkdtemp(prefix="hg-demo-")
    try:
        code, output = run(directory, free_port())
        with open(os.path.join(directory, "build", "demo.log")) as log:
            output += log.read()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    seen = operations(output)
    names = [name for name, _, _ in seen]
    _, held, seconds = seen[-1] if seen else ("", 0, 0)
    observed = re.search(r"noisy:would_throttle +(\d+)", output)
    checks = [
        ("the commands succeed", code == 0),
        ("they load shop alone, then twice shop and noisy",
         names == ["shop", "shop", "noisy", "shop", "noisy"]),
        ("observe counts what it would hold", observed and int(observed.group(1)) > 0),
        ("enforce holds noisy to its limit", 0 < held <= LIMIT * (seconds + 2 * SLOT_S)),
        ("which it was beyond before", len(seen) == 5 and seen[2][1] > held),
        ("nothing is refused", set(re.findall(r"(\d+) refused", output)) == {"0"}),
    ]
    print("1..%d" % len(checks))
    for number, (what, good) in enumerate(checks, 1):
        print("%sok %d - %s" % ("" if good else "not ", number, what))
    if not all(good for _, good in checks):
        print("\n".join("# " + line for line in output.splitlines()))
        return 1
    return 0


sys.exit(main())
