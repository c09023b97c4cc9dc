"""commands - runs a command for a step: logged, bounded, and ended with all that it started."""
# SPDX-License-Identifier: BSD-3-Clause
import os
import shutil
import signal
import subprocess
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(TOP, "build-check")
CORES = os.cpu_count() or 1
# Tests mostly wait, so this many run side by side on any number of cores.
WIDE = 8

SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=99:quarantine_size_mb=8",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:suppressions=" + os.path.join(TOP, "tests/tools/tsan.supp"),
}

_running = set()
_lock = threading.Lock()


class Failure(Exception):
    """What went wrong, and what the command printed."""

    def __init__(self, what, text=""):
        super().__init__(what)
        self.what, self.text = what, text


def members(session):
    """The processes of a session; `timeout` and test servers have process groups of their own in it."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(name))
    return found


def end_session(session):
    """Ends all that a command has started; again until none is left, since they may start others."""
    for _ in range(100):
        left = members(session)
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not left:
            return


def end_all():
    """At an interrupt: nothing stays behind."""
    with _lock:
        for session in _running:
            end_session(session)


def run(step, command, cwd=TOP, env=None, limit_s=1800, nice=0, may_fail=False):
    """Runs a command in a session of its own, its output in the step's log. Returns what it printed;
    with may_fail (code, text). Raises Failure when it fails or has not ended within limit_s."""
    path = os.path.join(OUT, step + ".log")
    full = dict(os.environ, **(env or {}))
    if nice:
        command = ["nice", "-n", str(nice)] + command
    with open(path, "ab") as log:
        log.write(("$ " + " ".join(command) + "\n").encode())
        log.flush()
        start = log.tell()
        child = subprocess.Popen(command, cwd=cwd, env=full, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        with _lock:
            _running.add(child.pid)
        late = False
        try:
            code = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            end_session(child.pid)
            child.wait()
            with _lock:
                _running.discard(child.pid)
    with open(path, "rb") as log:
        log.seek(start)
        text = log.read().decode(errors="replace")
    if late:
        raise Failure("no end after %d s: %s" % (limit_s, " ".join(command)), text)
    if may_fail:
        return code, text
    if code != 0:
        raise Failure("exit status %d: %s" % (code, " ".join(command)), text)
    return text


def lacks(*programs):
    """The first of the programs that is not installed, or None."""
    for program in programs:
        if shutil.which(program) is None:
            return program
    return None


def lacks_module(*modules):
    """The first of the modules that Debian's Python cannot import, or None."""
    for module in modules:
        if subprocess.run(["/usr/bin/python3", "-c", "import " + module],
                          capture_output=True, check=False).returncode != 0:
            return module
    return None
