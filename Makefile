# Each target makes its own virtual environment in .venv with the machine's python3.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test fast-tests test-slow bench lint clean

$(VENV)/.demo: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plot]'
	touch $@

$(VENV)/.test: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,lint]'
	touch $@ $(VENV)/.demo

demo: $(VENV)/.demo  ## the double well and a real table, with pictures, in under a minute
	$(BIN)/amagold demo

test: $(VENV)/.test  ## lint, types and all fast tests, side by side
	$(MAKE) --jobs=2 lint fast-tests

fast-tests: $(VENV)/.test
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

test-slow: $(VENV)/.test  ## the statistical and paper-scale checks
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m slow

bench: $(VENV)/.test  ## speed, as ratios within one run
	$(BIN)/amagold bench

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

clean:
	rm -rf $(VENV) build dist amagold-demo
