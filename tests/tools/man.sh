#!/bin/sh
# man - the man pages are clean for mandoc, and each program and file has one (TAP)
# SPDX-License-Identifier: BSD-3-Clause
set -u
pages="headgate.8 headgatectl.1 headgate-load.1 headgate.yaml.5 users.yaml.5"
if ! command -v mandoc >/dev/null; then
    echo "1..0 # SKIP mandoc is not there"
    exit 0
fi
echo "1..$(echo "$pages" | wc -w)"
n=0
failed=0
for page in $pages; do
    n=$((n + 1))
    # Whether the pages that a page refers to are installed says nothing about it.
    faults=$(mandoc -T lint "$top_srcdir/doc/$page" | grep -Ev 'referenced manual not found: Xr (headgate|users)')
    if [ -f "$top_srcdir/doc/$page" ] && [ -z "$faults" ]; then
        echo "ok $n - $page"
    else
        echo "not ok $n - $page"
        echo "$faults" | head -20 | sed 's/^/# /'
        failed=1
    fi
done
exit $failed
