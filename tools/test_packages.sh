#!/usr/bin/env bash
# What the tests need besides Go: the recorder is tested on a real PostgreSQL, too; Roost's image is built from the
# Dockerfile. Installs it on Debian, as root, when missing.
# Elsewhere it says what is missing; the tests concerned are then skipped with that reason (with CI set: fail).
set -uo pipefail
missing=()
command -v ip >/dev/null || missing+=(iproute2) # pods' network
{ command -v initdb || ls /usr/lib/postgresql/*/bin/initdb; } >/dev/null 2>&1 || missing+=(postgresql)
# The recorder's report is looked at in a browser; without fonts there is no text to look at.
command -v chromium >/dev/null && command -v chromedriver >/dev/null || missing+=(chromium chromium-driver fonts-dejavu-core)
# npm fetches axe-core, which looks at pages as their readers' aids do.
command -v npm >/dev/null || missing+=(npm)
command -v buildah >/dev/null || missing+=(buildah)
command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
[ "${#missing[@]}" -gt 0 ] || exit 0
if [ "$(uname -s)" != Linux ]; then
  exit 0 # no real nodes there at all
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "test: installing Debian's ${missing[*]} for the tests" >&2
  if log=$({ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } 2>&1); then
    exit 0
  fi
  printf '%s\n' "$log" >&2
fi
echo "test: tests on real nodes, on PostgreSQL and of the image need ${missing[*]}. As root: apt-get install ${missing[*]}" >&2
[ -z "${CI:-}" ] # missing there means failed
