#!/usr/bin/env bash
# Build Roost's image for $ROOST_PLATFORMS (linux/amd64,linux/arm64) and push it to $ROOST_IMAGE, or to the address in
# release.toml, tagged with the version. Prints the values that name it by its digest; a workflow also gets the digest
# as an output. Needs Docker with buildx, and, for another processor's image, QEMU.
. "$(dirname "$0")/common.sh"
image=$(address image)
need docker "builds the image"
source_of_release
mkdir -p "$output"
run docker buildx build --platform "${ROOST_PLATFORMS:-linux/amd64,linux/arm64}" --push --provenance=mode=max --sbom=false \
  --tag "$image:$(version)" --metadata-file "$output/image.json" "$source"
digest=sha256:DIGEST
[ -n "$dry_run" ] || digest=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["containerimage.digest"])' "$output/image.json")
[ -z "${GITHUB_OUTPUT:-}" ] || printf 'name=%s\ndigest=%s\n' "$image" "$digest" >>"$GITHUB_OUTPUT"
echo "image: {name: $image, digest: \"$digest\"}"
