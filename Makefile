# Everything runs in .venv, which is made from the hashed requirements the first time a target needs it.
#   make demo PYTHON=/path/to/python3.12      another interpreter (3.11 or newer)
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
DEMO ?= demo
PYTEST_ARGS ?=
PARALLEL ?= --numprocesses auto --dist loadfile
BIN := .venv/bin
STAMP := .venv/.installed

# Nothing of the caller's Python environment may leak in.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX
export PYTHONNOUSERSITE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export DO_NOT_TRACK := 1

# A virtual environment does not survive being moved or copied: the stamp holds the folder it was made in.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif

.PHONY: help demo setup test test-all lint format bench lock readme evaluation wheel clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

demo: $(STAMP) ## replay the Llama 3 run from raw exports: what stopped it, what it cost, how much of that is right
	@$(BIN)/goodput demo "$(DEMO)"

setup: $(STAMP) ## make .venv with everything in it (the other targets do this by themselves)

test: $(STAMP) ## the test suite without the slow tests
	$(BIN)/python -m pytest -m "not slow" $(PARALLEL) $(PYTEST_ARGS)

test-all: $(STAMP) ## the whole test suite
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

lint: $(STAMP) ## format, style, types, import direction, SQL
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/sqlfluff lint --disable-progress-bar --processes 2 warehouse

format: $(STAMP) ## rewrite Python and SQL in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/sqlfluff fix --disable-progress-bar warehouse

bench: $(STAMP) ## measure speed and memory beside their limits (BENCH=sacct for one, BENCH_ARGS=... for its options)
	@for file in benchmarks/$(or $(BENCH),*).py; do echo "== $$file"; $(BIN)/python "$$file" $(BENCH_ARGS); done

# --universal: one file for every platform and Python from 3.11 on; no index address is written.
LOCK = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-annotate --no-header --no-emit-index-url --no-emit-find-links --quiet

lock: $(STAMP) ## resolve pyproject.toml anew into the two hashed requirements files (LOCK_ARGS=--upgrade for newer releases)
	$(LOCK) $(LOCK_ARGS) --group dev --output-file requirements-dev.txt
	$(LOCK) --constraint requirements-dev.txt --output-file requirements.txt

readme: $(STAMP) ## run the demo and put what it prints into README.md
	$(BIN)/python docs/paste_demo.py

evaluation: $(STAMP) ## measure verdicts on other seeds, fleets and without each rule; write docs/evaluation.md (EVALUATION_ARGS="--seeds 2,3")
	$(BIN)/python docs/make_evaluation.py $(EVALUATION_ARGS)

wheel: $(STAMP) ## build dist/*.whl
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

clean: ## remove .venv, caches and built files; keeps data/
	rm -rf .venv dist build demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find flows transforms warehouse tests -name __pycache__ -type d -prune -exec rm -rf {} +

# pip installs uv alone, with the hashes of requirements-dev.txt; uv then installs everything in seconds.
# With --require-hashes a package that is missing from the file is an error, never a download without hash.
$(STAMP): requirements-dev.txt pyproject.toml
	@echo "Setting up .venv (once)"
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@"$(PYTHON)" -m venv --clear .venv \
		|| { echo "this Python cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@awk '/^[a-z]/ {on = /^uv==/} on' requirements-dev.txt > .venv/uv.txt
	@$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r .venv/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode -r requirements-dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --compile-bytecode --editable .
	@printf '%s' "$$PWD" > $(STAMP)
