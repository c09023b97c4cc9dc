"""quick - the quick check: all tests that neither measure, take long, nor need rare packages.

It takes at most twelve minutes on two cores. Two lanes run side by side: tests mostly wait, so the
other compilations run beside them, with a lower priority:

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
from commands import CORES, OUT, WIDE, lacks, lacks_module, run
from steps import Step

# Of the compilations that run beside tests.
NICE = 10
# The tests whose subject is threads; the deep check runs all that start threads.
THREADS = re.compile(r"t_(\w*threads|\w*stress|workers|loop|resolve)")

# Marks of the end-to-end tests that only the deep check runs (tests/e2e/conftest.py).
DEEP_MARKS = ("alone", "deep", "foreign", "browser", "prometheus")
QUICK_E2E = "not (%s)" % " or ".join(DEEP_MARKS)


def autoreconf(ledger):
    run("autoreconf", ["autoreconf", "-i"])


def build_asan(ledger):
    builds.make_with_tests("asan", "asan")


def units(ledger):
    if lacks("mandoc"):
        ledger.skip("man pages: package 'mandoc' is missing")
    suites.make_check(ledger, "units", builds.folder("asan"))


def compile_only(way):
    def work(ledger):
        if lacks(way):
            ledger.skip("build with %s: package '%s' is missing" % (way, way))
            return
        builds.make(way, way, ["all"], NICE)
    return work


def programs_about_threads():
    """The unit and flow programs whose subject is threads."""
    return [program for program in suites.test_programs("unit", "flow")
            if THREADS.fullmatch(os.path.basename(program))]


def tsan(ledger):
    programs = programs_about_threads()
    path = builds.make("tsan", "tsan", programs, NICE)
    suites.run_programs(ledger, "tsan", path, programs, CORES, nice=NICE)


def e2e(files):
    def work(ledger):
        program = lacks("memcached", "redis-server")
        if program:
            ledger.skip("end-to-end tests: package '%s' is missing" % program)
            return
        module = lacks_module("pytest", "xdist", "google.protobuf")
        if module:
            ledger.skip("end-to-end tests: Python's module '%s' is missing" % module)
            return
        if files == []:
            ledger.skip("end-to-end tests: the change affects none of their files")
            return
        suites.pytest(ledger, "e2e", builds.folder("asan"), QUICK_E2E, WIDE, files)
    return work


def run_all(runner, reference):
    """All steps; with a reference only the end-to-end files that changes since then can affect."""
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
