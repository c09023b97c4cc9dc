"""deep - the deep check: what takes long, measures, or needs packages that few have.

The steps run one after the other. .ci/run may lack the time for all of them: it starts with the steps
that it skipped the last time, and skips a step that would end too late.
"""
# SPDX-License-Identifier: BSD-3-Clause
import glob
import json
import os
import re
import time

import builds
import suites
from commands import CORES, OUT, SANITIZER_ENV, TOP, WIDE, Failure, lacks, run
from ledger import say
from steps import Step

STATE = os.path.join(OUT, "deep.json")
# Within .ci/run a step starts only if it ends before this, by its last duration.
CI_LIMIT_S = 55 * 60
FUZZ_S = 45

# Programs and scripts that measure. HG_TEST_ALONE tells a program to check what it measures.
MEASURES = ["tests/flow/t_domain_redis", "tests/flow/t_relay_threads",
            "tests/tools/demo-overload.sh"]
BESIDE_E2E = "(deep or foreign or browser or prometheus) and not alone"


def scaled(factor):
    """HG_TEST_SCALE for a build that is slower by a factor."""
    return {"HG_TEST_SCALE": "%g" % (factor * float(os.environ.get("HG_TEST_SCALE", "1")))}


def deep_gcc(ledger):
    """The plain build; the simulations run all their seeds, and the models of other systems."""
    path = builds.make("deep-gcc", "gcc", ["all"])
    suites.make_check(ledger, "deep-gcc", path, {"HG_SIM_SEEDS": "all"})


def plain(step):
    return builds.make_with_tests(step, "gcc")


def e2e_alone(ledger):
    """What measures time, or fills the machine."""
    path = plain("e2e-alone")
    suites.run_programs(ledger, "e2e-alone", path, MEASURES, 1, env={"HG_TEST_ALONE": "1"})
    suites.pytest(ledger, "e2e-alone", path, "alone", 1, limit_s=2400)


def e2e_beside(ledger):
    """Long tests, foreign clients, a browser, Prometheus."""
    marks = BESIDE_E2E
    for mark, program in (("browser", "chromium"), ("prometheus", "prometheus")):
        if lacks(program):
            ledger.skip("tests marked '%s': package '%s' is missing" % (mark, program))
            marks += " and not " + mark
    suites.pytest(ledger, "e2e-beside", plain("e2e-beside"), marks, WIDE)


def programs_that_start_threads():
    """The unit and flow programs whose source, or a helper that it includes, starts a thread."""
    makes = re.compile(r"pthread_create|hg_worker_start|hg_resolver_new|hg_embedded_open|"
                       r"hg_logins_new")
    folders = [os.path.join(TOP, "tests", name) for name in ("unit", "flow")]

    def text_of(path, seen):
        if path in seen or not os.path.exists(path):
            return ""
        seen.add(path)
        with open(path, encoding="utf-8") as source:
            text = source.read()
        for name in re.findall(r'#include "(\w+)\.h"', text):
            for folder in folders:
                text += text_of(os.path.join(folder, name + ".h"), seen)
                text += text_of(os.path.join(folder, name + ".c"), seen)
        return text

    return [program for program, source in suites.test_programs("unit", "flow").items()
            if makes.search(text_of(os.path.join(TOP, source), set()))]


def deep_tsan(ledger):
    programs = programs_that_start_threads()
    path = builds.make("deep-tsan", "tsan", programs)
    suites.run_programs(ledger, "deep-tsan", path, programs, 4, limit_s=600, env=scaled(3))


def e2e_tsan(ledger):
    path = builds.make("e2e-tsan", "tsan", ["all"])
    builds.make("e2e-tsan", "tsan", ["tests/lib/slowstore"])
    suites.pytest(ledger, "e2e-tsan", path, "threaded and not alone and not foreign", CORES)
    suites.pytest(ledger, "e2e-tsan", path, "threaded and alone", 1)


