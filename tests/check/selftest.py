"""selftest - what tests/tools/check decides and counts (TAP)"""
# SPDX-License-Identifier: BSD-3-Clause
import fnmatch
import glob
import os
import sys
import tempfile
import time

import commands
import deep
import ledger
import quick
import since
import steps
import suites


def test_every_row_of_since_is_alive():
    names = since.suite_names()
    for subject, patterns in since.SUBJECTS.items():
        for pattern in patterns:
            assert any(fnmatch.fnmatch(name, pattern) for name in names), (subject, pattern)
    patterns = [pattern for some in since.SUBJECTS.values() for pattern in some]
    for name in names:
        assert any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name
    for pattern, subjects in since.ROWS:
        for subject in subjects:
            assert subject in since.SUBJECTS, (pattern, subject)
        if pattern.startswith(("src/", "tests/")):
            assert glob.glob(os.path.join(commands.TOP, pattern)), pattern


def test_since_chooses_by_folder():
    names = since.suite_names()
    assert since.touched_by("doc/pool.md", names) == set()
    assert since.touched_by("tests/e2e/test_wire.py", names) == {"wire"}
    assert since.touched_by("src/base/list.h", names) == set(names)
    assert since.touched_by("tests/lib/servers.py", names) == set(names)
    assert since.touched_by("src/core/credit.c", names) == {"credits", "states"}
    assert since.files_for(["doc/pool.md"]) == []


def test_programs_come_from_the_lists():
    programs = suites.test_programs("unit", "flow", "sim")
    assert programs["tests/unit/t_credit"] == "tests/unit/t_credit.c"
    assert programs["tests/flow/t_rediscluster_relayed"] == "tests/flow/t_rediscluster.c"
    assert all(os.path.exists(os.path.join(commands.TOP, name)) for name in programs.values())
    assert "tests/unit/t_ticketthreads" in quick.programs_about_threads()
    assert set(quick.programs_about_threads()) <= set(deep.programs_that_start_threads())


def test_what_was_left_comes_first():
    names = ["a", "b", "c", "d"]
    assert deep.order(names, ["c", "d"], 0) == ["c", "d", "a", "b"]
    assert deep.order(names, [], 0) == names
    assert deep.order(names, [], 6) == ["c", "d", "a", "b"]
    assert deep.fits(100, 200, 300) and not deep.fits(101, 200, 300)


def test_what_is_remembered_cannot_mislead():
    kept, deep.STATE = deep.STATE, os.path.join(commands.OUT, "deep.json")
    try:
        for text in ("", "[]", "{}", '{"durations": {"fuzz": "x"}, "left": []}', "[" * 100000,
                     '{"durations": {"fuzz": 1%s}, "left": []}' % ("0" * 400)):
            with open(deep.STATE, "w", encoding="utf-8") as state:
                state.write(text)
            assert deep.recall() == ({}, []), text[:40]
        with open(deep.STATE, "w", encoding="utf-8") as state:
            state.write('{"durations": {"fuzz": 1e9, "nonsense": 3, "package": NaN}, "left": ["fuzz", "x"]}')
        durations, left = deep.recall()
        assert durations == {"fuzz": 2 * deep.STEPS["fuzz"][1]} and left == ["fuzz"]
        deep.remember({"fuzz": 12.5}, ["package"])
        assert deep.recall() == ({"fuzz": 12.5}, ["package"])
    finally:
        deep.STATE = kept


def test_a_command_that_hangs_is_ended_with_its_children():
    begin = time.monotonic()
    try:
        commands.run("selftest", ["sh", "-c", "sleep 60 & echo $!; wait"], limit_s=1)
    except commands.Failure as failure:
        assert "no end after 1 s" in failure.what
        child = int(failure.text.split()[-1])
    else:
        raise AssertionError("no failure")
    assert time.monotonic() - begin < 60
    for _ in range(1000):
        if not os.path.exists("/proc/%d" % child):
            return
        with open("/proc/%d/stat" % child, encoding="utf-8") as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                return
        time.sleep(0.01)
    raise AssertionError("its child goes on")


def test_a_step_that_fails_hides_no_other():
    book = ledger.Ledger()
    runner = steps.Runner(book)
    ran = []

    def broken(_):
        raise commands.Failure("broken")

    def bad(to):
        to.count("bad", 2)
        to.fail("bad", "one test")

    def fault(_):
        raise ValueError("a slip in the check")

    runner.run_lane([steps.Step("broken", broken), steps.Step("after", ran.append, ["broken"]),
                     steps.Step("bad", bad), steps.Step("fault", fault),
                     steps.Step("more", lambda to: ran.append("more"), ["bad"])])
    assert ran == ["more"]
    assert book.passed == 3  # two of `bad`, and `more` itself
    assert [step for step, _, _ in book.failures] == ["broken", "after", "bad", "fault"]


def test_results_are_booked_by_name():
    book = ledger.Ledger()
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(folder + "/tests/unit")
        with open(folder + "/tests/unit/t_x.trs", "w", encoding="utf-8") as trs:
            trs.write(":test-result: PASS\n:test-result: FAIL\n:test-result: ERROR\n"
                      ":elapsed: 1.5\n")
        with open(folder + "/tests/unit/t_x.log", "w", encoding="utf-8") as log:
            log.write("ERROR: of its own\nnot ok 2 - b\n# why\nFAIL: tests/unit/t_x 2 - b\n" + "more\n" * 100)
        assert suites.book_trs(book, "units", folder, folder + "/tests/unit/t_x.trs") == 2
        assert all("# why" in text for _, _, text in book.failures)
        again = ledger.Ledger()
        assert suites.book_failures(again, "distcheck", folder, folder + "/tests/unit/t_x.trs") == 2
        assert again.passed == 0 and again.times == [] and len(again.failures) == 2
        with open(folder + "/e2e.xml", "w", encoding="utf-8") as report:
            report.write('<testsuites><testsuite><testcase classname="tests.e2e.test_x" name="a" '
                         'time="2.5"/><testcase classname="tests.e2e.test_x" name="b" time="1">'
                         '<failure message="no">why</failure></testcase></testsuite></testsuites>')
        assert suites.book_junit(book, "e2e", folder + "/e2e.xml") == 1
    suites.book_tap(book, "tsan", "t_y", 66, "1..1\nok 1 - fine\n")
    for text, verdict in (("", "planned none"), ("1..5\nok 1 - a\n", "ran 1 tests, planned 5"),
                          ("Bail out! no\n", "planned none")):
        odd = ledger.Ledger()
        suites.book_tap(odd, "tsan", "t_z", 0, text)
        assert len(odd.failures) == 1 and verdict in odd.failures[0][1], odd.failures
    assert book.passed == 3
    assert [name for _, name, _ in book.failures] == [
        "tests/unit/t_x 2 - b", "tests/unit/t_x (without a name)", "tests/e2e/test_x::b",
        "t_y (ended with 66)"]
    assert sorted(book.times, reverse=True)[0] == (2.5, "tests/e2e/test_x::a")


def main():
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    print("1..%d" % len(tests))
    failed = 0
    with tempfile.TemporaryDirectory() as commands.OUT:
        for number, (name, test) in enumerate(tests, 1):
            saved, sys.stdout = sys.stdout, sys.stderr
            try:
                test()
                verdict = "ok"
            except Exception as error:  # pylint: disable=broad-except
                verdict = "not ok"
                failed = 1
                sys.stderr.write("# %r\n" % error)
            finally:
                sys.stdout = saved
            print("%s %d - %s" % (verdict, number, name), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
