"""links - what the manual points to is there (TAP): pages, headings, files of the source, manual pages

Run by links.sh. In a distribution only what is distributed is there, so a page that is not, is missed.
"""
# SPDX-License-Identifier: BSD-3-Clause
import glob
import os
import re
import sys

TOP = os.path.abspath(os.environ.get("top_srcdir", "."))
os.chdir(TOP)
PAGES = ["README.md"] + sorted(glob.glob("doc/*.md"))
MANUALS = sorted(glob.glob("doc/*.[1-8]"))


def read(path):
    with open(path, encoding="utf-8") as page:
        return page.read()


def prose(text):
    """Without fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(path):
    """Headings as they are linked to."""
    heads = re.findall(r"^#+ (.*)$", prose(read(path)), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def dead_links(path):
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(read(path))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        page = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(page):
            wrong.append(target)
        elif anchor and anchor not in anchors(page):
            wrong.append(target + " (no such heading)")
    return wrong


def not_installed():
    """What the README and the pages link to below doc/ and what lies there installed: doc/local.mk."""
    with open("doc/local.mk", encoding="utf-8") as makefile:
        lines = re.findall(r"^dist_docpages_DATA \+=(.*)$", makefile.read(), re.M)
    installed = {name for line in lines for name in line.split()}
    wrong = [page for page in PAGES[1:] if page not in installed]
    for path in PAGES:
        for target in re.findall(r"\]\(([^)\s#]+)", prose(read(path))):
            if re.match(r"[a-z]+:", target):
                continue
            name = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if name.startswith("doc/") and name not in installed:
                wrong.append("%s of %s" % (target, path))
    return wrong


def dead_files(path):
    """Files of the source, in `code`: a path with a slash, or one with … or capitals for a blank."""
    wrong = []
    for name in re.findall(r"`((?:src|tests|etc|doc)/[^`\s]*)`", prose(read(path))):
        if "…" not in name and not os.path.exists(name.rstrip("/")):
            wrong.append(name)
    return wrong


def strange_excerpts(path):
    """Blocks of Python in a page that stand in no file of doc/examples."""
    examples = [read(name) for name in glob.glob("doc/examples/*.py")]
    return [block.strip().splitlines()[0] + " ..."
            for block in re.findall(r"^```python\n(.*?)^```", read(path), re.M | re.S)
            if not any(block in example for example in examples)]


def unlisted():
    """Pages that the README does not name."""
    readme = read("README.md")
    wrong = [page for page in PAGES[1:] if "](%s)" % page not in readme]
    for page in MANUALS:
        name, section = os.path.basename(page).rsplit(".", 1)
        if "`%s(%s)`" % (name, section) not in readme:
            wrong.append(page)
    return wrong


def dead_manuals():
    """Manual pages that the README or another one refers to."""
    have = {os.path.basename(page) for page in MANUALS}
    named = re.findall(r"`(headgate[a-z.-]*)\((\d)\)`", read("README.md"))
    for page in MANUALS:
        named += re.findall(r"^\.Xr (headgate\S*) (\d)", read(page), re.M)
    return sorted({"%s(%s)" % pair for pair in named if ".".join(pair) not in have})


def main():
    checks = [("links of " + page, dead_links(page)) for page in PAGES]
    checks += [("files named in " + page, dead_files(page)) for page in PAGES]
    checks += [("code in " + page + " is in doc/examples", strange_excerpts(page))
               for page in PAGES if "```python" in read(page)]
    checks += [("the README names every page", unlisted()),
               ("what is linked to is installed", not_installed()),
               ("manual pages that are referred to", dead_manuals())]
    print("1..%d" % len(checks))
    for number, (what, wrong) in enumerate(checks, 1):
        print("%sok %d - %s" % ("not " if wrong else "", number, what))
        for line in wrong:
            print("# " + line)
    return 1 if any(wrong for _, wrong in checks) else 0


sys.exit(main())
