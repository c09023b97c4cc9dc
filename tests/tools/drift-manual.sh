#!/bin/sh
# drift-manual - the lists of the manual are what the program's tables say (TAP)
# SPDX-License-Identifier: BSD-3-Clause
#
# A list lies between two lines "NAME: begin" and "NAME: end". `make update-manual` (this script with
# the argument "update") writes all of them anew.
set -u
top=${top_srcdir:-..}
build=${top_builddir:-.}
dump=$build/tests/tools/manualdump
headgate=$build/headgate
scratch=$(mktemp -d "${TMPDIR:-/tmp}/hg-manual-XXXXXX") || exit 99
trap 'rm -rf "$scratch"' EXIT
n=0
failed=0

# result STATUS WHAT [FILE shown on failure]
result() {
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        failed=1
        [ -n "${3:-}" ] && sed 's/^/# /' "$3" | head -40
    fi
}

# The statistics of --describe-stats under a heading that begins with $1, as a table.
statistics() {
    "$headgate" --describe-stats | awk -v head="$1" '
        BEGIN { print "| name | what it counts |\n| --- | --- |" }
        /^[^ ]/ { inside = index($0, head) == 1; next }
        inside && NF { name = $1; sub(/^ +[^ ]+ +/, ""); printf "| `%s` | %s |\n", name, $0 }'
}

groups() {
    echo "| group | what it shows |"
    echo "| --- | --- |"
    "$headgate" --describe-stats | sed -n 's/^stat \(.\{15\}\) \(.*\)$/\1|\2/p' |
        sed 's/ *|/|/; s/^|/(nothing)|/; s/^\([^(|][^|]*\)|/`\1`|/; s/^\([^|]*\)|\(.*\)$/| \1 | \2 |/'
}

# Options of --describe-config as mdoc.
options() {
    "$headgate" --describe-config | awk '
        /^Options of / { if (open) print ".El"; sub(/:$/, ""); print ".Ss " $0
                         print ".Bl -tag -width Ds"; open = 1; next }
        /^  [a-z]/ { print ".It Cm " $1; next }
        /^      / { sub(/^ +/, ""); if (/^type: |^default: /) print ".br"; print; next }
        END { if (open) print ".El" }' | awk -f "$top/tests/tools/man-wrap"
}

opcodes() { "$dump" opcodes; }
statuses() { "$dump" statuses; }
features() { "$dump" features; }
logins() { "$dump" logins; }
embedded() { "$dump" embedded; }
upstream() { "$dump" upstream; }
cluster() { "$dump" cluster; }
handshakes() { "$dump" handshakes; }
workers() { statistics "of each worker"; }
tenants() { statistics "of each tenant"; }
outcomes() { statistics "outcomes"; }
engine() { statistics "of the engine"; }
pool() { statistics "of each identity"; }
holders() { statistics "of each holder"; }
binds() { statistics "of bind eviction"; }
metrics() {
    echo "| metric | type | labels | what it is |"
    echo "| --- | --- | --- | --- |"
    "$headgate" --describe-metrics | awk -F '\t' '{ printf "| `%s` | %s | %s | %s |\n", $1, $2, $3, $4 }'
}

lists="protocol.md:features protocol.md:opcodes protocol.md:statuses operations.md:groups
    operations.md:workers operations.md:logins operations.md:outcomes operations.md:tenants operations.md:engine
    operations.md:embedded operations.md:upstream operations.md:pool operations.md:cluster
    operations.md:holders operations.md:binds monitoring.md:metrics tls.md:handshakes
    headgate.yaml.5:options"

