#!/usr/bin/env bash
# What continuous integration runs: every check and test on a fresh clone. What can't run there fails instead of being
# skipped. --dry-run prints the command.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  "") CI=true exec make test ;;
  --dry-run) echo "+ CI=true make test" ;;
  -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" ;;
  *) echo "ci_test.sh: found argument $1, expected --dry-run or --help" >&2; exit 2 ;;
esac
