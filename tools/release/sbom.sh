#!/usr/bin/env bash
# List what is in the images $ROOST_IMAGE@$ROOST_DIGEST and $ROOST_IMAGE-lab@$ROOST_LAB_DIGEST, as SPDX, into
# build/release/roost.spdx.json and roost-lab.spdx.json. Needs syft.
. "$(dirname "$0")/common.sh"
image=$(address image)
need "${SYFT:-syft}" "lists the images' contents"
mkdir -p "$output"
run "${SYFT:-syft}" scan "registry:$image@${ROOST_DIGEST:?}" --output "spdx-json=$output/roost.spdx.json"
run "${SYFT:-syft}" scan "registry:$image-lab@${ROOST_LAB_DIGEST:?}" --output "spdx-json=$output/roost-lab.spdx.json"
