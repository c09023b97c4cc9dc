#!/bin/sh
# usdt - tracing points: the macro makes them, and the manual lists those of the source (TAP)
# SPDX-License-Identifier: BSD-3-Clause
set -u
echo "1..2"
failed=0
in_source=$(grep -rhoE 'HG_PROBE_POINT\([a-z_]+' "$top_srcdir/src" | sed 's/.*(//; s/__/-/g' | grep -v '^name$' | sort -u)
in_manual=$(sed -n '/^### Tracing points/,/^## /s/^| `\([a-z-]*\)` |.*/\1/p' "$top_srcdir/doc/operations.md" | sort -u)
if [ -n "$in_source" ] && [ "$in_source" = "$in_manual" ]; then
    echo "ok 1 - the manual lists the tracing points"
else
    echo "not ok 1 - the manual lists: $in_manual; the source has: $in_source"
    failed=1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/point.c" <<'END'
#include "base/probe_point.h"
int main(int argc, char **argv)
{
    HG_PROBE_POINT(request__done, argv[0], argc, 3);
    return 0;
}
END
if ! echo '#include <sys/sdt.h>' | ${CC:-cc} -E - >/dev/null 2>&1; then
    echo "ok 2 # SKIP sys/sdt.h is not there (Debian: systemtap-sdt-dev)"
elif ${CC:-cc} -DHG_USDT -I"$top_srcdir/src" -o "$scratch/point" "$scratch/point.c" &&
    readelf -n "$scratch/point" | grep -q 'Provider: headgate' &&
    readelf -n "$scratch/point" | grep -q 'Name: request__done'; then
    echo "ok 2 - a point leaves its note in the program"
else
    echo "not ok 2 - a point leaves its note in the program"
    failed=1
fi
exit $failed
