#!/bin/sh
# pure - proto, core and table import no clock, no socket, no file and no allocator (TAP)
# SPDX-License-Identifier: BSD-3-Clause
set -u
failed=0
number=0
# What pure code may take from outside: memory and string functions, formatting, mathematics, and
# what compilers and sanitizers add on their own.
allowed='^(mem[a-z]*|str[a-z]*|bcmp|snprintf|vsnprintf|__[a-z0-9_]*|_GLOBAL_OFFSET_TABLE_|abort'
allowed="$allowed"'|log2?|exp2?|pow|powf?|sqrt|ceil|floor|l?l?round|qsort|hg_.*|headgate__.*|protobuf_c_.*)$'
echo "1..3"
for library in libproto.a libcore.a libtable.a; do
    number=$((number + 1))
    bad=$(nm -u "$top_builddir/$library" | awk 'NF == 2 { print $2 }' | sort -u |
        grep -Ev "$allowed" | tr '\n' ' ')
    if [ -z "$bad" ]; then
        echo "ok $number - $library"
    else
        echo "not ok $number - $library imports: $bad"
        failed=1
    fi
done
exit $failed
