# make gate, make test: each installs what it needs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_LLM := $(VENV)/.installed-llm
# Without its bytecode every start of passgate compiles its modules anew.
unexport PYTHONDONTWRITEBYTECODE
# Which bun the tests of graders in TypeScript run with.
BUN := 1.4.5
# Which axe the tests of the page look for barriers with.
AXE := 4.14.1

.PHONY: gate gate-llm test test-slow search check engine-schema schema constraints install install-llm install-bun install-axe clean

gate: install
	$(BIN)/passgate run ci_merge

# The nightly gate over a real, small model on this machine.
gate-llm: install-llm
	$(BIN)/python -m tests.llm.gate

# Most tests wait for processes more than they compute.
test: install
	$(MAKE) --jobs 2 --output-sync check compiled-tests
	$(BIN)/python -m pytest -n $$((2 * $$(nproc))) --dist worksteal -m "not slow"

test-slow: install
	$(BIN)/python -m pytest -n $$((2 * $$(nproc))) --dist worksteal -m slow

# The searches of hypothesis, which marks them, with other examples each time and many more than at a merge.
search: install
	$(BIN)/python -m pytest -n $$(nproc) --dist worksteal -m hypothesis --hypothesis-profile=search --timeout=3600

# Otherwise each process of the tests compiles all of them. What is wrong with them is told by the tests themselves.
.PHONY: compiled-tests
compiled-tests: install
	$(BIN)/python -m pytest --collect-only --quiet > /dev/null || true

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -p passgate -p bench
	$(BIN)/lint-imports --no-logo

engine-schema: install
	$(BIN)/python -m passgate.flows.embedded.server

schema: install
	$(BIN)/python -m passgate.tasks.formats.schemas schema

constraints:
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[graders,dask,ray,s3,otel]" --group dev --group llm
	head -n 1 constraints.txt > constraints.new
	$(BIN)/python -m pip freeze --exclude-editable >> constraints.new
	mv constraints.new constraints.txt
	touch $(INSTALLED) $(INSTALLED_LLM)

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[graders,dask,ray,s3,otel]" --group dev
	touch $(INSTALLED)

install-llm: $(INSTALLED_LLM)

$(INSTALLED_LLM): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group llm
	touch $(INSTALLED_LLM)

# Into the virtual environment, where graders look for programs first.
install-bun: install
	npm install --global --prefix $(VENV) --no-audit --no-fund --silent bun@$(BUN)

install-axe: install
	npm install --global --prefix $(VENV) --no-audit --no-fund --silent axe-core@$(AXE)

clean:
	rm -rf $(VENV) .passgate dist
