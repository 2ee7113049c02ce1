#!/usr/bin/env bash
# Sign in to the registries of image and chart as $REGISTRY_USER with $REGISTRY_TOKEN: docker, helm and cosign.
. "$(dirname "$0")/common.sh"
image=$(address image) charts=$(address charts)
charts=${charts#oci://}
need docker "pushes the image"
need helm "pushes the chart"
for host in $(printf '%s\n' "${image%%/*}" "${charts%%/*}" | sort -u); do
  # cosign and syft read docker's settings.
  run docker login "$host" --username "${REGISTRY_USER:?}" --password-stdin <<<"${REGISTRY_TOKEN:?}"
  run helm registry login "$host" --username "$REGISTRY_USER" --password-stdin <<<"$REGISTRY_TOKEN"
done
