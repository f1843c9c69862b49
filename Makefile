# make gate, make test: each installs what it needs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: gate test test-slow check schema constraints install clean

gate: install
	$(BIN)/passgate run ci_merge

test: check
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: install
	$(BIN)/python -m pytest -m slow

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p passgate
	$(BIN)/lint-imports --no-logo

schema: install
	$(BIN)/python -m passgate.tasks.formats.schemas schema

constraints:
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[graders,plot]" --group dev
	head -n 1 constraints.txt > constraints.new
	$(BIN)/python -m pip freeze --exclude-editable >> constraints.new
	mv constraints.new constraints.txt
	touch $(INSTALLED)

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[graders,plot]" --group dev
	touch $(INSTALLED)

clean:
	rm -rf $(VENV) .passgate dist
