PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test suite test-deep lint bench docs dist constraints drawing client studio clean

demo: .venv/core
	$(BIN)/sidelight demo --report sidelight-demo.html

# Where something failed, what lint says is said again at the end: tests print a lot meanwhile.
test: .venv/dev
	$(MAKE) --jobs=2 lint suite || { $(MAKE) lint; exit 1; }
	$(BIN)/sidelight study run all --quick

# Each worker begins with half of the files in a row, so that what a file prepares is prepared once.
suite: .venv/dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not deep"

test-deep: .venv/dev
	$(BIN)/python -m pytest -n 2 -m deep

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/dev
	$(BIN)/python -m bench

docs: .venv/dev
	$(BIN)/python -m pytest -q README.md docs tests/test_docs.py
	$(BIN)/python docs/site_pages.py build/docs
	$(BIN)/python -m zensical build --strict --config-file build/zensical.toml
	$(BIN)/python docs/site_pages.py --keep build/site site

dist: .venv/build
	rm -rf dist
	$(BIN)/python -m build

constraints: .venv/core
	$(BIN)/python release/constraints.py

drawing:
	cd drawing && npm install --no-package-lock --no-audit --no-fund
	cd drawing && node build.mjs ../src/sidelight/report/assets

client:
	cd clients/typescript && npm install --no-package-lock --no-audit --no-fund
	cd clients/typescript && node build.mjs ../../src/sidelight/service/assets/client.js

studio: .venv/core
	$(BIN)/python -m sidelight.studio.typescript studio/src/messages.ts
	cd studio && npm install --no-package-lock --no-audit --no-fund
	cd studio && node build.mjs ../src/sidelight/studio/assets

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/core: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/build: | .venv/bin/python
	$(BIN)/python -m pip install --quiet build
	touch $@

.venv/dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev]"
	touch .venv/core $@
