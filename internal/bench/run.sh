#!/usr/bin/env bash
# Runs the benchmarks round-robin on an idle machine, keeps the raw output, and
# writes the tables and the picture of docs/generator.md from it, or the tables of
# docs/segment-benchmarks.md.
#
#   ./run.sh                       5 rounds into results.txt, then the docs
#   ./run.sh segments              likewise for segments: segments.txt
#   ROUNDS=1 OUT=x.txt ./run.sh    one round, printed only
#
# ROUNDS   rounds, each of which runs every step once (5)
# OUT      raw output, for benchstat and the report; the docs are written only
#          when it is the default
# ADD      1: keep what OUT has, and run only the steps that it lacks; for a run
#          that was interrupted, or for more rounds. The machine, the versions and
#          the commit must be the same.
# BUSY     percent of all CPUs that others may use (10)
# PATIENCE seconds in all to spend on waiting for others and on repeating steps
#          that they disturbed (240)
set -euo pipefail
cd "$(dirname "$0")"
docs=$(cd ../../docs && pwd)

page=${1:-generator}
case $page in
generator) results=results.txt ;;
segments) results=segments.txt ;;
*) echo "want no argument, or segments: got $page" >&2; exit 2 ;;
esac
ROUNDS=${ROUNDS:-5}
OUT=${OUT:-$results}
BUSY=${BUSY:-10}
PATIENCE=${PATIENCE:-240}
ADD=${ADD:-}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The workspace is left out: what is measured is this module's own go.mod.
export GOWORK=off GIT_OPTIONAL_LOCKS=0
go test -c -o "$work/bench" .
[[ $page != generator ]] || GOTOOLCHAIN=go1.27.0 go test -c -o "$work/benchv2" .

# A step is: binary, -test.bench, -test.benchtime. Steps are short, so that a
# disturbed one costs little to repeat. What is compared with each other is within
# one step. Saturation runs for 2 s where the goal is 99.9 %, since a run is off by
# up to a tick.
steps=("bench ^BenchmarkNext\$ 100ms")
for c in 1 2 4 8 12 64; do
	steps+=("bench ^BenchmarkContention\$/^c=$c\$ 50ms")
done
for c in 1 2 8 64; do
	steps+=(
		"bench ^BenchmarkSaturation\$/alone/^c=$c\$/snowkey 8192000x"
		"bench ^BenchmarkSaturation\$/hogs/^c=$c\$/snowkey 8192000x"
		"bench ^BenchmarkSaturation\$/./^c=$c\$/(bwmarrin|sonyflake) 2048000x"
	)
done
steps+=(
	"bench ^BenchmarkLease\$ 100ms"
	"bench ^BenchmarkFill\$ 100ms"
	"bench ^Benchmark(Text|JSON)\$ 100ms"
	"benchv2 ^BenchmarkJSONv2\$ 100ms"
)
if [[ $page == segments ]]; then
	steps=()
	for c in 1 2 8 64; do
		steps+=("bench ^BenchmarkSegmentNext\$/^c=$c\$ 100x")
	done
	steps+=("bench ^BenchmarkSegmentFill\$ 500x" "bench ^BenchmarkArticle\$ 50ms" "bench ^TestSegmentLatencyInSimulatedTime\$ 1x")
	for store in 1ms 10ms 100ms; do
		steps+=("bench ^BenchmarkSegmentLatency\$/^store=$store\$ 1x")
	done
fi

# all prints the ticks of all CPUs: busy ones (stolen ones too), and all of them.
all() { awk '$1 == "cpu" { print $2+$3+$4+$7+$8+$9, $2+$3+$4+$5+$6+$7+$8+$9 }' /proc/stat; }

# own prints the busy ticks of this script and of what it has run.
own() { awk '{ print $14+$15+$16+$17 }' "/proc/$$/stat"; }

# others prints the percent of all CPUs that others have used since the three
# readings that it is given.
others() {
	local busy total mine
	read -r busy total < <(all)
	mine=$(own)
	awk -v b=$((busy - $1)) -v t=$((total - $2)) -v m=$((mine - $3)) \
		'BEGIN { p = t > 0 ? 100 * (b - m) / t : 0; printf("%.0f", (p > 0 ? p : 0)) }'
}

# quiet waits until others leave the machine alone, as long as there is patience.
spent=0
quiet() {
	local busy total mine used
	while :; do
		read -r busy total < <(all)
		mine=$(own)
		sleep 0.3
		used=$(others "$busy" "$total" "$mine")
		((used > BUSY)) || return 0
		if ((spent >= PATIENCE * 1000)); then
			((given_up)) || echo "# gate given up: $PATIENCE s were spent, others use $used %" | tee -a "$OUT" >&2
			given_up=1
			return 0
		fi
		spent=$((spent + 300))
	done
}
given_up=0

# run runs BINARY with PATTERN and BENCHTIME into FILE, and sets used to what
# others used meanwhile.
run() {
	local busy total mine
	read -r busy total < <(all)
	mine=$(own)
	local what=(-test.run '^$' -test.bench "$2" -test.benchtime "$3")
	[[ $2 != ^Test* ]] || what=(-test.run "$2" -test.v)
	"$work/$1" -test.count 1 "${what[@]}" >"$4"
	used=$(others "$busy" "$total" "$mine")
}

{
	echo "go: $(go version | cut -d' ' -f3-)"
	echo "cores: $(nproc)"
	echo "kernel: $(uname -sr)"
	echo "commit: $(git rev-parse --short HEAD)$(git diff --quiet HEAD -- ../../core ../../types || echo ' with changes in core or types')"
	echo "peers: $(go list -m -f '{{if not (or .Main .Replace)}}{{.Path}} {{.Version}}{{end}}' all | grep -F -f <(sed -n 's/^\t\(github[^ ]*\) .*/\1/p' go.mod) | paste -sd, | sed 's/,/, /g')"
} >"$work/header"
if [[ $ADD && -s $OUT ]]; then
	if ! grep -E '^(go|cores|kernel|commit|peers): ' "$OUT" | diff - "$work/header" >&2; then
		echo "$OUT comes from another machine or other versions: run without ADD" >&2
		exit 1
	fi
else
	{
		echo "date: $(date -u +%Y-%m-%d)"
		cat "$work/header"
	} >"$OUT"
fi

for round in $(seq "$ROUNDS"); do
	for step in "${steps[@]}"; do
		read -r binary pattern benchtime <<<"$step"
		! grep -qF "# round $round, $pattern:" "$OUT" || continue
		quiet
		run "$binary" "$pattern" "$benchtime" "$work/step"
		least=$used
		for _ in 1 2; do # repeat a disturbed step, and keep the quietest
			((least > BUSY && spent < PATIENCE * 1000)) || break
			quiet
			started=$SECONDS
			run "$binary" "$pattern" "$benchtime" "$work/again"
			spent=$((spent + 1000 * (SECONDS - started)))
			if ((used < least)); then
				least=$used
				mv "$work/again" "$work/step"
			fi
		done
		echo "# round $round, $pattern: others used $least % of the CPUs"
		cat "$work/step"
	done >>"$OUT"
	echo "round $round of $ROUNDS done" >&2
done

if [[ $OUT == results.txt ]]; then
	go run ./report -doc "$docs/generator.md" -svg "$docs/generator.svg" "$OUT"
elif [[ $OUT == segments.txt ]]; then
	go run ./report -doc "$docs/segment-benchmarks.md" "$OUT"
else
	go run ./report "$OUT"
fi
