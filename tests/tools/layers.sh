#!/bin/sh
# layers - folders include, and libraries call, only what the architecture allows; each header compiles
# alone (TAP)
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

# A layer may include itself and the layers named.
check_layer() {
    layer=$1
    allowed=" $layer $2 "
    bad=
    for file in "$src/$layer"/*.[ch]; do
        [ -e "$file" ] || continue
        # Without a folder it could be a test's header, whose folders are on the include path too.
        for used in $(sed -n 's|^#include "\([^/"]*\)".*|\1|p' "$file"); do
            [ "$used" = config.h ] || bad="$bad ${file##*/src/}->$used"
        done
        for used in $(sed -n 's|^#include "\([a-z]*\)/.*|\1|p' "$file" | sort -u); do
            case $allowed in
            *" $used "*) ;;
            *) bad="$bad ${file##*/src/}->$used" ;;
            esac
        done
    done
    [ -z "$bad" ] && result ok "$layer" || result "not ok" "$layer includes upward:$bad"
}

# Symbols of a library: what it defines, and what it takes from elsewhere; sorted.
defined() {
    nm --defined-only "$top_builddir/lib$1.a" | awk 'NF == 3 && $2 ~ /[A-TV-Z]/ { print $3 }' | sort -u
}

taken() {
    nm -u "$top_builddir/lib$1.a" | awk 'NF == 2 { print $2 }' | sort -u
}

libraries="base tablepb proto core io table back front app load ctl"

# A library may use symbols only of libraries below it, or from outside of this tree.
check_library() {
    bad=
    for other in $libraries; do
        case " $1 $2 " in
        *" $other "*) continue ;;
        esac
        symbols=$(comm -12 "$work/$1.taken" "$work/$other.defined" | comm -23 - "$work/$1.defined")
        for symbol in $symbols; do
            bad="$bad $symbol(lib$other)"
        done
    done
    [ -s "$work/$1.defined" ] || bad=" no symbols at all in lib$1.a"
    [ -z "$bad" ] && result ok "lib$1.a" || result "not ok" "lib$1.a takes from above:$bad"
}

echo "1..$((9 + 11 + 1))"
check_layer base ""
check_layer proto "base"
check_layer core "base"
check_layer io "base"
check_layer table "proto base"
check_layer back "table base proto core io"
check_layer front "back table base proto core io"
check_layer app "front back table base proto core io"
check_layer load "base proto io"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
for library in $libraries; do
    defined "$library" | grep -Ev '^(__|_GLOBAL_)' >"$work/$library.defined"
    taken "$library" >"$work/$library.taken"
done
check_library base ""
check_library tablepb ""
check_library proto "tablepb base"
check_library core "base"
check_library io "base"
check_library table "proto base"
check_library back "table tablepb proto core io base"
check_library front "back table tablepb proto core io base"
check_library app "front back table tablepb proto core io base"
check_library load "proto tablepb io base"
check_library ctl "app proto tablepb io base"

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
