#!/usr/bin/env bash
# The functions of transport and the root package that one plain RoundTrip enters, in order, with their files. Run it in the module's root.
set -euo pipefail
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
for f in $(ls *.go transport/*.go | grep -v _test.go); do
  mkdir -p "$tmp/$(dirname "$f")"
  sed -E "s|^(func (\([^)]*\) )?([A-Za-z]+).*\{)\$|\1 println(\"walk $f \3\")|; s|^(func (\([^)]*\) )?([A-Za-z]+).*[^{]\{) (.*\})\$|\1 println(\"walk $f \3\"); \4|" "$f" > "$tmp/$f"
  echo "\"$PWD/$f\": \"$tmp/$f\","
done | sed '$ s/,$//; 1 s/^/{"Replace": {/; $ s/$/}}/' > "$tmp/overlay.json"
PACELINE_WALK=1 go test -v -overlay "$tmp/overlay.json" -count=1 -run '^TestPlainRoundTrip$' ./transport 2>&1 | sed -n '/^mark/,/^mark/p' | grep '^walk' | sed 's/^walk //'
