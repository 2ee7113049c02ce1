#!/usr/bin/env bash
# Roost in kind: kind_test.sh MINOR [--dry-run], such as 1.37. Builds the image, makes a cluster of the newest kind node
# image of that minor, installs the chart with its defaults, waits until all of it is Ready, runs `helm test`, uninstalls.
# Needs docker, kind, kubectl and helm. The cluster is called roost-MINOR, and is deleted at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
minor='' dry_run=''
for argument in "$@"; do
  case $argument in
    --dry-run) dry_run=1 ;;
    -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    [0-9]*.[0-9]*) minor=$argument ;;
    *) echo "kind_test.sh: found argument $argument, expected a minor such as 1.37, --dry-run or --help" >&2; exit 2 ;;
  esac
done
[ -n "$minor" ] || { echo "kind_test.sh: found no minor, expected one such as 1.37" >&2; exit 2; }
run() {
  if [ -n "$dry_run" ]; then printf '+'; printf ' %q' "$@"; echo; else "$@"; fi
}
python=.venv/bin/python
[ -x "$python" ] || python=python3
tag=v$minor.PATCH
if [ -z "$dry_run" ]; then
  for program in docker kind kubectl helm; do
    command -v "$program" >/dev/null || { echo "kind_test.sh: no $program here" >&2; exit 1; }
  done
  tag=$("$python" -m tools.newer_versions --newest "docker.io/kindest/node" "v$minor.")
fi
version=$(sed -n 's/^appVersion: //p' chart/Chart.yaml)
cluster=roost-$minor
context=(--kube-context "kind-$cluster" --namespace roost)
run docker build --tag "roost:$version" .
trap 'run kind delete cluster --name "$cluster"' EXIT
run kind create cluster --name "$cluster" --image "kindest/node:$tag" --wait 120s
run kind load docker-image "roost:$version" --name "$cluster"
run helm install roost chart "${context[@]}" --create-namespace --wait --timeout 10m
run helm test roost "${context[@]}" --timeout 5m
run helm uninstall roost "${context[@]}" --wait --timeout 5m
