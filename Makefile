# Every act of a developer, and of CI. `make` alone lists them.
#
# Needs Python 3.11 or newer and, for containers, a running engine or root on Debian or Ubuntu. Another Python:
#   make PYTHON=python3.12 test

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

PYTHON ?= python3
VENV ?= .venv
PYTEST ?=
# Not written $(MAKE) in the recipe: make would run that line under -n too.
AGAIN := $(MAKE)
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
# Each worker has an engine of its own. Three on two processors: drills wait for much of their time.
DRILLS := tests/drills -n 3 --dist worksteal

.PHONY: help venv engine base demo test check format unit engine-tests drills browser-tests chromium registry-tools runsc bench wheel clean-demo clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##  Ready the machine

venv: $(READY) ## Make .venv with the package (editable) and its development tools

# Dependency groups (--group) came with pip 25.1; a new venv holds the pip of its Python.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is missing or older than 3.11; name another one: make PYTHON=python3.12 …" >&2; exit 3; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "error: on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 3; }
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

engine: ## Make sure a container engine answers (as root on Debian or Ubuntu: install and start one)
	@$(PYTHON) tools/engine.py up

base: $(READY) engine ## Make the base image of the demo and the tests, where it is missing
	@$(PY) tools/base_image.py

# Programs of Debian's that only some tests need: who needs them, the packages, how to tell that they are there.
define debian
	@if $(3); then exit 0; fi; \
	if [[ $$(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then \
	  echo "$(1) need $(2); on Debian: sudo apt-get install $(2)" >&2; exit 3; fi; \
	echo "installing $(2) with apt"; \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get -q update >/dev/null || true; \
	apt-get -q install -y --no-install-recommends $(2) >/dev/null
endef

# Playwright brings no browser here: Debian's Chromium is used, and Playwright's own program needs libatomic1.
chromium:
	$(call debian,the browser tests,chromium libatomic1,command -v chromium >/dev/null && /sbin/ldconfig -p | grep -q 'libatomic\.so\.1')

# The tests that need a registry run a real one, on loopback, and push to it.
registry-tools:
	$(call debian,the registry tests,docker-registry skopeo,command -v docker-registry >/dev/null && command -v skopeo >/dev/null)

# Another runtime, a kernel of its own, that one drill runs a container under.
runsc:
	$(call debian,the drills of another runtime,runsc,command -v runsc >/dev/null)

##  Use it

demo: base ## Evaluate eight invented submissions, good and bad, and write the report
	@$(PY) demo/run.py

##  Test it

test: base check ## Check, then every test this machine can run
	@left=" and not drill"; kinds="unit rest drills"; \
	if [[ $$(id -u) != 0 ]]; then \
	  left+=" and not root"; kinds="unit rest"; \
	  echo "NOT RUN: the tests marked root, among them the fault drills; run make as root on Linux"; fi; \
	if ! $(AGAIN) chromium; then \
	  left+=" and not browser"; echo "NOT RUN: the tests marked browser; there is no Chromium"; fi; \
	if ! $(AGAIN) registry-tools; then \
	  left+=" and not registry"; echo "NOT RUN: the tests marked registry; there is no docker-registry or skopeo"; fi; \
	mkdir -p build; \
	$(PY) -m pytest -m unit -n auto --junitxml=build/unit.xml $(PYTEST); \
	$(PY) -m pytest -m "not unit$$left" --junitxml=build/rest.xml $(PYTEST); \
	if [[ $$kinds = *drills ]]; then \
	  without=(); \
	  if ! $(AGAIN) runsc; then \
	    without=(--deselect tests/drills/test_runtime.py); echo "NOT RUN: the runtime drill; there is no runsc"; fi; \
	  $(PY) -m pytest $(DRILLS) "$${without[@]}" --junitxml=build/drills.xml $(PYTEST); \
	fi; \
	echo "tests by kind:"; \
	for kind in $$kinds; do grep -ohE 'classname="tests\.[a-z_]+' build/$$kind.xml; done \
	  | sed 's/.*tests\./  /' | sort | uniq -c

check: $(READY) ## Lint, format, types, and the rules on who may import whom
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

format: $(READY) ## Format the code and mend what the linter can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

unit: $(READY) ## The tests that need no engine and no browser: the ones to run while you type
	$(PY) -m pytest -m unit -n auto $(PYTEST)

engine-tests: base registry-tools ## The tests that run containers
	$(PY) -m pytest -m "(engine or root) and not drill" $(PYTEST)

drills: base runsc ## Play the host's own faults on private engines (root; some minutes)
	$(PY) -m pytest $(DRILLS) $(PYTEST)

browser-tests: $(READY) chromium ## The tests that open the report in Chromium
	$(PY) -m pytest -m browser $(PYTEST)

bench: $(READY) ## Measure speeds side by side with other packages
	@found=0; for file in benchmarks/*.py; do [[ -f $$file ]] || continue; found=1; echo "== $$file"; $(PY) "$$file"; done; \
	if [[ $$found = 0 ]]; then echo "there are no benchmarks yet"; fi

wheel: $(READY) ## Build dist/*.whl and the source archive
	$(PY) -m build --outdir dist .

##  Tidy up

clean-demo: ## Remove what the demo made: its data, its run folder, its images
	rm -rf demo-data demo-run
	@if command -v docker >/dev/null; then \
	  docker image ls --quiet --filter 'reference=proctor-demo/*' | sort -u | xargs --no-run-if-empty docker image rm --force >/dev/null; fi

clean: ## Remove the venv and every cache; the demo and the engine stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
