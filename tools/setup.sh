#!/usr/bin/env bash
# Make the virtual environment $1 with the locked dependencies of $2: demo (the programs) or dev (the tests, too).
# On a Debian machine, as root, installs what Python lacks.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
venv=$1 set=$2
cd "$(dirname "$0")/.."

python=""
for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
  [ -n "$candidate" ] || continue
  if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing Debian's python3 and python3-venv" >&2
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3 python3-venv >&2
    python=python3
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "setup: found $($python --version), need Python 3.11 or newer." >&2; exit 2; }
  else
    echo "setup: found no Python 3.11 or newer. Install one, or name it: PYTHON=/path/to/python3 make setup" >&2
    exit 2
  fi
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing Debian's python3-venv" >&2
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >&2
  else
    echo "setup: $python has no venv module. As root: apt-get install python3-venv" >&2
    exit 2
  fi
fi

# A link is somebody's own choice: left alone, if there is an environment behind it.
[ ! -L "$venv" ] || [ ! -x "$venv/bin/python" ] || { echo "setup: $venv is a link: left as it is" >&2; exit 0; }
started=$SECONDS
echo "setup: virtual environment in $venv with locked dependencies" >&2
"$python" -m venv --clear "$venv"
# Bytecode is made of what is imported, when it is: that halves the time.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r "requirements/$set.txt" -r requirements/build.txt
# The build backend is locked too: nothing unlocked is fetched. The laboratory's commands are found once it is installed.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e lab
echo "setup: done in $((SECONDS - started)) s" >&2
