"""quick - the quick check: everything once, within twelve minutes on two cores.

Two lanes run beside each other. Tests mostly wait, so what compiles runs beside them, with a lower
priority:

    autoreconf ─ asan (build) ┬─ units ─ e2e
                              └─ gcc ─ clang ─ tsan
"""
# SPDX-License-Identifier: BSD-3-Clause
import glob
import os
import re

import builds
import since
import suites
from commands import CORES, OUT, TOP, WIDE, lacks, lacks_module
from steps import Step

# Lower than that of the tests beside which they run.
NICE = 10
# The tests whose subject is threads; the deep check runs all that start any.
THREADS = re.compile(r"t_(\w*threads|\w*stress|workers|loop|resolve)")

# Marks of the end-to-end tests that the quick check leaves to the deep one (tests/e2e/conftest.py).
DEEP_MARKS = ("alone", "deep", "foreign", "browser", "prometheus")
QUICK_E2E = "not (%s)" % " or ".join(DEEP_MARKS)


def autoreconf(ledger):
    builds.autoreconf("autoreconf")


def build_asan(ledger):
    builds.make("asan", "asan", ["all"])
    builds.make("asan", "asan", ["check", "TESTS="])


def units(ledger):
    if lacks("mandoc"):
        ledger.skip("the man pages are not checked for want of mandoc")
    suites.make_check(ledger, "units", builds.folder("asan"))


def compile_only(way):
    def work(ledger):
        if lacks(way):
            ledger.skip("no build with %s for want of the package %s" % (way, way))
            return
        builds.make(way, way, ["all"], NICE)
    return work


def thread_programs():
    """The unit and flow programs whose subject is threads."""
    return sorted(os.path.relpath(path[:-2], TOP)
                  for path in glob.glob(os.path.join(TOP, "tests/[uf]*/t_*.c"))
                  if THREADS.fullmatch(os.path.basename(path)[:-2]))


def tsan(ledger):
    programs = thread_programs()
    path = builds.make("tsan", "tsan", programs, NICE)
    suites.run_programs(ledger, "tsan", path, programs, CORES, nice=NICE)


def e2e(files):
    def work(ledger):
        for program, package in (("memcached", "memcached"), ("redis-server", "redis-server")):
            if lacks(program):
                ledger.skip("no end-to-end tests for want of the package " + package)
                return
        module = lacks_module("pytest", "xdist", "google.protobuf")
        if module:
            ledger.skip("no end-to-end tests for want of Python's module " + module)
            return
        if files == []:
            ledger.skip("no end-to-end file is touched by the change")
            return
        suites.pytest(ledger, "e2e", builds.folder("asan"), QUICK_E2E, WIDE, files)
    return work


def run(runner, reference):
    """All steps; with a reference only the end-to-end files that what changed since can touch."""
    files = None if reference is None else since.files_for(since.changed(reference))
    for name in glob.glob(os.path.join(OUT, "*.log")):
        os.remove(name)
    runner.run_lane([Step("autoreconf", autoreconf),
                     Step("asan", build_asan, ["autoreconf"])])
    runner.run_lanes([[Step("units", units, ["asan"]),
                       Step("e2e", e2e(files), ["asan"])],
                      [Step("gcc", compile_only("gcc"), ["autoreconf"]),
                       Step("clang", compile_only("clang"), ["autoreconf"]),
                       Step("tsan", tsan, ["autoreconf"])]])


STEPS = {"autoreconf": autoreconf, "asan": build_asan, "units": units, "e2e": e2e(None),
         "gcc": compile_only("gcc"), "clang": compile_only("clang"), "tsan": tsan}
