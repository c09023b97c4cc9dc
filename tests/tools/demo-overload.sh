#!/bin/sh
# demo-overload - the README's demonstration of overload shows what it is said to show (TAP)
#
# It measures: the deep check runs it alone.
# SPDX-License-Identifier: BSD-3-Clause
[ -x /usr/bin/python3 ] || {
    echo "1..0 # SKIP /usr/bin/python3 is missing"
    exit 0
}
PYTHONDONTWRITEBYTECODE=1 exec /usr/bin/python3 "$top_srcdir/tests/tools/demo.py" overload
