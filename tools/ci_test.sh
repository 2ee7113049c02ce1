#!/usr/bin/env bash
# What continuous integration runs on a fresh clone: every check and test, or another target of the Makefile. What can't
# run there fails instead of being skipped. --dry-run prints the command.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-test} in
  --dry-run) echo "+ CI=true make ${2:-test}" ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" ;;
  -*) echo "ci_test.sh: found option $1, expected --dry-run or --help" >&2; exit 2 ;;
  *) CI=true exec make "${1:-test}" ;;
esac
