#!/usr/bin/env bash
# `make test`: the checks, then every test, the real control plane included. Says at the end what was skipped and why.
set -uo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
failed=0

tools/check.sh || failed=1

if command -v go >/dev/null; then
  tools/test_packages.sh || failed=1
  "$python" -m tests.harness build || failed=1
else
  echo "test: Go is missing, so the real control plane can't be built; its tests are skipped below, with this reason." >&2
fi

# -ra lists every skip with its reason. loadfile keeps one file's control plane in one process.
"$python" -m pytest -n "${WORKERS:-2}" --dist loadfile -m "not minors" tests || failed=1
exit $failed
