# Two commands matter: `make up` runs Horae with a demo, `make test` checks everything.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check -qq
# One more than cores: a third of a run's time is spent waiting, for processes to start and for servers that hang.
PYTEST_WORKERS ?= 3
# `make test TESTS=tests/model PYTEST_FLAGS=-x` narrows the run.
TESTS ?= tests
PYTEST_FLAGS ?=
HORAE_UP_FLAGS ?=
# `make bench BENCH_FLAGS=--large` fills stores as the targets ask for, `BENCH_FLAGS="--only latency"` measures one anew.
BENCH_FLAGS ?=
# `make scale SCALE_FLAGS="--soak-seconds 600"` for a shorter run than an hour, `SCALE_FLAGS="--only disk"` for one part.
SCALE_FLAGS ?=
UPGRADE ?=
# `make bench-peers PEERS_FLAGS="--only huey --repeats 1"` compares with one of them.
PEERS_FLAGS ?=

.DEFAULT_GOAL := help
.PHONY: help up test lint format dist bench scale bench-policies bench-peers prove prove-frameworks prove-openapi audit lock clean install install-dev browser

help:
	@echo "make up      install into $(VENV) and run Horae with a demo on http://127.0.0.1:8420"
	@echo "make test    install, lint and run every test"
	@echo "make lint    ruff, mypy and import-linter only"
	@echo "make format  let ruff rewrite what it can"
	@echo "make dist    build the wheel and the sdist into dist/"
	@echo "make bench   measure everything and write docs/PERFORMANCE.md; 'python -m bench NAME' measures one thing"
	@echo "make scale   measure what growth is planned by and write docs/SCALE.md; an hour a store and more"
	@echo "make bench-policies   measure what policies do and cost, and write docs/RESULTS-policies.md"
	@echo "make bench-peers   measure other job queues beside Horae, each installed into .peers; docs/RESULTS-peers.md"
	@echo "make prove   the long proofs: more seeds, more interleavings, more examples"
	@echo "make prove-frameworks   the SDK inside gunicorn, Flask, Django and Celery, installed into .frameworks; needs the Internet"
	@echo "make prove-openapi   generate clients from the OpenAPI document with three generators; needs the Internet"
	@echo "make audit   look up every pinned package in the public list of advisories; needs the Internet"
	@echo "make lock    write the lock files; UPGRADE=1 moves the pins"
	@echo "make clean   remove everything that was installed or built"

up: install
	$(BIN)/horae up --demo $(HORAE_UP_FLAGS)

# What tests write lies in memory where there is room: they start hundreds of stores. `make prove` writes to the disk.
test: install-dev browser lint
	scratch=$$(tools/scratch) && trap 'rm -rf "$$scratch"' EXIT && TMPDIR="$$scratch" $(BIN)/pytest -n $(PYTEST_WORKERS) $(PYTEST_FLAGS) $(TESTS)

lint: install-dev
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: install-dev
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

dist: install-dev
	$(BIN)/python -m build

bench: install-dev
	$(BIN)/python -m bench.pages.document docs/PERFORMANCE.md $(BENCH_FLAGS)

scale: install-dev
	$(BIN)/python -m bench.pages.scale docs/SCALE.md $(SCALE_FLAGS)

bench-policies: install-dev
	$(BIN)/python -m bench.pages.policy_page docs/RESULTS-policies.md

bench-peers: install-dev
	$(BIN)/python -m tools.peers docs/RESULTS-peers.md $(PEERS_FLAGS)

prove: install-dev browser
	HORAE_PROVE=1 $(BIN)/pytest -n $(PYTEST_WORKERS) --hypothesis-profile=prove --timeout=900 $(PYTEST_FLAGS) $(TESTS)
	tools/races
	tools/time
	tools/security

prove-frameworks: install-dev
	$(BIN)/python -m tools.frameworks

prove-openapi: install-dev
	tools/openapi

audit:
	tools/audit

lock:
	tools/lock $(if $(UPGRADE),--upgrade)

clean:
	rm -rf $(VENV) .peers .frameworks .openapi build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

browser:
	@tools/browser
	@tools/node
	@tools/pgbouncer
	@tools/proxies

# Each stamp records that the environment holds what its prerequisites say, so a second run installs nothing.
install: $(VENV)/.locked $(VENV)/.package
install-dev: $(VENV)/.locked-dev $(VENV)/.package

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null || { echo "Horae needs Python 3.11 or newer, and there is no $(PYTHON) here." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Horae needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing; on Debian it is the package python3-venv." >&2; exit 1; }
	@touch $@

$(VENV)/.locked: requirements.lock $(VENV)/.python
	@echo "Installing what requirements.lock names into $(VENV) ..."
	@$(PIP) install --require-hashes --no-deps -r requirements.lock
	@touch $@

$(VENV)/.locked-dev: requirements-dev.lock $(VENV)/.python
	@echo "Installing what requirements-dev.lock names into $(VENV) ..."
	@$(PIP) install --require-hashes --no-deps -r requirements-dev.lock
	@touch $@

$(VENV)/.package: pyproject.toml | $(VENV)/.python
	@[ -e $(VENV)/.locked ] || [ -e $(VENV)/.locked-dev ] || $(MAKE) --no-print-directory $(VENV)/.locked
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
