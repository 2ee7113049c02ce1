#!/usr/bin/env bash
# `make test`: the checks; the tests that need nothing built, while the control plane is built; then the others. Says
# at the end what failed, and what was skipped and why.
set -uo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
logs=build/test
failed=0
mkdir -p "$logs"
rm -f "$logs"/*.log

# run_tests LOG WORKERS MARKERS ARGUMENT...: -ra lists every skip with its reason; loadfile keeps one file's control plane in one process.
run_tests() {
  local log=$logs/$1.log workers=$2 markers=$3
  shift 3
  "$python" -m pytest -n "$workers" --dist loadfile --no-loadscope-reorder -m "not minors and not hub_day $markers" -ra --durations=20 "$@" 2>&1 |
    tee "$log"
}

build() {
  if command -v go >/dev/null; then
    nice "$python" -m tests.harness build "$@"
  else
    echo "test: Go is missing, so the real control plane can't be built; its tests are skipped, with this reason."
  fi
}

# show_if_failed JOB LOG
show_if_failed() {
  wait "$1" && return
  cat "$logs/$2.log" >&2
  failed=1
}

trap 'exit 130' INT TERM # pytest takes an interrupt for itself
tools/check.sh || failed=1
tools/test_packages.sh || failed=1
# Each program is built once: a test that needs one waits for it. Nearly all need the control plane, so they start
# when it's there, and leave much of the processors to the remaining builds.
set -m # process groups of their own, so that Ctrl-C ends compilers too
build etcd kube-apiserver kube-scheduler kube-controller-manager kubectl >"$logs/control-plane.log" 2>&1 &
control_plane=$!
# Where the image can't be built, its tests say so.
nice "$python" -m tools.image >"$logs/image.log" 2>&1 &
imaging=$!
set +m
building=
trap 'kill -- "-$control_plane" ${building:+"-$building"} "-$imaging" 2>/dev/null' EXIT
run_tests unit "${WORKERS:-2}" "" tests/unit tests/properties lab/tests/unit lab/tests/properties --ignore tests/properties/together || failed=1
run_tests judge "${WORKERS:-2}" "" tests/properties/together --dist load || failed=1
if kill -0 "$control_plane" 2>/dev/null; then
  echo "test: waiting for the control plane to be built; see $logs/control-plane.log" >&2
fi
show_if_failed "$control_plane" control-plane
set -m
build >"$logs/build.log" 2>&1 &
building=$!
set +m
# These wait for other programs at times: three processes keep two cores busy.
run_tests e2e "${WORKERS:-3}" "and not alone" tests/e2e lab/tests/e2e tests/parity || failed=1
run_tests alone 1 "and alone" tests/e2e lab/tests/e2e tests/parity || failed=1
show_if_failed "$building" build
wait "$imaging" # or a build container would stay behind

echo "test: summary"
grep -hE '^(FAILED|ERROR|SKIPPED|XFAIL|XPASS) |^=+ .* in [0-9.]+s' "$logs"/{unit,judge,e2e,alone}.log
grep '^test: ' "$logs/build.log"
[ $failed = 0 ] && echo "test: ok" || echo "test: FAILED"
exit $failed
