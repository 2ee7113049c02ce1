# `make demo` shows Roost at work; `make quick`, `make check` and `make test` are the loops of those who change it.
# Each sets up what it needs. All targets: `make help`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
# What the programs need and no more. The developers' environment holds it, too.
DEMO_STAMP := $(VENV)/.installed-demo
# Processes of the test run; two cores carry two control planes well.
WORKERS ?= 2
export PYTHONWARNINGS ?=

.PHONY: help setup demo quick test check sizes unit judge parity e2e test-install test-hub test-minors image release generated figures docs docs-links lock bench clean

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## virtual environment with the locked dependencies
$(STAMP): requirements/dev.txt pyproject.toml lab/pyproject.toml tools/setup.sh
	@tools/setup.sh $(VENV) dev
	@touch $@ $(DEMO_STAMP)
$(DEMO_STAMP): requirements/demo.txt requirements/build.txt tools/setup.sh
# A developer's environment has all that the demo needs, and keeps its tools.
	@[ -e $(STAMP) ] || tools/setup.sh $(VENV) demo
	@touch $@

demo: $(DEMO_STAMP)  ## see Roost work, with Python alone: render, admit, place, record, and a replay to play in a browser; HUB=hub.yaml: what your hub would gain
	@$(PY) -m tools.demo $(HUB)

quick: setup  ## ruff, import directions, the fast unit tests of the rooms that changed since main; under 40 s
	@$(PY) -m tools.quick

test: setup  ## every check and every test; those that need nothing built run first
	@tools/test.sh

check: setup  ## ruff, mypy, import directions, freshness of generated files
	@tools/check.sh

sizes: setup  ## how large each room is, in characters, beside the last release's
	@$(PY) -m tools.sizes $(REVISION)

unit: setup  ## the tests that need no cluster, but for the judge's thousands of cases
	@$(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder tests/unit tests/properties lab/tests/unit lab/tests/properties --ignore tests/properties/together

judge: setup  ## who fares worse with Roost, in thousands of drawn cases in the scheduler's model
	@$(PY) -m pytest -n $(WORKERS) tests/properties/together

parity: setup  ## the chart against `roost render`, with real helm
	@$(PY) -m pytest -n $(WORKERS) tests/parity -m "not minors"

e2e: setup  ## the tests on the real control plane
	@$(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder tests/e2e lab/tests/e2e -m "not minors and not hub_day"

test-install: setup  ## Roost installed by Helm on a real kubelet, with its figures
	@tools/test_packages.sh
	@$(PY) -m tests.harness build
	@$(PY) -m pytest -s tests/e2e/install/test_install.py

test-hub: setup  ## zero-to-jupyterhub's and BinderHub's charts with Roost on real kubelets, with its figures; ROOST_Z2JH, ROOST_BINDERHUB: clones
	@tools/test_packages.sh
	@$(PY) -m tests.harness build
	@$(PY) -m pytest -s -m hub_day tests/e2e/hub

test-minors: setup  ## what depends on Kubernetes' version, on every supported minor; builds all of them first
	@$(PY) -m tests.harness build --all-minors
	@$(PY) -m pytest -m "minors or each_minor" tests

image: setup  ## the Dockerfile's two images, built by buildah over Debian's Python, into build/roost.tar and build/roost-lab.tar
	@$(PY) -m tools.image

release: $(DEMO_STAMP)  ## wheels, images, chart, lists of contents, checksums and notes into dist/; tools/publish REGISTRY pushes them
	@$(PY) -m tools.release.build $(if $(ENGINE),--engine $(ENGINE)) $(if $(PLATFORM),--platform $(PLATFORM))

generated: setup  ## write the generated files again (arguments of programs, chart/templates, chart/README.md, docs/values.md, docs/command-line.md, figures and tables of pages)
	@$(PY) -m tools.write_arguments
	@$(PY) -m tools.write_chart
	@$(PY) -m tools.write_values_reference
	@$(PY) -m tools.write_chart_pages
	@$(PY) -m tools.write_command_line
	@$(PY) -m tools.write_drawings
	@$(PY) -m tools.write_figures

figures: setup  ## measure the figures of replays whose code changed since, hours of them, and write them into the pages
	@$(PY) -m benchmarks.results
	@$(PY) -m tools.write_figures

docs: setup  ## the documentation as a site, into build/docs; warnings are errors
	@tools/docs.sh

docs-links: setup  ## whether the addresses that the documentation links to answer; needs the internet
	@tools/docs.sh linkcheck

lock:  ## resolve requirements/*.txt anew from pyproject.toml
	@tools/lock.sh $(VENV)

bench: setup  ## the benchmarks of the performance pages; figures go to docs/performance.md by hand
	@for name in equality admission render scheduling controllers recorder recorder_report simulator; do $(PY) -m benchmarks.$$name || exit 1; done
bench-%: setup
	@$(PY) -m benchmarks.$*

clean:  ## remove the virtual environment and caches of the checkout (not the per-user binary cache)
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
