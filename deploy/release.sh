#!/bin/sh
# release.sh notes VERSION     prints the section of a version in CHANGELOG.md
# release.sh check VERSION     says what is missing for its release; status 1 if anything is
# release.sh collect VERSION FOLDER FILE...   puts the files, notes and checksums into the folder
#
# `make release` calls it, in the top of the tree, with the suites of the night in NIGHT, and with
# NOT_RUN=1 if suites that a machine could not run may be missing; the notes list them then. It
# signs nothing, publishes nothing, and changes nothing but the folder, which it makes anew.
set -eu

fail() {
	echo "release.sh: $*" >&2
	exit 1
}

notes() {
	awk -v version="$1" '
		/^## / { inside = index($0, "## [" version "]") == 1; next }
		inside { print }' CHANGELOG.md | sed -e '/./,$!d'
}

check() {
	[ -z "$(git status --porcelain)" ] ||
		fail "the tree has changes that are not committed: commit them, or take them back"
	[ "$(cat VERSION)" = "$1" ] || fail "VERSION does not say $1"
	[ -n "$(notes "$1")" ] ||
		fail "CHANGELOG.md has no section '## [$1]': give what is unreleased this title"
	tests/deb/agree.py >/dev/null || fail "debian/ contradicts the tree: tests/deb/agree.py"
	! grep -q "^[^#]" tests/unstable || fail "tests/unstable lists drills: make them pass"
	# shellcheck disable=SC2086
	tests/night.py missing ${NOT_RUN:+--not-run} ${NIGHT:-none} >&2 ||
		fail "suites of the night are missing: run 'make check-night', or 'make release" \
			"NOT_RUN=1' without those that a machine could not run"
}

# Whoever has the folder is to unpack and to check what a .dsc or a .changes lists.
check_listed() {
	for list in *.dsc *.changes; do
		[ -f "$list" ] || continue
		sed -n '/^Checksums-Sha256:/,/^[^ ]*:/ s/^ \([0-9a-f]*\) [0-9]* /\1  /p' "$list" |
			sha256sum --quiet -c - || fail "$list lists what is not here"
	done
}

collect() {
	version=$1
	folder=$2
	shift 2
	rm -rf "$folder"
	mkdir -p "$folder"
	cp "$@" "$folder"
	notes "$version" >"$folder/NOTES.md"
	# shellcheck disable=SC2086
	tests/night.py not-run ${NIGHT:-none} |
		sed -e '1i\### Not tested' -e 's/^/- /' >>"$folder/NOTES.md"
	(
		cd "$folder"
		check_listed
		LC_ALL=C sha256sum -- * >../SHA256SUMS.new
		mv ../SHA256SUMS.new SHA256SUMS
	)
	echo "$folder: to sign it: gpg --armor --detach-sign $folder/SHA256SUMS"
}

[ $# -ge 2 ] || fail "usage: release.sh notes|check|collect VERSION ..."
what=$1
shift
case $what in
notes | check) "$what" "$1" ;;
collect) [ $# -ge 3 ] || fail "collect needs a folder and files"; collect "$@" ;;
*) fail "no such step: $what" ;;
esac
