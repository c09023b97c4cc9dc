#!/bin/sh
# completion - bash completes what the programs take (TAP): its lists against their help, and lines
# SPDX-License-Identifier: BSD-3-Clause
#
# `make update-completion` (this script with the argument "update") writes the lists anew.
command -v bash >/dev/null 2>&1 || {
    echo "1..0 # SKIP bash is missing"
    exit 0
}
exec bash -s -- "$@" <<'END'
top=${top_srcdir:-..}
build=$(cd "${top_builddir:-.}" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/hg-completion-XXXXXX") || exit 99
n=0
failed=0
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$scratch"' EXIT
export PATH=$build:$PATH
unset HEADGATE_PASSWORD
# is WHAT GOT WANTED
is() {
    n=$((n + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        printf '# got:    %s\n# wanted: %s\n' "$2" "$3"
        failed=1
    fi
}

sorted() {
    printf '%s\n' "$@" | LC_ALL=C sort -u | tr '\n' ' '
}

# What is offered for the last of the words, sorted.
offered() {
    local function=_${1//-/_}
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    $function 2>"$scratch/stderr"
    [ ! -s "$scratch/stderr" ] || sed 's/^/# /' "$scratch/stderr" >&2
    [ ${#COMPREPLY[@]} -eq 0 ] || sorted "${COMPREPLY[@]}"
}

# ---- the lists are the programs' ----

long() {
    sed -n 's/^ *\(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*\).*/\2/p'
}
accepted() {
    sed -n 's/.*(accepted: \(.*\)).*/\1/p' | tr -d ,
}
# variable NAME: the words of standard input
variable() {
    printf "%s='%s'\n" "$1" "$(echo $(cat))" | fold -s -w 100 | sed 's/ *$//'
}
lists_of_headgatectl() {
    local verb options
    local verbs=$(headgatectl --help | sed -n '/^verbs:/,/^options of verbs:/s/^  \([a-z-]*\).*/\1/p')
    echo "$verbs" | variable _headgatectl_verbs
    headgatectl --help | sed '/^verbs:/,$d' | long | variable _headgatectl_options
    headgate --describe-stats | sed -n '/^stat where/d; s/^stat \([a-z_]\{1,\}\) .*/\1/p' |
        variable _headgatectl_groups
    headgatectl set node x=1 2>&1 | accepted | variable _headgatectl_node
    headgatectl set upstream u x=1 2>&1 | accepted | variable _headgatectl_upstream
    headgatectl set bucket b x=1 2>&1 | accepted | variable _headgatectl_bucket
    headgatectl table nothing t 2>&1 | accepted | variable _headgatectl_table
    headgatectl hbase nothing t 2>&1 | accepted | variable _headgatectl_hbase
    for verb in $verbs; do
        options=$(headgatectl help "$verb" | long)
        [ -z "$options" ] || echo "$options" | variable "_headgatectl_of_${verb//-/_}"
    done
}
lists_of_headgate() {
    headgate --help | long | awk '!seen[$0]++' | variable _headgate_options
}
lists_of_headgate_load() {
    headgate-load --help | long | awk '!seen[$0]++' | variable _headgate_load_options
}

for name in headgate headgatectl headgate-load; do
    file=$top/etc/bash-completion/$name
    wanted=$(lists_of_${name//-/_})
    if [ "${1-}" = update ]; then
        {
            sed '/^# lists: begin/q' "$file"
            echo "$wanted"
            sed -n '/^# lists: end/,$p' "$file"
        } >"$scratch/new" && cat "$scratch/new" >"$file"
    else
        is "lists of $name (make update-completion)" \
            "$(sed -n '/^# lists: begin/,/^# lists: end/p' "$file" | sed '1d;$d')" "$wanted"
    fi
    . "$file" || exit 99
done
[ "${1-}" != update ] || exit 0
is "there are verbs" "$([[ $_headgatectl_verbs == *status* && $_headgatectl_verbs == *top* ]] && echo yes)" yes
is "there are groups" "$([[ $_headgatectl_groups == *tickets* ]] && echo yes)" yes
is "there are options" "$([[ $_headgate_options == *--config* && $_headgate_load_options == *--zipf* ]] && echo yes)" yes

# ---- lines, without a server ----

is "a verb" "$(offered headgatectl re)" "reload resume "
is "behind options" "$(offered headgatectl -s 127.0.0.1:1 --json un)" "unset "
is "help's" "$(offered headgatectl help dr)" "drain "
is "an option of the verb" "$(offered headgatectl top --o)" "--once "
is "no verb is evaluated" "$(offered headgatectl 'x[$(echo>'"$scratch"'/evil)]' --o; ls "$scratch" | grep evil)" ""
is "not of another" "$(offered headgatectl status --o)" ""
is "a group" "$(offered headgatectl stats thr)" "threads throttle "
is "what to set" "$(offered headgatectl set '')" "bucket node upstream "
is "an option to set" "$(offered headgatectl set node ingress_t)" "ingress_tickets= "
is "to unset" "$(offered headgatectl unset node ingress_t)" "ingress_tickets "
is "a type" "$(offered headgatectl hotkeys --type q)" "query "
touch "$scratch/a b.yaml"
is "a file" "$(offered headgatectl check "$scratch/a")" "$scratch/a b.yaml "
is "nobody answers" "$(offered headgatectl -s 127.0.0.1:1 pause '')" ""
is "headgate's file" "$(offered headgate -c "$scratch/a")" "$scratch/a b.yaml "
is "headgate's option" "$(offered headgate --samp)" "--sample-config "
is "a kind of arrivals" "$(offered headgate-load --arrivals p)" "poisson "
is "a value is not guessed" "$(offered headgate-load --rate '')" ""

# ---- names of a server ----

cat >"$scratch/headgate.yaml" <<CONF
listen: [{address: "unix:$scratch/socket"}]
data_dir: $scratch/data
upstreams: [{name: cellar, kind: embedded}]
tenants: [{name: default}, {name: shop}, {name: shop-two}, {name: "\$(touch \$HOME)"}]
CONF
headgate --check -c "$scratch/headgate.yaml" >/dev/null 2>&1 ||
    sed -i 's/, {name: "\$(touch[^}]*}//' "$scratch/headgate.yaml"
headgate -c "$scratch/headgate.yaml" 2>"$scratch/log" &
server=$!
tries=0
until headgatectl -s "unix:$scratch/socket" status >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 400 ] || { sed 's/^/# /' "$scratch/log"; break; }
    sleep 0.05
done
on="headgatectl -s unix:$scratch/socket"
is "tenants" "$(offered $on pause s)" "shop shop-two "
is "of a bucket" "$(offered $on set bucket shop-)" "shop-two "
is "of --tenant" "$(offered $on hotkeys --tenant d)" "default "
is "upstreams" "$(offered $on set upstream '')" "cellar "
is "of --upstream" "$(offered $on backup copy.mdb --upstream c)" "cellar "
is "options behind the name" "$(offered $on set bucket shop st)" "state= "
is "nothing is asked for a password" "$(offered $on -u ann pause s)" ""

# Another party's names are not evaluated.
evil() {
    echo 'TENANT'
    echo '$(echo>'"$scratch"'/evil)'
    echo '`echo>'"$scratch"'/evil`'
}
mkdir "$scratch/bin"
{ echo '#!/bin/sh'; echo "cat <<'X'"; evil; echo X; } >"$scratch/bin/headgatectl"
chmod +x "$scratch/bin/headgatectl"
PATH=$scratch/bin:$PATH
hash -r
offer=$(offered headgatectl pause '')
is "hostile names are quoted" "$(eval "printf '%s ' $offer")" "$(evil | sed 1d | LC_ALL=C sort | tr '\n' ' ')"
is "and not evaluated" "$(ls "$scratch" | grep -c evil)" 0
echo "1..$n"
exit $failed
END
