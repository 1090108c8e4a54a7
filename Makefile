# GNU make. PYTHON is only used to set up .venv; everything else runs inside it.
PYTHON ?= python3
VENV := .venv/bin/python
SETUP := $(PYTHON) scripts/setup_env.py
CORE := test serve fast
STAGES := $(VENV) scripts/run_stages.py

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-all docs bench release format clean

help:
	@echo 'make demo             set up .venv and run examples/demo.py'
	@echo 'make test             what every change must pass: lint, types, contracts, fast tests'
	@echo 'make test-all         make test and all slow stages; a stage installs what it needs'
	@echo 'make test-lint        ruff'
	@echo 'make test-types       mypy, strict'
	@echo 'make test-contracts   which module may import which'
	@echo 'make test-fast        tests on fixed tapes, doctests, a sample of statistics and faults'
	@echo 'make test-thorough    larger enumerations and longer lists of cases of the same tests'
	@echo 'make test-statistics  laws of the noise on large samples'
	@echo 'make test-faults      crashes, forks, limits'
	@echo 'make test-engines     one result on every engine: Spark and PostgreSQL'
	@echo 'make test-browser     the explorer page in a real Chromium'
	@echo 'make test-docs        the site, every snippet and command of its pages, the examples'
	@echo 'make test-wheels      the wheel in a clean environment of every Python that is found'
	@echo 'make test-slow        the stages that make test-all adds to make test'
	@echo 'make docs             build the documentation site into build/site'
	@echo 'make bench            the benchmark report: accuracy and speed, ours and others'
	@echo 'make release          check, build and try what would be published'
	@echo 'make format           format the code and fix what ruff can fix'
	@echo 'make clean            remove .venv and everything that was built'

demo:
	@$(SETUP)
	@$(VENV) examples/demo.py

test:
	@$(SETUP) $(CORE)
	@$(STAGES) quick

test-%:
	@$(SETUP) $(CORE)
	@$(STAGES) $*

docs:
	@$(SETUP) docs
	@NO_MKDOCS_2_WARNING=1 $(VENV) -m mkdocs build

bench:
	@$(SETUP) bench
	@$(VENV) -m benchmarks.report

release:
	@$(SETUP) $(CORE) dev
	@$(VENV) -m scripts.release

format:
	@$(SETUP) $(CORE)
	@$(VENV) -m ruff check --fix-only .
	@$(VENV) -m ruff format .

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
