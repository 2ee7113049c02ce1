#!/usr/bin/env bash
# Continuous integration where the machine isn't Debian or its user isn't root, as on a forge's runners: tools/ci_test.sh
# on a clone of this checkout in Debian's own container. It is privileged, since real kubelets run in it. Needs docker.
# An argument is the target; --dry-run prints the command.
set -euo pipefail
cd "$(dirname "$0")/.."
# The newest Go is needed, which Debian doesn't have; everything else is Debian's.
image=golang:1.26-trixie
inside='
set -eu
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends git make python3 python3-venv util-linux
git config --global --add safe.directory "*"
git clone --quiet /checkout /roost
exec /roost/tools/ci_test.sh "$@"'
command=(docker run --rm --privileged --env ROOST_Z2JH_REVISION --env ROOST_BINDERHUB_REVISION)
command+=(--volume "$PWD:/checkout:ro" "$image" bash -c "$inside" ci)
case ${1:-test} in
  --dry-run) printf '+'; printf ' %q' "${command[@]}" "${@:2}"; echo ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" ;;
  -*) echo "ci_debian.sh: found option $1, expected --dry-run or --help" >&2; exit 2 ;;
  *)
    command -v docker >/dev/null || { echo "ci_debian.sh: no docker here. As root on Debian, tools/ci_test.sh does without" >&2; exit 1; }
    exec "${command[@]}" "$@"
    ;;
esac
