# Sourced by the scripts of this folder, never run: their arguments, the addresses, and `run`.
# --help prints the comment at a script's head; --dry-run prints the commands that would change something.
set -euo pipefail
self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
dry_run=
for argument in "$@"; do
  case $argument in
    --dry-run) dry_run=1 ;;
    -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$self"; exit 0 ;;
    *) echo "$(basename "$0"): found argument $argument, expected --dry-run or --help" >&2; exit 2 ;;
  esac
done
python=.venv/bin/python
[ -x "$python" ] || python=python3
output=${ROOST_OUTPUT:-$PWD/build/release} # an absolute path
# run COMMAND ARGUMENT...: does it, or with --dry-run says what it would do.
run() {
  if [ -n "$dry_run" ]; then printf '+'; printf ' %q' "$@"; echo; else "$@"; fi
}
# need PROGRAM WHAT_FOR: stops with what to install.
need() {
  [ -n "$dry_run" ] || command -v "$1" >/dev/null || { echo "$(basename "$0"): no $1 here, which $2" >&2; exit 1; }
}
# address NAME: one of release.toml, or the environment's; stops where it isn't known.
address() { "$python" -m tools.release.addresses "$1"; }
version() { "$python" -m tools.release.version; }
# source_of_release: the checkout's tracked files with the addresses filled in; sets `source`.
source_of_release() {
  source=$output/source
  "$python" -m tools.release.fill "$source" >/dev/null
}
