#!/usr/bin/env bash
# Everything that can be said without running the programs: style, types, import directions, freshness of generated files.
set -uo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin
failed=0
run() {
  local title=$1 started=$SECONDS
  shift
  if output=$("$@" 2>&1); then
    printf 'ok    %-28s %3d s\n' "$title" $((SECONDS - started))
  else
    printf 'FAIL  %-28s %3d s\n%s\n' "$title" $((SECONDS - started)) "$output"
    failed=1
  fi
}
run "ruff check" "$bin/ruff" check .
run "ruff format" "$bin/ruff" format --check .
run "mypy --strict" "$bin/mypy"
run "import directions" "$bin/lint-imports"
run "arguments are fresh" "$bin/python" -m tools.write_arguments --check
run "chart is fresh" "$bin/python" -m tools.write_chart --check
run "docs/values.md is fresh" "$bin/python" -m tools.write_values_reference --check
run "chart's README is fresh" "$bin/python" -m tools.write_chart_pages --check
run "pages of the command line are fresh" "$bin/python" -m tools.write_command_line --check
run "sentences and words" "$bin/python" -m tools.check_prose
run "figures of pages are fresh" "$bin/python" -m tools.write_figures --check
# Five seconds, from scratch: a page that is not read again repeats no warning. `make setup` installs Sphinx.
[ ! -x "$bin/sphinx-build" ] || run "documentation" tools/docs.sh
exit $failed
