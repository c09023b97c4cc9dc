"""suites - runs the tests of a built tree and books each in the ledger."""
# SPDX-License-Identifier: BSD-3-Clause
import concurrent.futures
import glob
import os
import re
import time
import xml.etree.ElementTree

from commands import OUT, SANITIZER_ENV, TOP, WIDE, Failure, run
from ledger import excerpt, tail


# ---- programs that print TAP, by automake's harness ----

def test_programs(*folders):
    """program -> its source, of the lists of these folders of tests/. Several programs may be built
    from one source."""
    found = {}
    for folder in folders:
        with open(os.path.join(TOP, "tests", folder, "local.mk"), encoding="utf-8") as rows:
            text = rows.read()
        sources = dict(re.findall(r"^(tests_\w+)_SOURCES = (\S+)", text, re.M))
        for program in re.findall(r"^UNIT_TESTS \+= (\S+)", text, re.M):
            found[program] = sources.get(program.replace("/", "_"), program + ".c")
    return found


def make_check(ledger, step, path, env=None):
    """`make check`: every test program and script of the tree, eight side by side."""
    if not os.path.exists(os.path.join(path, "Makefile")):
        raise Failure("nothing is built in %s: run the step that builds it first" % path)
    for old in glob.glob(os.path.join(path, "tests/*/*.trs")):
        os.remove(old)
    code, text = run(step, ["make", "-s", "-k", "-j%d" % WIDE, "check"], cwd=path,
                     env=dict(SANITIZER_ENV, **(env or {})), may_fail=True)
    if not re.search(r"^# TOTAL:", text, re.M):
        raise Failure("make check has no summary", text)
    failed = 0
    for trs in sorted(glob.glob(os.path.join(path, "tests/*/*.trs"))):
        failed += book_trs(ledger, step, path, trs)
    if code != 0 and failed == 0:
        raise Failure("make check fails, and no test has", text)


def read_trs(path, trs):
    """(program, its results as automake's harness wrote them, what it printed)."""
    with open(trs, encoding="utf-8", errors="replace") as results:
        text = results.read()
    try:
        with open(trs[:-len("trs")] + "log", encoding="utf-8", errors="replace") as log:
            said = log.read()
    except OSError:
        said = ""
    return os.path.relpath(trs, path)[:-len(".trs")], text, said


def book_failures(ledger, step, path, trs):
    """One program's failures, not what passed; returns how many."""
    program, text, said = read_trs(path, trs)
    bad = len(re.findall(r"^:test-result: (?:FAIL|ERROR|XPASS)", text, re.M))
    # The harness's lines, not those of a test that prints "ERROR: ..." itself.
    names = re.findall(r"^(?:FAIL|ERROR|XPASS): (tests/.*)", said, re.M)
    for name in names + [program + " (without a name)"] * (bad - len(names)):
        ledger.fail(step, name, excerpt(said))
    return bad


def book_trs(ledger, step, path, trs):
    """One program's results; returns how many failed."""
    program, text, said = read_trs(path, trs)
    ledger.count(step, len(re.findall(r"^:test-result: PASS", text, re.M)))
    for name in re.findall(r"^SKIP: (.*)", said, re.M):
        ledger.skip(name)
    elapsed = re.search(r"^:elapsed: (\d+\.?\d*)$", text, re.M)
    if elapsed:
        ledger.time(float(elapsed.group(1)), program)
    return book_failures(ledger, step, path, trs)


def run_programs(ledger, step, path, programs, wide, limit_s=300, env=None, nice=0):
    """Runs test programs directly, without automake's harness."""
    full = dict(SANITIZER_ENV, CMOCKA_MESSAGE_OUTPUT="TAP", srcdir=TOP, top_srcdir=TOP,
                abs_top_srcdir=TOP, top_builddir=path, **(env or {}))

    def one(program):
        begin = time.monotonic()
        name = step + "." + os.path.basename(program)
        try:
            where = TOP if program.endswith(".sh") else path
            code, text = run(name, [os.path.join(where, program)], cwd=path, env=full,
                             limit_s=limit_s, nice=nice, may_fail=True)
        except Failure as failure:
            code, text = failure.what, failure.text
        ledger.time(time.monotonic() - begin, "%s (%s)" % (program, step))
        book_tap(ledger, step, program, code, text)

    with concurrent.futures.ThreadPoolExecutor(max_workers=wide) as pool:
        list(pool.map(one, programs))


def book_tap(ledger, step, program, code, text):
    ledger.count(step, len(re.findall(r"^ok (?!.*# SKIP)", text, re.M)))
    for name in re.findall(r"^(?:ok|1\.\.0) (.*# SKIP.*)", text, re.M):
        ledger.skip("%s: %s" % (program, name))
    bad = re.findall(r"^not ok (.*)", text, re.M)
    for name in bad:
        ledger.fail(step, "%s %s" % (program, name), excerpt(text))
    plan = re.search(r"^1\.\.(\d+)", text, re.M)
    ran = len(re.findall(r"^(?:not )?ok ", text, re.M))
    if code != 0 and not bad:
        ledger.fail(step, "%s (ended with %s)" % (program, code), tail(text))
    elif plan is None or int(plan.group(1)) != ran:
        ledger.fail(step, "%s (ran %d tests, planned %s)" % (
            program, ran, plan.group(1) if plan else "none"), tail(text))


# ---- end to end, by pytest ----

def pytest(ledger, step, path, select, wide, files=None, limit_s=1500):
    """The end-to-end tests that the marks `select`, on the build in `path`."""
    if not os.path.exists(os.path.join(path, "headgate")):
        raise Failure("nothing is built in %s: run the step that builds it first" % path)
    report = os.path.join(OUT, step + ".xml")
    if os.path.exists(report):
        os.remove(report)
    command = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "--strict-markers", "--tb=short", "--junitxml=" + report, "-m", select]
    if wide > 1:
        command += ["-n", str(wide), "--dist", "loadgroup"]
    # All pytest processes share one cache of compiled Python files.
    full = dict(SANITIZER_ENV, HG_BUILD=path, PYTHONPYCACHEPREFIX=os.path.join(OUT, "pycache"))
    try:
        code, text = run(step, command + (files or ["tests/e2e"]), env=full, limit_s=limit_s,
                         may_fail=True)
    except Failure as failure:
        code, text = failure.what, failure.text
    if not os.path.exists(report):
        raise Failure("pytest ended with %s and no report" % code, text)
    try:
        failed = book_junit(ledger, step, report)
    except (xml.etree.ElementTree.ParseError, ValueError) as error:
        raise Failure("pytest ended with %s and a damaged report: %s" % (code, error), text) from error
    if code not in (0, 5) and failed == 0:  # 5: nothing is selected
        raise Failure("pytest ended with %s, and no test has failed" % code, text)


def book_junit(ledger, step, report):
    """Every test case of a JUnit report; returns how many failed."""
    failed = 0
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = "%s::%s" % (case.get("classname", "").replace(".", "/"), case.get("name"))
        bad = [child for child in case if child.tag in ("failure", "error")]
        skipped = case.find("skipped")
        if bad:
            failed += 1
            ledger.fail(step, name, tail((bad[0].text or "") + (bad[0].get("message") or "")))
        elif skipped is not None:
            ledger.skip("%s: %s" % (name, skipped.get("message")))
        else:
            ledger.count(step, 1)
        ledger.time(float(case.get("time", "0")), name)
    return failed
