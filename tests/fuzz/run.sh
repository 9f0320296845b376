#!/bin/sh
# run.sh TARGET SECONDS: fuzzes the target, with a copy of its corpus, so that new inputs stay in
# the build folder. Each run begins with the corpus of the tree alone, so that FUZZ_SEED repeats
# it. Without FUZZ_SEED the seed is random. The seed is printed. If the target fails, the last
# lines have the input in base64, its path, and the command that repeats the failure.
set -eu
target=$1
seconds=$2
name=$(basename "$target")
seeds=$(dirname "$0")/corpus/${name#fuzz_}
corpus=$target.corpus
# libFuzzer takes 0 for "choose one".
seed=${FUZZ_SEED:-$(($(od -An -N4 -tu4 /dev/urandom) % 4294967295 + 1))}
failures=$target.failures/$seed

rm -rf "$corpus"
mkdir -p "$corpus" "$failures"
if [ -d "$seeds" ]; then
	cp -R "$seeds/." "$corpus/"
fi
echo "FUZZ_SEED=$seed"
status=0
"$target" -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
	-print_final_stats=1 -artifact_prefix="$failures/" "$corpus" || status=$?
if [ "$status" -ne 0 ]; then
	for input in "$failures"/*; do
		[ -f "$input" ] || continue
		echo "input, in base64: $(base64 -w0 "$input")"
		echo "input: $input"
		echo "repeat: $target $input"
	done
	echo "FUZZ_SEED=$seed failed"
fi
exit "$status"
