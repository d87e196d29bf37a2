# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

.PHONY: demo test coverage quick check stubs golden speed test-browser docs bench papers fuzz wheel release-check clean

# A stamp rather than $(BIN)/python: where pip is missing, venv fails after it has made that file.
$(VENV)/.created:
	$(PYTHON) -m venv --clear $(VENV)
	touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-test: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet --no-compile --editable '.[test]'  # byte code of what is imported is enough
	touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

demo: $(VENV)/.installed
	$(BIN)/screenpath svm data_samples/breast_cancer.libsvm --grid 100 --scale standard --out runs/demo --force
	@echo "Results: runs/demo (run.json, steps.csv, coefficients.csv)"

# All tests. Those nearest to the kernels run twice: as plain Python, where a subscript out of range is an error (their
# 64-bit random numbers overflow by design, which numpy warns of and machine code does not), and as users run them. ONCE
# holds no kernel of ours: the checkers of certificates, run with the plain ones only. Kernels are compiled beforehand, by
# all processors. The tests start hundreds of processes, so that byte code is kept even where the environment says not to.
# Three workers: the longest tests wait for the processes that they start and kill; each has its part of the tests from
# the beginning, so that what the tests of a file share is made once. Assertions are left as they are written, since to
# rewrite 5,700 of them in every worker takes as long as many tests: what fails is run again by itself, with the values.
# Types are checked by a test (tests/architecture/test_types.py), beside others.
PLAIN_TESTS := tests/kernels tests/proofs tests/rows tests/problem/test_box.py tests/problem/test_l1svm.py \
	tests/problem/test_sparse.py tests/problem/test_sparse_free.py tests/solve/test_sparse_newton.py \
	tests/walk/test_compiled.py tests/walk/test_compiled_faces.py
ONCE := $(wildcard tests/proofs/test_*checker*.py) tests/proofs/test_exact.py
PLAIN := -m pytest -q -n 2 $(PLAIN_TESTS) -W "ignore:overflow encountered in scalar:RuntimeWarning"
EVERY := -m pytest -q -n 3 --dist worksteal $(ONCE:%=--ignore=%)
AGAIN := -n 0 --last-failed --last-failed-no-failures none
test quick coverage: export PYTHONDONTWRITEBYTECODE :=
test: $(VENV)/.installed-test
	$(BIN)/ruff check .
	export NUMBA_DISABLE_JIT=1; $(BIN)/python $(PLAIN) --assert plain || { $(BIN)/python $(PLAIN) $(AGAIN); exit 1; }
	$(BIN)/screenpath cache warm
	$(BIN)/python $(EVERY) --assert plain || { $(BIN)/python $(EVERY) $(AGAIN); exit 1; }

# The share of the package's lines that the tests run; those of kernels count where they run as plain Python.
coverage: $(VENV)/.installed-test
	$(BIN)/coverage erase
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run $(PLAIN)
	$(BIN)/screenpath cache warm
	$(BIN)/coverage run -m pytest -q -n 2 $(ONCE:%=--ignore=%)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# Between two edits: every behaviour, without a count of lines.
quick: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -q -n 2

# One room between two edits: make check ROOM=screen.
ROOM ?= problem
check: export PYTHONDONTWRITEBYTECODE :=
check: $(VENV)/.installed-test
	$(BIN)/ruff check screenpath/$(ROOM) tests
	$(BIN)/mypy screenpath/$(ROOM)
	$(BIN)/python -m pytest -q -n 2 $(or $(wildcard tests/$(ROOM)),tests/engine) \
		tests/architecture/test_imports.py

# What type checkers are told of functions and estimators whose parameters are declared options; a test compares.
stubs: $(VENV)/.installed-test
	$(BIN)/python tests/architecture/stubs.py

# About sixty short runs by two revisions on this machine: the same bytes, or which part differs.
BASE ?= HEAD
golden: $(VENV)/.installed
	$(BIN)/python tests/golden/runs.py $(BASE)

# The sets of the README's table by two revisions in turn: slower by both 5 % and 20 ms fails.
speed: $(VENV)/.installed-bench
	$(BIN)/python examples/benchmarks/gate.py $(BASE)

# The report in a real browser, looked at by axe-core. Needs npm and a Chromium (Debian: apt-get install chromium); where
# there is no browser the tests are skipped and say so.
tests/browser/node_modules: tests/browser/package.json
	npm install --prefix tests/browser --no-audit --no-fund --no-package-lock
	touch $@

test-browser: $(VENV)/.installed-test tests/browser/node_modules
	$(BIN)/python -m pytest -q -rs tests/browser

# The guide, a reference made of the declarations, and the papers' tables as pages for a browser, without any network.
docs: $(VENV)/.installed-docs
	$(BIN)/python examples/guide/site.py build/docs

