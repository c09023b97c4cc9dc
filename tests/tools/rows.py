"""rows - lists name each thing once, and name everything (TAP)

Run by rows.sh, with the source in top_srcdir and a build in top_builddir. Git says which files there
are; in a distribution, which has no git, every file of the tree counts.
"""
# SPDX-License-Identifier: BSD-3-Clause
import collections
import glob
import os
import re
import subprocess
import sys

TOP = os.path.abspath(os.environ.get("top_srcdir", "."))
BUILD = os.path.abspath(os.environ.get("top_builddir", "."))
MAKE = os.environ.get("MAKE", "make")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as text:
        return text.read()


def files_of_git():
    """The tracked files that exist, or None without git."""
    if not os.path.exists(os.path.join(TOP, ".git")):
        return None
    found = subprocess.run(["git", "-C", TOP, "ls-files", "-z"], capture_output=True, check=True)
    return [name for name in found.stdout.decode().split("\0")
            if name and os.path.exists(os.path.join(TOP, name))]


def files_of_tree():
    """Every file of the tree but those of builds and of tools."""
    found = []
    for folder, folders, names in os.walk(TOP):
        # Builds are skipped: they have a config.status, or a name that begins with "build".
        folders[:] = [name for name in folders if name not in (".git", "__pycache__", "autom4te.cache")
                      and not os.path.exists(os.path.join(folder, name, "config.status"))
                      and os.path.join(folder, name) != BUILD and not name.startswith("build")]
        found += [os.path.relpath(os.path.join(folder, name), TOP) for name in names]
    return sorted(found)


def distributed():
    """What `make dist` takes: files, and folders with all that they hold."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    text = subprocess.run([MAKE, "-s", "--no-print-directory", "-C", BUILD, "list-dist"], check=True,
                          capture_output=True, text=True, env=environment).stdout
    # Automake writes a path from the top, or from the folder of the build.
    return {os.path.relpath(os.path.join(TOP, word)) if not os.path.isabs(word)
            and os.path.exists(os.path.join(TOP, word)) else
            os.path.relpath(os.path.join(BUILD, word)) for word in text.split()}


def makefiles():
    return ["Makefile.am"] + sorted(os.path.relpath(path, TOP) for path in
                                    glob.glob(os.path.join(TOP, "**/local.mk"), recursive=True)
                                    if not os.path.relpath(path, TOP).startswith("build"))


def assignments(path):
    """The lists of files of a makefile: name of the variable and the words it is given."""
    text = re.sub(r"\\\n", " ", read(path))
    text = re.sub(r"^(\t| *#).*$", "", text, flags=re.M)
    for name, words in re.findall(r"^(\w+) *\+?= *(.*)$", text, re.M):
        if re.search(r"_SOURCES$|^EXTRA_DIST$|_TESTS$|_PROGRAMS$|_LIBRARIES$|_MANS$|_DATA$", name):
            yield name, [word for word in words.split() if "$" not in word]


def listed_twice():
    """Words that one variable is given twice, in whichever makefiles."""
    seen = collections.Counter()
    where = {}
    for path in makefiles():
        for name, words in assignments(path):
            for word in words:
                seen[name, word] += 1
                where[name, word] = path
    return [f"{where[row]}: {row[0]} has {row[1]} {count} times" for row, count in seen.items()
            if count > 1]


def doubled_rows(paths):
    """Rows of a table that are the same but for white space."""
    wrong = []
    for path in paths:
        text = re.sub(r"/\*.*?\*/|^\s*//.*?$", "", read(path), flags=re.S | re.M)
        # A row begins with a macro's name at the start of a line.
        rows = [re.sub(r"\s+", "", row) for row in
                re.findall(r"^[A-Z][A-Z0-9_]*\(.*?(?=^[A-Z#]|\Z)", text, re.S | re.M)]
        wrong += [f"{path}: {row[:60]}" for row, count in collections.Counter(rows).items() if count > 1]
    return wrong


def conflicts(paths):
    """Markers that a merge leaves."""
    wrong = []
    for path in paths:
        with open(os.path.join(TOP, path), "rb") as text:
            data = text.read()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.split(b"\n"), 1):
            if re.match(rb"(<{7}|>{7})( |$)|={7}\r?$", line):
                wrong.append(f"{path}:{number}")
    return wrong


def unlisted_tests():
    """Test programs that no list of tests names."""
    listed = {word for path in makefiles() for name, words in assignments(path)
              if name == "UNIT_TESTS" for word in words}
    programs = [os.path.relpath(path, TOP)[:-2] for path in glob.glob(os.path.join(TOP, "tests/*/t_*.c"))]
    return sorted(program for program in programs if program not in listed)


def not_shipped(paths):
    shipped = distributed()

    def is_in(path):
        while path:
            if path in shipped:
                return True
            path = os.path.dirname(path)
        return False

    return [path for path in paths if path.startswith("tests/") and not is_in(path)]


def main():
    tracked = files_of_git()
    files = tracked if tracked is not None else files_of_tree()
    os.chdir(TOP)
    checks = [
        ("no file is listed twice", listed_twice()),
        ("no table has a row twice", doubled_rows([name for name in files if name.endswith(".def")])),
        ("no conflict marker is left", conflicts(files)),
        ("every test program is listed", unlisted_tests()),
        # Without git, what is there was shipped.
        ("every file of tests/ is distributed", not_shipped(tracked or [])),
    ]
    print(f"1..{len(checks)}")
    for number, (name, wrong) in enumerate(checks, 1):
        for line in wrong:
            print("# " + line)
        print(("not ok" if wrong else "ok") + f" {number} - {name}")
    return 1 if any(wrong for _, wrong in checks) else 0


if __name__ == "__main__":
    sys.exit(main())
