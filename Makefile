# make bench: from nothing to a report.  make test: everything CI runs.  The rest measures the project's own figures.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := fabrics microbench collectives training reports suite tests

.PHONY: bench test lint unit parity metrology relock clean
.DELETE_ON_ERROR:

bench: $(VENV)/ready
	$(BIN)/fabricbench run --quick

test: lint unit

lint: $(VENV)/ready
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

unit: $(VENV)/ready
	$(BIN)/python -m pytest

# The figures: honest benchmarks that print a table and write results/TARGET.json.
parity: $(VENV)/ready
	$(BIN)/python -m tests.figures.parity

metrology: $(VENV)/ready
	$(BIN)/python -m tests.figures.metrology

# Everything from the lock file, then the project itself, in place: its native loop is compiled here.
$(VENV)/ready: requirements.lock pyproject.toml microbench/loop.c
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# The lock file, from the environment at hand.
relock: $(VENV)/ready
	{ head -1 requirements.lock; $(BIN)/pip freeze --all --exclude-editable | grep -viE '^(pip|fabricbench)==' | sed 's/+cpu//'; } > .lock
	mv .lock requirements.lock

clean:
	rm -rf $(VENV) build *.egg-info microbench/*.so
