#!/usr/bin/env bash
# Build the wheels of roost and roost-lab with the addresses of this release, into build/release/dist; PyPI's own action
# publishes that folder.
. "$(dirname "$0")/common.sh"
source_of_release
dist=$output/dist
run rm -rf "$dist"
# hatchling asks git what to leave out: the copy is no checkout, and has tracked files only.
program=$(command -v "$PWD/$python" || command -v "$python")
for folder in "$source" "$source/lab"; do
  (cd "$folder" && run "$program" -m hatchling build --target wheel --directory "$dist")
done
[ -n "$dry_run" ] || ls "$dist"
