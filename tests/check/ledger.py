"""ledger - what a check has counted: tests, failures with their names, times."""
# SPDX-License-Identifier: BSD-3-Clause
import threading

SLOWEST = 10


class Ledger:
    """Filled by the steps, from any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.passed_of = {}  # step -> tests
        self.failures = []   # (step, test, text)
        self.times = []      # (seconds, test)
        self.steps = []      # (step, seconds, passed, failed, remark)
        self.skips = []      # texts

    @property
    def passed(self):
        with self.lock:
            return sum(self.passed_of.values())

    def count(self, step, passed):
        with self.lock:
            self.passed_of[step] = self.passed_of.get(step, 0) + passed

    def fail(self, step, name, text=""):
        with self.lock:
            self.failures.append((step, name, text))

    def time(self, seconds, name):
        with self.lock:
            self.times.append((seconds, name))

    def skip(self, text):
        """Says at once what is not run, and again at the end."""
        with self.lock:
            self.skips.append(text)
        say("    SKIPPED: " + text)

    def ran(self, step):
        """Whether a test of the step has passed or failed."""
        return self.passed_of.get(step, 0) > 0 or self.failed_of(step) > 0

    def failed_of(self, step):
        with self.lock:
            return sum(1 for failure in self.failures if failure[0] == step)

    def print_failures(self, step):
        """Prints a step's failures, each with its output; the same output is printed once."""
        seen = set()
        for _, name, text in [row for row in self.failures if row[0] == step]:
            say("--- %s: %s" % (step, name))
            if text and text not in seen:
                say(text)
            seen.add(text)

    def end_step(self, step, seconds, remark):
        failed = self.failed_of(step)
        with self.lock:
            passed = self.passed_of.get(step, 0)
            self.steps.append((step, seconds, passed, failed, remark))
        say(step_line(step, seconds, passed, failed, remark))

    def report(self):
        """Prints the full summary, so that the end of the log is enough. True if all passed."""
        say("\nSteps, with the seconds from begin to end (some run side by side):")
        for row in self.steps:
            say("  " + step_line(*row))
        if self.times:
            say("\nThe %d slowest tests:" % SLOWEST)
            for seconds, name in sorted(self.times, reverse=True)[:SLOWEST]:
                say("  %7.1f s  %s" % (seconds, name))
        for text in self.skips:
            say("SKIPPED: " + text)
        if self.failures:
            say("\nFailed:")
            for step, name, _ in self.failures:
                say("  %s: %s" % (step, name))
        say("%d passed, %d failed" % (self.passed, len(self.failures)))
        return not self.failures


def step_line(step, seconds, passed, failed, remark):
    return "%-14s %7.1f s  %5d passed, %d failed%s" % (
        step, seconds, passed, failed, "  " + remark if remark else "")


_say_lock = threading.Lock()


def say(text):
    with _say_lock:
        print(text, flush=True)


def tail(text, lines=40):
    return "\n".join(text.splitlines()[-lines:])


def excerpt(text, lines=40, after=8):
    """The end of what a TAP program printed, and what it said about each failure before that."""
    rows = text.splitlines()
    wanted = {at + i for at, row in enumerate(rows) if row.startswith("not ok") for i in range(after)}
    wanted |= set(range(len(rows) - lines, len(rows)))
    return "\n".join(row for at, row in enumerate(rows) if at in wanted)
