#!/usr/bin/env bash
# Sign the image $ROOST_IMAGE@$ROOST_DIGEST without a key, and attach its list of contents (sbom.sh's) as a signed
# statement. Needs cosign, and an identity that the forge gives to a workflow (id-token).
. "$(dirname "$0")/common.sh"
image=$(address image)
need cosign "signs"
run cosign sign --yes "$image@${ROOST_DIGEST:?}"
run cosign attest --yes --type spdxjson --predicate "$output/roost.spdx.json" "$image@$ROOST_DIGEST"
