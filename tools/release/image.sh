#!/usr/bin/env bash
# Build the images of Roost and of roost-lab for $ROOST_PLATFORMS (linux/amd64,linux/arm64) and push them to $ROOST_IMAGE, or
# to the address in release.toml, and to the same with -lab, tagged with the version. Prints the values that name them by
# their digests; a workflow also gets the digests as outputs. Needs Docker with buildx, and, for another processor's
# image, QEMU.
. "$(dirname "$0")/common.sh"
image=$(address image)
need docker "builds the images"
source_of_release
mkdir -p "$output"
# push TARGET NAME: builds and pushes one; sets `digest`.
push() {
  run docker buildx build --target "$1" --platform "${ROOST_PLATFORMS:-linux/amd64,linux/arm64}" --push --provenance=mode=max \
    --sbom=false --tag "$2:$(version)" --metadata-file "$output/$1.json" "$source"
  digest=sha256:DIGEST
  [ -n "$dry_run" ] || digest=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["containerimage.digest"])' "$output/$1.json")
}
push roost "$image"
of_roost=$digest
push roost-lab "$image-lab"
[ -z "${GITHUB_OUTPUT:-}" ] || printf 'name=%s\ndigest=%s\nlab_digest=%s\n' "$image" "$of_roost" "$digest" >>"$GITHUB_OUTPUT"
echo "image: {name: $image, digest: \"$of_roost\"}"
echo "recorder: {image: {name: $image-lab, digest: \"$digest\"}}"
