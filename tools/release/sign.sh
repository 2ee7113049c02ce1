#!/usr/bin/env bash
# Sign the images $ROOST_IMAGE@$ROOST_DIGEST and $ROOST_IMAGE-lab@$ROOST_LAB_DIGEST without a key, and attach their lists of
# contents (sbom.sh's) as signed statements. Needs cosign, and an identity that the forge gives to a workflow (id-token).
. "$(dirname "$0")/common.sh"
image=$(address image)
need cosign "signs"
sign() {
  run cosign sign --yes "$1"
  run cosign attest --yes --type spdxjson --predicate "$output/$2.spdx.json" "$1"
}
sign "$image@${ROOST_DIGEST:?}" roost
sign "$image-lab@${ROOST_LAB_DIGEST:?}" roost-lab
