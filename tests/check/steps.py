"""steps - runs named steps, one after the other or beside each other; a failure never hides a later one."""
# SPDX-License-Identifier: BSD-3-Clause
import threading
import time

from commands import Failure
from ledger import say, tail


class Step:
    """A named part of a check. `work` takes the ledger; `needs` lists the steps that must succeed
    first."""

    def __init__(self, name, work, needs=()):
        self.name, self.work, self.needs = name, work, needs


class Runner:
    def __init__(self, ledger):
        self.ledger = ledger
        self.broken = set()  # steps after which others cannot run
        self.seconds = {}

    def run(self, step):
        begin = time.monotonic()
        skipped = len(self.ledger.skips)
        lost = [name for name in step.needs if name in self.broken]
        remark = ""
        if lost:
            self.broken.add(step.name)
            remark = "not run: step '%s' failed" % lost[0]
            self.ledger.fail(step.name, remark)
        else:
            try:
                remark = step.work(self.ledger) or ""
            except Failure as failure:
                self.broken.add(step.name)
                remark = "FAILED: " + failure.what
                self.ledger.fail(step.name, failure.what)
                say(tail(failure.text, 80))
        seconds = time.monotonic() - begin
        self.seconds[step.name] = seconds
        # A step that runs no tests of its own, such as a build, counts as one passed test; a step
        # that is skipped counts as none.
        if not self.ledger.ran(step.name) and len(self.ledger.skips) == skipped:
            self.ledger.count(step.name, 1)
        self.ledger.print_failures(step.name)
        self.ledger.end_step(step.name, seconds, remark)

    def run_lanes(self, lanes):
        """Each lane is a list of steps, run in order, beside the other lanes."""
        threads = [threading.Thread(target=self.run_lane, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run_lane(self, lane):
        for step in lane:
            try:
                self.run(step)
            except Exception as error:  # pylint: disable=broad-except
                self.broken.add(step.name)
                self.ledger.fail(step.name, "fault in the check itself: %r" % error)
                self.ledger.end_step(step.name, 0, "FAILED: fault in the check itself")
