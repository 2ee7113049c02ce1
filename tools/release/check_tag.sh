#!/usr/bin/env bash
# Whether the tag $GITHUB_REF_NAME is the version that pyproject.toml, the chart and the change log say.
. "$(dirname "$0")/common.sh"
tag=${GITHUB_REF_NAME:?"check_tag.sh: set GITHUB_REF_NAME to the tag, such as v0.2.0"}
"$python" -m tools.release.version --tag "$tag"
