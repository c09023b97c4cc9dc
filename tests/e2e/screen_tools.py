"""screen_tools - headgatectl top in a terminal of its own"""
# SPDX-License-Identifier: BSD-3-Clause

import os
import signal

import pexpect
import pyte

from mcbin import poll, scaled
from servers import HEADGATECTL


def end_terminal(child):
    """Ends what runs in the terminal. pexpect would give it a tenth of a second."""
    if child.isalive():
        child.kill(signal.SIGKILL)
        poll(lambda: not child.isalive(), 10, what="the end of a killed program")
    child.close()


class Screen:
    """top in a terminal of its own; `pyte` plays the terminal."""

    def __init__(self, where, *args, rows=24, columns=80, term="xterm-256color", env=None):
        self.display = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.display)
        self.bytes = b""
        full = dict(os.environ, TERM=term, **(env or {}))
        full.pop("LINES", None), full.pop("COLUMNS", None)
        self.child = pexpect.spawn(HEADGATECTL, ["-s", where, "top", *args], env=full,
                                   dimensions=(rows, columns), timeout=scaled(10))
        self.child.delaybeforesend = None

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        end_terminal(self.child)

    def feed(self):
        """Takes what has come; false when the program has ended."""
        try:
            data = self.child.read_nonblocking(1 << 16, timeout=0.02)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:  # which pexpect may say before the last bytes were read
            data = b""
            try:
                while chunk := os.read(self.child.child_fd, 1 << 16):
                    data += chunk
            except OSError:
                pass
            self._take(data)
            return False
        self._take(data)
        return True

    def _take(self, data):
        self.bytes += data
        self.stream.feed(data)

    @property
    def lines(self):
        return [line.rstrip() for line in self.display.display]

    @property
    def text(self):
        return "\n".join(self.lines)

    def wait(self, question, what, timeout=8.0):
        """Until the screen answers the question, which is a text or a function of this."""
        ask = question if callable(question) else lambda: question in self.text

        def look():
            self.feed()
            return ask()
        try:
            return poll(look, timeout, what=what)
        except AssertionError as wrong:
            raise AssertionError("%s:\n%s" % (wrong, self.text)) from None

    def send(self, keys):
        self.child.send(keys)

    def row(self, name):
        """The cells of the row that begins so, by the headings."""
        heads = self.lines[4].split()
        for line in self.lines[5:]:
            if line.startswith(name + " "):
                return dict(zip(heads, line.split(None, len(heads) - 1)))
        return None

    def end(self, timeout=8.0):
        """Until the program has ended: (exit code, signal). The terminal is as it was."""
        poll(lambda: not self.feed(), timeout, what="the end")
        self.child.wait()
        assert b"\x1b[?1049h" not in self.bytes or self.bytes.rindex(b"\x1b[?1049l") > \
            self.bytes.rindex(b"\x1b[?1049h"), "the other screen is still there"
        shown, hidden = self.bytes.rfind(b"\x1b[?25h"), self.bytes.rfind(b"\x1b[?25l")
        assert shown > hidden or hidden < 0, "the cursor is hidden"
        return self.child.exitstatus, self.child.signalstatus
