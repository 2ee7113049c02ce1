#!/usr/bin/env bash
# Package the chart with the addresses of this release, push it to $ROOST_CHARTS, or to the address in release.toml, and
# sign it without a key where cosign is there. $HELM is the program (helm); $HELM_PUSH_FLAGS go to its push.
. "$(dirname "$0")/common.sh"
helm=${HELM:-helm}
charts=$(address charts)
need "$helm" "packages the chart"
source_of_release
mkdir -p "$output"
run "$helm" lint --strict "$source/chart"
run "$helm" package "$source/chart" --destination "$output"
# shellcheck disable=SC2086 - several flags
said=$(run "$helm" push "$output/roost-$(version).tgz" "$charts" ${HELM_PUSH_FLAGS:-} 2>&1) || { echo "$said" >&2; exit 1; }
echo "$said"
digest=$(sed -n 's/^Digest: //p' <<<"$said")
if [ -n "${ROOST_SIGN:-}" ]; then
  need cosign "signs"
  run cosign sign --yes "${charts#oci://}/roost@${digest:-sha256:DIGEST}"
fi
