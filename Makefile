PYTHON ?= python3
BIN := .venv/bin

# Tests start hundreds of Pythons: what one of them has compiled, the others read, whatever a shell has set.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test suite studies test-deep lint bench docs dist constraints drawing client studio clean

demo: .venv/core
	$(BIN)/sidelight demo --report sidelight-demo.html

# All at once, as each waits for something now and then. Where one of them failed, what lint and the studies say is
# said again at the end: tests print a lot meanwhile, and studies that have finished are not computed again.
test: .venv/dev
	$(MAKE) --jobs=3 lint suite studies || { $(MAKE) --keep-going lint studies; exit 1; }

# Each worker begins with a third of the files in a row, so that what a file prepares is prepared once. There is
# a worker more than most machines have cores to spare: tests wait for browsers, servers and killed processes.
suite: .venv/dev
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not deep" --durations 20

# In one piece, not line by line between the tests.
studies: .venv/dev
	mkdir -p build
	$(BIN)/sidelight study run all --quick > build/studies.txt 2>&1; code=$$?; cat build/studies.txt; exit $$code

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
