"""builds - the ways in which the tree is built, each in a folder of build-check/ of its own."""
# SPDX-License-Identifier: BSD-3-Clause
import os

from commands import CORES, OUT, TOP, Failure, run

# name -> arguments of configure
WAYS = {
    "asan": ["--enable-werror", "--enable-sanitizers=address,undefined", "CFLAGS=-g -O1"],
    "gcc": ["--enable-werror"],
    "clang": ["--enable-werror", "CC=clang"],
    "tsan": ["--enable-werror", "--enable-sanitizers=thread", "CFLAGS=-g -O1"],
    "fuzz": ["--enable-fuzzing", "CC=clang", "CFLAGS=-g -O1"],
    "dist": [],
}


def folder(way):
    return os.path.join(OUT, way)


def configure(step, way):
    """Configures unless that was done; returns the folder."""
    path = folder(way)
    os.makedirs(path, exist_ok=True)
    if not os.path.exists(os.path.join(TOP, "configure")):
        run(step, ["autoreconf", "-i"])
    if not os.path.exists(os.path.join(path, "Makefile")):
        run(step, [os.path.join(TOP, "configure"), "-q"] + WAYS[way], cwd=path)
    return path


def make(step, way, targets, nice=0):
    """Builds; a warning is a failure. Returns the folder."""
    path = configure(step, way)
    text = run(step, ["make", "-s", "-k", "-j%d" % (CORES + 1)] + targets, cwd=path, nice=nice)
    if "warning:" in text:
        raise Failure("the build warns", text)
    return path


def make_with_tests(step, way):
    """Builds the programs and all test programs. Returns the folder."""
    make(step, way, ["all"])
    return make(step, way, ["check", "TESTS="])