bench: $(VENV)/.installed-bench
	$(BIN)/python examples/benchmarks/wang_tables.py
	$(BIN)/python examples/benchmarks/reading.py
	$(BIN)/python examples/benchmarks/run.py

# The papers' pages with their pictures, all from this build; about an hour, and half a gigabyte. QUICK=--quick: minutes.
# A page that fails, or lacks a set, is left as it was; the others are made all the same, and the index of what is there.
# DATA: folder of the data sets; PAGES: some of the pages only.
DATA  ?= ../shared/data
PAGES ?= wang2014 ogawa2013 ogawa2014_linear ogawa2014_kernel hong2019 zhao2014 new
papers: $(VENV)/.installed-test
	failed=; for page in $(PAGES); do \
		$(BIN)/python examples/papers/reproduce.py $$page $(DATA) runs/papers --page examples/papers/results $(QUICK) \
			|| failed="$$failed $$page"; \
	done; $(BIN)/python examples/papers/reproduce.py index; test -z "$$failed" || { echo "not made:$$failed"; exit 1; }

# The share of lines that the tests run, and all tests with every random problem and combination of parameters
# (tests/width.py). Then attacks: on every screening rule by random problems, weights, storages and reference accuracies,
# and those under a free intercept; on the reader by a million random files; on certificates by tiny problems at scales
# from 1e-150 to 1e150, judged in fractions; on the checker of certificates by a thousand that are no longer true; on
# what reads stored artefacts by ten thousand damaged ones; on running commands by 520 kills; on the cache of compiled
# kernels by 40 processes at once. Last, the tests: does one notice when code is changed?
fuzz: export PYTHONDONTWRITEBYTECODE :=
fuzz: coverage
	SCREENPATH_WIDE=1 $(BIN)/python -m pytest -q -n 2
	$(BIN)/python tests/safety/fuzz.py --checks 100000
	$(BIN)/python tests/safety/fuzz_dynamic.py --decisions 100000 --kinds intercept
	$(BIN)/python tests/safety/fuzz_reader.py --inputs 1000000
	$(BIN)/python tests/safety/fuzz_rounding.py --steps 100000
	$(BIN)/python tests/safety/fuzz_rounding.py --kernels --steps 20000
	$(BIN)/python tests/safety/fuzz_data.py --steps 20000 --scales none,maxabs,standard,l2 --text
	$(BIN)/python tests/safety/fuzz_far.py --steps 5000
	$(BIN)/python tests/safety/fuzz_dynamic.py --decisions 5000
	$(BIN)/python tests/safety/fuzz_artefacts.py --inputs 10000
	$(BIN)/python tests/safety/fuzz_artefacts.py --inputs 1000 --seed 1000000 --plain
	SCREENPATH_KILLS=10 $(BIN)/python -m pytest -q tests/cli/test_kills.py
	SCREENPATH_PROCESSES=40 $(BIN)/python -m pytest -q tests/compile/test_cache.py -k many_processes
	$(BIN)/python tests/safety/mutants.py --sample 200

# A wheel that carries its compiled kernels: for this Python and numba, and processors from the level x86-64-v3 on.
# Others, and other versions, compile as they would from the sources. KERNELS: modules to compile, all if empty.
BUILD ?= build
DIST  ?= dist
WHEEL := $(abspath $(BUILD))/wheel
KEPT  := $(abspath $(BUILD))/kernels
LEVEL := NUMBA_CACHE_DIR=$(KEPT) NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=
wheel: $(VENV)/.installed
	rm -rf $(WHEEL) $(KEPT)
	mkdir -p $(WHEEL)
	cp -r pyproject.toml setup.py README.md LICENSE screenpath $(WHEEL)
	$(LEVEL) $(BIN)/screenpath cache warm $(KERNELS)
	cd $(KEPT)/screenpath && $(abspath $(BIN))/python -m zipfile -c $(WHEEL)/screenpath/compile/shipped.zip *
	$(BIN)/python -m pip install --quiet wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL)/dist $(WHEEL)
	mkdir -p $(DIST)
	$(BIN)/python -c "import sys, sysconfig; tag = f'cp{sys.version_info.major}{sys.version_info.minor}'; \
	print('--python-tag', tag, '--abi-tag', tag, '--platform-tag', sysconfig.get_platform().replace('-', '_'))" \
	| xargs $(BIN)/python -m wheel tags --remove $(WHEEL)/dist/*.whl
	mv $(WHEEL)/dist/*.whl $(DIST)/

# Sdist and wheel, looked into, installed and used in clean environments, for every Python that is here.
release-check:
	$(PYTHON) tests/release.py $(abspath $(BUILD))/release

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* runs
