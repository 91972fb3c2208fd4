PYTHON ?= python3
BIN := .venv/bin

# Tests start hundreds of Pythons: what one of them has compiled, the others read, whatever a shell has set.
unexport PYTHONDONTWRITEBYTECODE

# Tests are more processes than there are cores: threads would wait for each other most of the time, whether they
# spin (one test of boosting 2.5 times its work) or sleep (3 times, in the kernel).
test test-deep suite examples studies docs: export OMP_NUM_THREADS := 1
test test-deep suite examples studies docs: export OPENBLAS_NUM_THREADS := 1

# What a target prints when it is done, instead of line by line between the tests.
IN_ONE_PIECE = > build/$@.txt 2>&1; code=$$?; cat build/$@.txt; exit $$code

.PHONY: demo test suite examples studies test-deep lint bench docs dist constraints drawing client studio clean

demo: .venv/core
	$(BIN)/sidelight demo --report sidelight-demo.html

# Two processes at first, one for a core. All else then at once, as each waits for something now and then. Where one
# of them failed, how examples and studies ended is said again: the suite prints a lot meanwhile.
test: .venv/dev
	$(MAKE) --jobs=2 lint .venv/compiled
	$(MAKE) --jobs=3 suite examples studies || { tail -n 40 build/examples.txt build/studies.txt; exit 1; }

# Each worker begins with a third of the files in a row, so that what a file prepares is prepared once. There is
# a worker more than most machines have cores to spare: tests wait for browsers, servers and killed processes.
suite: .venv/dev
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not deep" --durations 20 tests

# What docstrings and pages show, apart: a worker of the suite would collect all of it before its first test.
examples: .venv/dev
	mkdir -p build
	$(BIN)/python -m pytest -m "not deep" --durations 20 src README.md docs $(IN_ONE_PIECE)

studies: .venv/dev
	mkdir -p build
	$(BIN)/sidelight study run all --quick $(IN_ONE_PIECE)

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

# Two at a time, since pip unpacks on one core; what neither of them installs comes after them. Nothing depends on
# a package of the other here: torch, pandas and Spark come without what they need.
.venv/dev: pyproject.toml | .venv/bin/python
	$(MAKE) --jobs=2 .venv/large .venv/tools
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev]"
	touch .venv/core $@

# Python compiles what it loads for the first time, and pytest every test: once, not in each worker.
.venv/compiled: .venv/dev
	mkdir -p build
	$(BIN)/python -m pytest --collect-only -q > build/collected.txt 2>&1 || { cat build/collected.txt; exit 1; }
	touch $@

.venv/large: pyproject.toml | .venv/bin/python
	DIST_EXTRA_CONFIG=$(CURDIR)/release/large.cfg $(BIN)/python -m pip install --quiet --no-compile --no-deps \
	  $$($(BIN)/python release/requirements.py neural spark)
	touch $@

.venv/tools: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[excel,numeric,service,tools]"
	touch $@
