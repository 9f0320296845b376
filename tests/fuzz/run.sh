#!/bin/sh
# run.sh TARGET SECONDS: fuzzes with a copy of the target's corpus, so that what is found new
# stays in the build folder. A crash leaves its input beside the copy.
set -eu
target=$1
seconds=$2
name=$(basename "$target")
seeds=$(dirname "$0")/corpus/${name#fuzz_}
corpus=$target.corpus
mkdir -p "$corpus"
if [ -d "$seeds" ]; then
	cp -R "$seeds/." "$corpus/"
fi
exec "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	-artifact_prefix="$corpus/../$name." "$corpus"
