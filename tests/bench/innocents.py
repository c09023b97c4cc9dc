#!/usr/bin/python3
"""innocents - what the innocents of an overload lose, with and without Headgate before the store

Runs the measuring scenes of tests/e2e/test_innocents_*.py, whose daemon has default settings, and
prints a table: the load straight at the store, the same load through the daemon, and whether the
scene's bounds hold. The machine should be idle.

    innocents.py --build build [-k EXPRESSION] [--repetitions 1]
"""
# SPDX-License-Identifier: BSD-3-Clause

import argparse
import glob
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))


def run(build, expression):
    """[(scene, direct, headgate, whether its bounds hold)]"""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        argv = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line",
                "--junitxml", report, "-m", "scene", *(["-k", expression] if expression else []),
                *sorted(glob.glob(os.path.join(TOP, "tests/e2e/test_innocents_*.py")))]
        code = subprocess.run(argv, env=dict(os.environ, HG_BUILD=build), check=False,
                              stdout=sys.stderr).returncode
        if code not in (0, 1):
            raise RuntimeError("pytest ended with %d" % code)
        return [row(case) for case in xml.etree.ElementTree.parse(report).iter("testcase")]


def row(case):
    figures = {found.get("name"): found.get("value") for found in case.iter("property")}
    holds = all(child.tag not in ("failure", "error") for child in case)
    return (case.get("name")[len("test_"):], figures.get("direct", "-"),
            figures.get("headgate", "-"), holds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("-k", dest="expression", help="only scenes whose names match, as pytest -k")
    parser.add_argument("--repetitions", type=int, default=1)
    options = parser.parse_args()
    all_hold = True
    print("| scene | direct | headgate | holds |\n| --- | --- | --- | --- |")
    for _ in range(options.repetitions):
        for name, direct, today, holds in run(os.path.abspath(options.build), options.expression):
            all_hold &= holds
            print("| %s | %s | %s | %s |" % (name, direct, today, "yes" if holds else "**no**"),
                  flush=True)
    return 0 if all_hold else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except RuntimeError as reason:
        sys.exit("innocents: %s" % reason)
