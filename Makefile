# Everything runs from a fresh clone with only Python, pip, venv and make.
PYTHON ?= python3
BIN := .venv/bin
# One BLAS thread: OpenBLAS on shared cores can slow down fifty-fold, and ratios need one clock.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test fuzz lint format bench bench-accuracy bench-calibration bench-peers paper clean
.DEFAULT_GOAL := demo

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ridgepass needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: .venv/ready        ## stream the paper's HR data and compare with exact ridge
	$(ONE_THREAD) $(BIN)/ridgepass demo

test: .venv/ready        ## every test
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2

# Goes on where the last run of this source stopped. ONLY="12 345" runs these numbers alone.
MINUTES ?= 30
SEED ?= 0
fuzz: .venv/ready        ## adversarial configurations against exact ridge in ball arithmetic
	PYTHONPATH=tests $(BIN)/python -m fuzz --minutes $(MINUTES) --seed $(SEED) $(if $(ONLY),--only $(ONLY))

lint: .venv/ready        ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/ready      ## mend what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/ready       ## the table of the README
	$(ONE_THREAD) $(BIN)/python -m benchmarks

# Apart, as it takes long. TEMPERATURES=file.csv (hour, temperature) takes the place of New York's.
bench-accuracy: .venv/ready  ## every method's distance from exact ridge
	$(ONE_THREAD) $(BIN)/python -m benchmarks.accuracy $(if $(TEMPERATURES),--temperatures "$(TEMPERATURES)")

bench-calibration: .venv/ready  ## how often the bounds by probes fail, beside what the law says
	$(ONE_THREAD) $(BIN)/python -m benchmarks.calibration

bench-peers: .venv/ready ## the tools of today on the same data: time, memory, passes, errors
	$(ONE_THREAD) $(BIN)/python -m benchmarks.peers

# Over an hour with nothing beside it, or minutes with SCALE=small; a run that was stopped goes on.
SCALE ?= full
paper: .venv/ready       ## the paper's experiments: tables, figures, claims
	$(ONE_THREAD) $(BIN)/python -m experiments --scale $(SCALE) $(if $(TEMPERATURES),--temperatures "$(TEMPERATURES)")

clean:
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis
