# make demo   SBC against TopK and FedAvg on real digits; writes runs/demo/
# make test   ruff, mypy, pytest
# make slow   the tests that take minutes: deployments, kills
# make gpu-check   what a GPU must be able to do; without one, the same on the CPU, smaller
# make lint   the first two
# make clean  remove what the others made
#
# Each target sets itself up: it needs a Python >= 3.11 (PYTHON=...) and make, nothing else.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := runs/demo
DEMO_RUNS := fedavg topk sbc

export FLWR_TELEMETRY_ENABLED := 0
export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION := 1
export RAY_USAGE_STATS_ENABLED := 0

.PHONY: demo test slow gpu-check lint install clean
.DELETE_ON_ERROR:

# Runs anew each time: what an earlier demo left in runs/demo is replaced.
demo: $(STAMP)
	rm -rf $(DEMO)
	for name in $(DEMO_RUNS); do \
		$(BIN)/fedsbc run configs/demo/$$name.yaml --out $(DEMO)/$$name || exit 1; \
	done
	$(BIN)/fedsbc compare $(DEMO_RUNS:%=$(DEMO)/%) --out $(DEMO)/report.html

test: lint
	$(BIN)/pytest

slow: $(STAMP)
	$(BIN)/pytest -m slow

gpu-check: $(STAMP)
	$(BIN)/python -m tests.benchmarks.gpu_check

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fedsbc needs Python >= 3.11: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) $(DEMO) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
