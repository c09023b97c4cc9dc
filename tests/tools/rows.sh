#!/bin/sh
# rows - lists name each thing once, and name everything (TAP)
# SPDX-License-Identifier: BSD-3-Clause
[ -x /usr/bin/python3 ] || {
    echo "1..0 # SKIP /usr/bin/python3 is missing"
    exit 0
}
PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "$top_srcdir/tests/tools/rows.py"
