#!/usr/bin/env bash
# Continuous integration where the machine isn't Debian or its user isn't root, as on a forge's runners: `make test`, or the
# target that is named, on a clone of this checkout in Debian's own container. It is privileged, since real kubelets run in
# it. Needs docker; as root on Debian, `CI=true make test` does without. What can't run fails, because CI is set.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-test} in
  -*) echo "ci_debian.sh: found option $1, expected a target of the Makefile, or nothing" >&2; exit 2 ;;
esac
# The newest Go is needed, which Debian doesn't have; everything else is Debian's.
image=golang:1.26-trixie
inside='
set -eu
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends git make python3 python3-venv util-linux
git config --global --add safe.directory "*"
git clone --quiet /checkout /roost
cd /roost
exec make "$1"'
exec docker run --rm --privileged --env CI=true --env ROOST_Z2JH_REVISION --env ROOST_BINDERHUB_REVISION \
  --volume "$PWD:/checkout:ro" "$image" bash -c "$inside" ci "${1:-test}"
