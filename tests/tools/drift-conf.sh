#!/bin/sh
# drift-conf - the option table, the sample file and the manual's list say the same
# SPDX-License-Identifier: BSD-3-Clause
#
# `make update-conf` writes the sample and the list anew after a change of src/app/conf.def.
set -u
top=${top_srcdir:-..}
dump=${top_builddir:-.}/tests/tools/confdump
scratch=$(mktemp -d "${TMPDIR:-/tmp}/hg-drift-XXXXXX") || exit 99
trap 'rm -rf "$scratch"' EXIT
n=0

# result STATUS WHAT [FILE shown on failure]
result() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        [ -n "${3:-}" ] && sed 's/^/# /' "$3" | head -40
    fi
}

echo 1..6
"$dump" sample > "$scratch/sample" && diff "$scratch/sample" "$top/etc/headgate.yaml" > "$scratch/out" 2>&1
result $? "etc/headgate.yaml is what the table prints (make update-conf)" "$scratch/out"

"$dump" check "$top/etc/headgate.yaml" > "$scratch/out" 2>&1 && [ ! -s "$scratch/out" ]
result $? "etc/headgate.yaml is accepted without a warning" "$scratch/out"

# Each commented default, taken in, is still the default: so the comments are right as configuration too. Options
# that are accepted without an effect say so.
sed 's/^#\([a-z_]*: \)/\1/' "$top/etc/headgate.yaml" > "$scratch/all.yaml"
"$dump" check "$scratch/all.yaml" > "$scratch/said" 2>&1 &&
    ! grep -v 'has no effect: ' "$scratch/said" > "$scratch/out" &&
    [ "$(grep -c '^[a-z_]*:' "$scratch/all.yaml")" -gt 20 ]
result $? "the defaults shown in it are accepted" "$scratch/out"

sed -n '/^<!-- options: begin -->$/,/^<!-- options: end -->$/p' "$top/doc/configuration.md" |
    sed '1d;$d' > "$scratch/listed"
"$dump" manual > "$scratch/manual" && diff "$scratch/manual" "$scratch/listed" > "$scratch/out" 2>&1
result $? "the list of doc/configuration.md is what the table prints (make update-conf)" "$scratch/out"

# An option that the code reads by another way than the table would be missing from one of the three.
"$dump" describe | sed -n 's/^  \([a-z_]*\)$/\1/p' | sort > "$scratch/described"
sed -n 's/^| `\([a-z_]*\)` |.*/\1/p' "$scratch/listed" | sort > "$scratch/named"
diff "$scratch/described" "$scratch/named" > "$scratch/out" 2>&1 && [ -s "$scratch/named" ]
result $? "--describe-config and the manual name the same options" "$scratch/out"

# Options that the manual's prose mentions exist (in `code`, with an underscore), or are a value of one.
grep -o '[a-z0-9]*_[a-z0-9_]*' "$scratch/listed" | sort -u > "$scratch/words"
sed '/^<!-- options: begin -->$/,/^<!-- options: end -->$/d' "$top/doc/configuration.md" |
    grep -o '`[a-z]*_[a-z_]*`' | tr -d '`' | sort -u > "$scratch/prose"
grep -vxF -f "$scratch/words" "$scratch/prose" > "$scratch/out"
[ ! -s "$scratch/out" ] && [ -s "$scratch/prose" ]
result $? "options named in the manual's prose exist" "$scratch/out"
