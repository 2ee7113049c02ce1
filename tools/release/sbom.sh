#!/usr/bin/env bash
# List what is in the image $ROOST_IMAGE@$ROOST_DIGEST, as SPDX, into build/release/roost.spdx.json. Needs syft.
. "$(dirname "$0")/common.sh"
image=$(address image)
need "${SYFT:-syft}" "lists the image's contents"
mkdir -p "$output"
run "${SYFT:-syft}" scan "registry:$image@${ROOST_DIGEST:?}" --output "spdx-json=$output/roost.spdx.json"
