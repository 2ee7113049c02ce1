#!/usr/bin/env bash
# Tell which locked dependencies have known vulnerabilities; needs Go and the internet. Exit 1 if any has. --dry-run prints the command.
set -euo pipefail
cd "$(dirname "$0")/.."
run=()
case ${1:-} in
  "") ;;
  --dry-run) run=(echo +) ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "scan.sh: found argument $1, expected --dry-run or --help" >&2; exit 2 ;;
esac
lockfiles=()
for file in requirements/*.txt; do lockfiles+=("--lockfile=requirements.txt:$file"); done
export GOTOOLCHAIN=auto # the scanner may ask for a newer Go
"${run[@]}" go run github.com/google/osv-scanner/v2/cmd/osv-scanner@v2.6.0 scan source "${lockfiles[@]}" --lockfile=tools/pause/go.mod
