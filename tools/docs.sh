#!/usr/bin/env bash
# Build the documentation: tools/docs.sh [html|linkcheck], into build/docs or build/linkcheck. Warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."
builder=${1:-html}
case $builder in
  html) output=build/docs ;;
  linkcheck) output=build/linkcheck ;;
  -h | --help) sed -n '2s/^# //p' "$0"; exit 0 ;;
  *) echo "docs: found builder $builder, expected html or linkcheck" >&2; exit 2 ;;
esac
sphinx=.venv/bin/sphinx-build
[ -x "$sphinx" ] || sphinx=sphinx-build # Read the Docs has an environment of its own
pages=build/pages # Sphinx reads one folder: the lab's pages become its folder lab
rm -rf "$output" "$pages"
mkdir -p build
cp -r docs "$pages"
cp -r lab/docs "$pages/lab"
"$sphinx" --quiet --fail-on-warning --keep-going --conf-dir docs --builder "$builder" "$pages" "$output"
echo "$output/$([ "$builder" = html ] && echo index.html || echo output.txt)"
