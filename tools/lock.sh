#!/usr/bin/env bash
# Resolve pyproject.toml into requirements/, with hashes, for every platform:
# run (the image), demo (every program), build (the wheel), dev (tests), docs (the documentation's site).
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
"$venv/bin/python" -m pip install --quiet "uv>=0.9"
resolve() {
  "$venv/bin/uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header "$@"
}
resolve pyproject.toml --extra record --output-file requirements/run.txt
# What `make demo` shows.
resolve pyproject.toml --extra record --extra simulate --output-file requirements/demo.txt
resolve requirements/build.in --output-file requirements/build.txt
resolve pyproject.toml --extra dev --output-file requirements/dev.txt
resolve pyproject.toml --extra docs --output-file requirements/docs.txt
