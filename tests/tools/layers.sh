#!/bin/sh
# layers - a folder includes only what the architecture lets it; every header stands alone (TAP)
# SPDX-License-Identifier: BSD-3-Clause
set -u
src=$top_srcdir/src
number=0
failed=0

result() { # "ok" or "not ok", name
    number=$((number + 1))
    echo "$1 $number - $2"
    [ "$1" = ok ] || failed=1
}

# Who may include whom, each layer with those below it.
check_layer() {
    layer=$1
    allowed=" $layer $2 "
    bad=
    for file in "$src/$layer"/*.[ch]; do
        [ -e "$file" ] || continue
        for used in $(sed -n 's|^#include "\([a-z]*\)/.*|\1|p' "$file" | sort -u); do
            case $allowed in
            *" $used "*) ;;
            *) bad="$bad ${file##*/src/}->$used" ;;
            esac
        done
    done
    [ -z "$bad" ] && result ok "$layer" || result "not ok" "$layer includes upward:$bad"
}

echo "1..$((9 + 1))"
check_layer base ""
check_layer proto "base"
check_layer core "base"
check_layer io "base"
check_layer table "proto base"
check_layer back "table base proto core io"
check_layer front "back table base proto core io"
check_layer app "front back table base proto core io"
check_layer load "base proto io"

bad=
: >"$top_builddir/headers.log"
for header in "$src"/*/*.h; do
    # shellcheck disable=SC2086
    ${CC:-cc} -std=gnu11 -D_GNU_SOURCE -fsyntax-only -x c -I"$src" -I"$top_builddir" \
        $HEADER_CFLAGS -Wall -Wextra -Werror -include "$header" /dev/null 2>>"$top_builddir/headers.log" ||
        bad="$bad ${header##*/src/}"
done
[ -z "$bad" ] && result ok "headers stand alone" || {
    sed 's/^/# /' "$top_builddir/headers.log"
    result "not ok" "headers that do not compile alone:$bad"
}
exit $failed
