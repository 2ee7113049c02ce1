#!/usr/bin/env bash
# Make the forge's release of the tag $GITHUB_REF_NAME: the change log's section as its text, and the files that krew.sh
# made to download. Needs gh, with GH_TOKEN.
. "$(dirname "$0")/common.sh"
need gh "makes the forge's release"
tag=${GITHUB_REF_NAME:?"forge.sh: set GITHUB_REF_NAME to the tag, such as v0.2.0"}
mkdir -p "$output"
version=$(version)
sed "1,/^## ${version//./\\.}/d; /^## /,\$d" CHANGELOG.md >"$output/changes.md"
run gh release create "$tag" --verify-tag --title "Roost $version" --notes-file "$output/changes.md" \
  "$output/krew/kubectl-roost.tar.gz" "$output/krew/roost.yaml"
