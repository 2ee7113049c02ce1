#!/usr/bin/env bash
# `make test`: the checks; the tests that need nothing built, while what the others need is built; then those. Says at
# the end what failed, and what was skipped and why.
set -uo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
logs=build/test
failed=0
mkdir -p "$logs"
rm -f "$logs"/*.log

# run_tests LOG ARGUMENT...: -ra lists every skip with its reason; loadfile keeps one file's control plane in one process.
run_tests() {
  local log=$logs/$1.log
  shift
  "$python" -m pytest -n "${WORKERS:-2}" --dist loadfile --no-loadscope-reorder -m "not minors" -ra --durations=20 "$@" 2>&1 |
    tee "$log"
}

build_programs() {
  if ! command -v go >/dev/null; then
    echo "test: Go is missing, so the real control plane can't be built; its tests are skipped, with this reason."
    return 0
  fi
  nice "$python" -m tests.harness build
}

tools/check.sh || failed=1
tools/test_packages.sh || failed=1
set -m # process groups of their own, so that Ctrl-C ends compilers too
build_programs >"$logs/build.log" 2>&1 &
building=$!
# Tests that need the image wait for it; where it can't be built, they say so.
nice "$python" -m tools.image >"$logs/image.log" 2>&1 &
imaging=$!
set +m
trap 'kill -- "-$building" "-$imaging" 2>/dev/null' EXIT
run_tests unit tests/unit tests/properties || failed=1
if kill -0 "$building" 2>/dev/null; then
  echo "test: waiting for programs to be built; see $logs/build.log" >&2
fi
if ! wait "$building"; then
  cat "$logs/build.log" >&2
  failed=1
fi
run_tests e2e tests/e2e tests/parity || failed=1

echo "test: summary"
grep -hE '^(FAILED|ERROR|SKIPPED|XFAIL|XPASS) |^=+ .* in [0-9.]+s' "$logs"/{unit,e2e}.log
grep -h '^test: ' "$logs/build.log"
[ $failed = 0 ] && echo "test: ok" || echo "test: FAILED"
exit $failed
