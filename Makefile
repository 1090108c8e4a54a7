# GNU make. PYTHON is only used to set up .venv; everything else runs inside it.
PYTHON ?= python3
VENV := .venv/bin/python
SETUP := $(PYTHON) scripts/setup_env.py
TESTED := dev docs fast notebook postgres serve spark

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test docs bench release format clean

help:
	@echo 'make demo             set up .venv and run examples/demo.py'
	@echo 'make test             set up .venv and run every test stage in order'
	@echo 'make test-fast        lint, types, import contracts, tests on fixed tapes, doctests'
	@echo 'make test-statistics  laws of the noise on large samples'
	@echo 'make test-faults      crashes, forks, limits, measured costs'
	@echo 'make test-engines     one result on every engine: Spark and PostgreSQL'
	@echo 'make test-browser     the explorer page in a real Chromium'
	@echo 'make test-docs        the site, every snippet and command of its pages, the examples'
	@echo 'make test-wheels      the wheel in a clean environment of every Python that is found'
	@echo 'make docs             build the documentation site into build/site'
	@echo 'make bench            the benchmark report: accuracy and speed, ours and others'
	@echo 'make release          check, build and try what would be published'
	@echo 'make format           format the code and fix what ruff can fix'
	@echo 'make clean            remove .venv and everything that was built'

demo:
	@$(SETUP)
	@$(VENV) examples/demo.py

test:
	@$(SETUP) $(TESTED)
	@$(VENV) scripts/run_stage.py

test-%:
	@$(SETUP) $(TESTED)
	@$(VENV) scripts/run_stage.py $*

docs:
	@$(SETUP) docs
	@NO_MKDOCS_2_WARNING=1 $(VENV) -m mkdocs build

bench:
	@$(SETUP) bench
	@$(VENV) -m benchmarks.report

release:
	@$(SETUP) $(TESTED)
	@$(VENV) -m scripts.release

format:
	@$(SETUP) dev fast
	@$(VENV) -m ruff check --fix-only .
	@$(VENV) -m ruff format .

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
