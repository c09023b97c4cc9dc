"""built - the programs under test: where they are, and how much slower they are than usual.

HG_BUILD (default ./build) names the folder with the built programs. A sanitizer makes a build slower
and larger, and other tests beside it make it slower. SCALE multiplies every time bound,
memory_factor() every memory bound. HG_TEST_SCALE multiplies SCALE on slow machines.
"""
# SPDX-License-Identifier: BSD-3-Clause

import functools
import os
import subprocess

BUILD = os.path.abspath(os.environ.get("HG_BUILD") or os.environ.get("top_builddir") or "build")
HEADGATE = os.path.join(BUILD, "headgate")
HEADGATECTL = os.path.join(BUILD, "headgatectl")


@functools.lru_cache(None)
def sanitizer():
    """"thread", "address" or None: what the daemon is built with."""
    linked = subprocess.run(["ldd", HEADGATE], capture_output=True, text=True, check=False).stdout
    return "thread" if "libtsan" in linked else "address" if "libasan" in linked else None


def memory_factor():
    """How much more memory than usual the build takes: bounds are multiplied by it."""
    return {"thread": 12, "address": 2, None: 1}[sanitizer()]


def _slowness():
    beside = 3 if "PYTEST_XDIST_WORKER" in os.environ else 1
    return max(beside, {"thread": 6, "address": 4, None: 1}[sanitizer()])


SCALE = float(os.environ.get("HG_TEST_SCALE", "1")) * _slowness()
