#!/usr/bin/env bash
# Roost in kind: kind_test.sh MINOR, such as 1.37. Builds the image, makes a cluster of the newest kind node image of that
# minor, installs the chart with its defaults, waits until all of it is Ready, runs `helm test`, uninstalls. Needs docker,
# kind, kubectl and helm. The cluster is called roost-MINOR, and is deleted at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
minor=${1:?"found no minor, expected one such as 1.37"}
tag=$(.venv/bin/python -m tools.newer_versions --newest docker.io/kindest/node "v$minor.")
version=$(sed -n 's/^appVersion: //p' chart/Chart.yaml)
cluster=roost-$minor
context=(--kube-context "kind-$cluster" --namespace roost)
docker build --tag "roost:$version" .
trap 'kind delete cluster --name "$cluster"' EXIT
kind create cluster --name "$cluster" --image "kindest/node:$tag" --wait 120s
kind load docker-image "roost:$version" --name "$cluster"
helm install roost chart "${context[@]}" --create-namespace --wait --timeout 10m
helm test roost "${context[@]}" --timeout 5m
helm uninstall roost "${context[@]}" --wait --timeout 5m
