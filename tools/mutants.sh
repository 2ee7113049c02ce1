#!/usr/bin/env bash
# Each night: change decisions and templates one place at a time (tools/mutate.py), other places each day. Exit 1 where the tests
# notice fewer than 95 % of a part's changes. Arguments are those of tools.mutate.
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python -m tools.mutate --floor 95 --minutes 20 --seed "$(date +%Y%m%d)" "$@"
