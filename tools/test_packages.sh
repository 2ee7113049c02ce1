#!/usr/bin/env bash
# What the tests' real nodes need besides Go: runc is linked with libseccomp. Installs it on Debian, as root, when missing.
# Elsewhere it says what is missing; the tests concerned are then skipped with that reason (with CI set: fail).
set -uo pipefail
missing=()
command -v gcc >/dev/null || command -v cc >/dev/null || missing+=(gcc libc6-dev)
command -v pkg-config >/dev/null || missing+=(pkg-config)
{ command -v pkg-config >/dev/null && pkg-config --exists libseccomp; } || missing+=(libseccomp-dev)
[ "${#missing[@]}" -gt 0 ] || exit 0
if [ "$(uname -s)" != Linux ]; then
  exit 0 # no real nodes there at all
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "test: installing Debian's ${missing[*]} for the tests on real nodes" >&2
  if log=$({ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } 2>&1); then
    exit 0
  fi
  printf '%s\n' "$log" >&2
fi
echo "test: the tests on real nodes need ${missing[*]}. As root: apt-get install ${missing[*]}" >&2
[ -z "${CI:-}" ] # missing there means failed
