#!/usr/bin/env bash
# Resolve pyproject.toml and lab/pyproject.toml into requirements/, with hashes, for every platform:
# run (the image), lab (what roost-lab adds, calendars too), build (the wheels), dev (tests), docs (the documentation's site).
# demo.txt, for every program, is run and lab together. UPGRADE= keeps the versions that are locked.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
"$venv/bin/python" -m pip install --quiet "uv>=0.9"
resolve() {
  "$venv/bin/uv" pip compile --quiet ${UPGRADE---upgrade} --universal --python-version 3.11 --generate-hashes --no-header "$@"
}
resolve pyproject.toml --output-file requirements/run.txt
# roost itself comes from this checkout. The lab's image reads calendars, too.
"$venv/bin/python" -c 'import tomllib
project = tomllib.load(open("lab/pyproject.toml", "rb"))["project"]
needs = project["dependencies"] + project["optional-dependencies"]["calendar"]
print(*(need for need in needs if not need.startswith("roost==")), sep="\n")' \
  | resolve - --constraints requirements/run.txt --output-file requirements/lab.txt
resolve requirements/build.in --output-file requirements/build.txt
resolve pyproject.toml --extra dev --output-file requirements/dev.txt
resolve pyproject.toml --extra docs --output-file requirements/docs.txt
