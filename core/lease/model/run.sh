#!/usr/bin/env bash
#
# Checks the models of this folder, each to the end, and prints a table:
#
#     core/lease/model/run.sh          # needs spin and gcc
#     MODEL_LARGE=1 core/lease/model/run.sh
#
# A model without a mistake must have no error in any state; one with a mistake must
# have one. A search that was cut short, by its depth, its memory or its time, is a
# failure too. Two run at a time, each with less than 2 GB; JOBS changes that.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD
jobs=${JOBS:-2}
seconds=${MODEL_SECONDS:-120} # processor time of one search
memory=2000                   # MB of one search
if [[ -n ${MODEL_LARGE:-} ]]; then
	seconds=${MODEL_SECONDS:-3600}
	memory=${MODEL_MEMORY:-8000}
fi

TIMEFORMAT=%U

for tool in spin gcc; do
	command -v "$tool" >/dev/null || {
		echo "$tool is not installed" >&2
		exit 2
	}
done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# check WANT MODEL PARAMETER...: one search, in its own folder. WANT is "holds" or
# the mistake that must be found.
check() {
	local want=$1 model=$2 dir
	shift 2
	dir=$(mktemp -d "$tmp/XXXXXX")
	local defines=("${@/#/-D}")
	[[ $want == holds ]] || defines+=("-D$want")
	cd "$dir"
	local result states spent status=0
	{
		spin -a "${defines[@]}" "$here/$model.pml"
		gcc -O2 -w -DSAFETY -DNOCLAIM -DMEMLIM="$memory" -o pan pan.c
	} >build 2>&1 || {
		cat build >&2
		printf 'FAILED: %s %s does not compile\n' "$model" "$*"
		return 1
	}
	# Processor time, so that the table and the bound do not depend on what else
	# the machine does.
	spent=$({ time { (ulimit -t "$seconds" && ./pan -m1000000) >out 2>&1; }; } 2>&1) || status=$?
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
	if ((status != 0)) || ! grep -q 'errors: ' out ||
		grep -qE 'max search depth too small|Search not completed|out of memory|memory limit' out &&
		! grep -q 'assertion violated' out; then
		result='INCOMPLETE'
	elif grep -q 'assertion violated' out; then
		result='duplicate found'
	elif grep -q 'errors: 0' out; then
		result='holds'
	else
		result='ERROR'
	fi
	printf '%-9s | %-21s | %-45s | %9s | %-15s | %6s\n' "$model" "${want/#holds/none}" "$*" "${states:-?}" "$result" "$spent"
	if [[ $want == holds && $result != holds || $want != holds && $result != 'duplicate found' ]]; then
		sed -n '1,8p' out >&2
		return 1
	fi
}

printf '%-9s | %-21s | %-45s | %9s | %-15s | %6s\n' model mistake parameters states result s
failed=0
running=0
start() {
	if ((running == jobs)); then
		wait -n || failed=1
		running=$((running - 1))
	fi
	check "$@" &
	running=$((running + 1))
}

start holds fence PROCESSES=2 WINDOW=2 TIMES=5 EPOCHS=4
start holds fence PROCESSES=3 WINDOW=2 TIMES=4 EPOCHS=2
start holds fence PROCESSES=2 ROWS=2 WINDOW=2 TIMES=2 EPOCHS=2
start holds guard WINDOW=4 GUARD=1 TIMES=4 CLAIMS=2 EPOCHS=3
start holds guard WINDOW=2 GUARD=1 TIMES=5 CLAIMS=2 EPOCHS=2
start holds register WINDOW=4 TIMES=4 WRITES=5
start holds register WINDOW=2 TIMES=5 WRITES=5
start holds clone WINDOW=2 TIMES=3 WRITES=4 EPOCHS=2
for mistake in START_AT_OWN_CLOCK RENEW_WITHOUT_CAS TIMEOUT_AS_SUCCESS RELEASE_BEFORE_SEAL ROW_DELETED STORE_LOSES_WRITES; do
	start "$mistake" fence WINDOW=2 TIMES=4 EPOCHS=3 DUPLICATES_ONLY
done
for mistake in GUARD_SHORT_BY_ONE EPOCH_WITHOUT_OWNER; do
	start "$mistake" guard WINDOW=4 GUARD=1 TIMES=4 CLAIMS=2 EPOCHS=2
done
start OWN_WINDOW guard WINDOW=3 SHORT=2 GUARD=1 TIMES=4 CLAIMS=2 EPOCHS=2
start NO_LAPSE_RULE guard WINDOW=2 GUARD=1 TIMES=5 CLAIMS=2 EPOCHS=2
for mistake in START_AT_READ SWAP_EPOCH_ALONE; do
	start "$mistake" register WINDOW=4 TIMES=4 WRITES=5 FEWER
done
start SWAP_COUNT_ALONE register WINDOW=4 TIMES=3 WRITES=6 FEWER
start NO_ANSWER_CHECK register WINDOW=4 TIMES=8 WRITES=6 FEWER
start NO_NONCE clone WINDOW=2 TIMES=4 WRITES=5 EPOCHS=2
start SAME_TOKENS clone WINDOW=2 TIMES=3 WRITES=4 EPOCHS=2
if [[ -n ${MODEL_LARGE:-} ]]; then
	start holds fence PROCESSES=2 WINDOW=2 TIMES=7 EPOCHS=5
	start holds fence PROCESSES=3 WINDOW=2 TIMES=5 EPOCHS=3
	start holds fence PROCESSES=2 ROWS=2 WINDOW=2 TIMES=4 EPOCHS=2
	start holds guard WINDOW=4 GUARD=1 TIMES=7 CLAIMS=2 EPOCHS=3
	start holds guard WINDOW=2 GUARD=1 TIMES=4 CLAIMS=2 EPOCHS=2 LATE
	start holds clone WINDOW=2 TIMES=4 WRITES=5 EPOCHS=2
fi
while ((running > 0)); do
	wait -n || failed=1
	running=$((running - 1))
done
((failed == 0)) || {
	echo 'FAILED: see above' >&2
	exit 1
}
echo 'every model as wanted'
