# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test bench fuzz clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/screenpath svm data_samples/breast_cancer.libsvm --grid 100 --scale standard --out runs/demo --force
	@echo "Results: runs/demo (run.json, steps.csv, coefficients.csv)"

test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -q

bench: $(VENV)/.installed-bench
	$(BIN)/python examples/benchmarks/run.py

clean:
	rm -rf $(VENV) build *.egg-info .pytest_cache .ruff_cache runs