def fuzz(ledger):
    if lacks("clang"):
        ledger.skip("fuzzing: package 'clang' is missing")
        return
    for name in "frame", "table", "cluster", "resp":
        program = "tests/fuzz/fuzz_" + name
        path = builds.make("fuzz", "fuzz", [program])
        found = os.path.join(path, "found-" + name)
        os.makedirs(found, exist_ok=True)
        run("fuzz", [program, "-max_total_time=%d" % FUZZ_S, "-max_len=2048",
                     "-rss_limit_mb=2048", "-artifact_prefix=" + found + "/", found,
                     os.path.join(TOP, "tests/fuzz/corpus", name)], cwd=path, env=SANITIZER_ENV)


def package(ledger):
    """Debian's packages, in a root of their own; only a superuser can make that."""
    if os.geteuid() != 0:
        ledger.skip("packages: only the superuser can make a fresh root")
        return
    missing = lacks("dpkg-buildpackage", "lintian", "mmdebstrap")
    if missing:
        ledger.skip("packages: program '%s' is missing" % missing)
        return
    code, text = run("package", [os.path.join(TOP, "tests/tools/package"),
                                 os.path.join(OUT, "package")], may_fail=True)
    suites.book_tap(ledger, "package", "tests/tools/package", code, text)


def distcheck(ledger):
    path = builds.configure("distcheck", "dist")
    code, text = run("distcheck", ["make", "-s", "-j%d" % CORES, "distcheck"], cwd=path,
                     may_fail=True)
    if code == 0:
        return
    # It makes a build of its own, and leaves that behind only when something has failed.
    inner = os.path.join(path, "headgate-*", "_build", "sub", "tests/*/*.trs")
    failed = sum(suites.book_failures(ledger, "distcheck", path, trs)
                 for trs in sorted(glob.glob(inner)))
    if failed == 0:
        raise Failure("distcheck ended with %d" % code, text)


# name -> (function, seconds on two cores; used until this machine has a figure of its own)
STEPS = {
    "deep-gcc": (deep_gcc, 180),
    "e2e-alone": (e2e_alone, 480),
    "e2e-beside": (e2e_beside, 150),
    "deep-tsan": (deep_tsan, 300),
    "e2e-tsan": (e2e_tsan, 420),
    "fuzz": (fuzz, 220),
    "package": (package, 280),
    "distcheck": (distcheck, 300),
}


# ---- which of them, and when: pure ----

def order(names, left, day):
    """Those that were left the last time come first; without that knowledge the day decides."""
    if left:
        return [name for name in names if name in left] + [n for n in names if n not in left]
    turn = day % len(names)
    return names[turn:] + names[:turn]


def fits(elapsed_s, duration_s, limit_s):
    return elapsed_s + duration_s <= limit_s


# ---- what is remembered in build-check/ ----

def recall():
    try:
        with open(STATE, encoding="utf-8") as kept:
            state = json.load(kept)
        durations = {name: float(s) for name, s in state["durations"].items() if name in STEPS}
        # A step that was slow once must not be left for ever.
        return ({name: min(s, 2 * STEPS[name][1]) for name, s in durations.items() if s > 0},
                [name for name in state["left"] if name in STEPS])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError,
            RecursionError):
        return {}, []


def remember(durations, left):
    try:
        with open(STATE + ".new", "w", encoding="utf-8") as kept:
            json.dump({"durations": durations, "left": left}, kept)
        os.replace(STATE + ".new", STATE)
    except OSError as error:
        say("check: cannot write '%s': %s" % (STATE, error.strerror))


def run_all(runner, begin=None):
    """All steps; with the time at which .ci/run began, those that end within its limit."""
    durations, left = recall()
    names = list(STEPS)
    if begin is not None:
        names = order(names, left, time.localtime().tm_yday)
    waiting = []
    for name in names:
        work, usual_s = STEPS[name]
        lasts_s = durations.get(name, usual_s)
        if begin is not None and not fits(time.monotonic() - begin, lasts_s, CI_LIMIT_S):
            waiting.append(name)
            say("%-14s left for the next run: it takes %.0f s" % (name, lasts_s))
            continue
        runner.run_lane([Step(name, work)])
        # One that failed or was skipped says nothing of how long it takes.
        if runner.ledger.passed_of.get(name) and not runner.ledger.failed_of(name):
            durations[name] = runner.seconds[name]
        remember(durations, waiting + names[names.index(name) + 1:])
    remember(durations, waiting)
    return waiting