update() {
    for list in $lists; do
        file=$top/doc/${list%:*}
        name=${list#*:}
        $name >"$scratch/list" || exit 1
        awk -v name="$name" -v list="$scratch/list" '
            index($0, name ": end") { inside = 0 }
            !inside { print }
            index($0, name ": begin") { inside = 1; while ((getline line < list) > 0) print line }
            ' "$file" >"$scratch/new" && cat "$scratch/new" >"$file" || exit 1
    done
}

if [ "${1:-}" = update ]; then
    update
    exit 0
fi

echo "1..22"
for list in $lists; do
    file=$top/doc/${list%:*}
    name=${list#*:}
    $name >"$scratch/is"
    awk -v name="$name" 'index($0, name ": end") { inside = 0 } inside { print }
        index($0, name ": begin") { inside = 1 }' "$file" >"$scratch/listed"
    diff "$scratch/is" "$scratch/listed" >"$scratch/out" 2>&1 && [ "$(wc -l <"$scratch/is")" -gt 3 ]
    result $? "doc/${list%:*}: $name (make update-manual)" "$scratch/out"
done

# Privileges: the table of users.md has a row for each and no other.
sed -n 's/^HG_PRIVILEGE([A-Z_]*, "\([A-Za-z]*\)")$/\1/p' "$top/src/base/privilege.def" |
    sort >"$scratch/is"
sed -n '/^## Privileges$/,/^## /s/^| `\([A-Za-z]*\)` |.*/\1/p' "$top/doc/users.md" |
    sort >"$scratch/listed"
diff "$scratch/is" "$scratch/listed" >"$scratch/out" 2>&1 && [ -s "$scratch/is" ]
result $? "doc/users.md: privileges" "$scratch/out"

# Options of the command line: those of --help, and those of the manual page.
"$headgate" --help | grep -o '^  *\(-[a-z], \)\?--[a-z-]*' | tr -d ' ' | tr ',' '\n' |
    sed 's/^-*//' | sort >"$scratch/is"
sed -n 's/^\.It Fl //p' "$top/doc/headgate.8" | sed 's/ Ar .*//; s/ , Fl /\n/; s/^-//; s/\n-/\n/' |
    sort >"$scratch/listed"
diff "$scratch/is" "$scratch/listed" >"$scratch/out" 2>&1 && [ -s "$scratch/is" ]
result $? "doc/headgate.8: options" "$scratch/out"

# Alerts: each has its section.
sed -n 's/^ *- alert: //p' "$top/etc/prometheus/headgate.rules.yml" | sort >"$scratch/is"
sed -n '/^## Alerts$/,/^## /s/^### //p' "$top/doc/monitoring.md" | sort >"$scratch/listed"
diff "$scratch/is" "$scratch/listed" >"$scratch/out" 2>&1 && [ -s "$scratch/is" ]
result $? "doc/monitoring.md: alerts" "$scratch/out"

# Numbers that the prose repeats: whoever changes one has to look for it in doc/.
find "$top/src" -name '*.[ch]' -exec sed -e :a -e '/\\$/N; s/\\\n/ /; ta' {} + >"$scratch/source"
for number in HG_SESSION_FRAMES_PER_TURN:64 HG_SESSION_QUEUE_MAX:1024 HG_OVER_LIMIT_GUESTS:256 \
    HG_SESSION_REPLY_GUESS:4096 HG_SESSION_LOGIN_FRAME_BYTES:16384 HG_SLOW_LOG_ENTRIES:128 \
    HG_LOG_PER_SECOND:10 HG_LOGINGUARD_FREE:3 HG_LOGINGUARD_STEP_US:100000 \
    HG_LOGINGUARD_MAX_US:2000000 HG_LOGINGUARD_FORGIVE_US:10000000 HG_USERS_NAME_MAX:128u \
    HG_LOGINGUARD_QUEUE_US:10000000 HG_BREAKER_FAILURES:3 HG_BREAKER_TIMEOUTS:20 \
    HG_BREAKER_KEYS:4 HG_BREAKER_RECONNECTS:10 HG_NOTICE_APART_US:10000000 WAITING_MAX:10000 CLOSING_US:30000000 LINGER_US:1000000; do
    grep -qE "define ${number%:*} +${number#*:}( |$)" "$scratch/source" || echo "$number"
done >"$scratch/out"
[ ! -s "$scratch/out" ]
result $? "numbers that the prose repeats are those of the source" "$scratch/out"
exit $failed
