# Everything here needs only make and a Python >= 3.11; the first run sets up .venv.
#   make demo PYTHON=/path/to/python3.13    picks the interpreter (first set-up only)

SHELL := /bin/sh
# Tests start hundreds of interpreters. Without bytecode each compiles flame anew: 0.25 s.
unexport PYTHONDONTWRITEBYTECODE

VENV  := .venv
BIN   := $(VENV)/bin
PIP   := $(BIN)/python -m pip --quiet --disable-pip-version-check
# uv installs in 20 s what takes pip a minute and a half. Where there is none, or it fails, pip does it.
UV     := $(BIN)/python -m uv pip --quiet --no-cache
WHEELS := --only-binary :all: --no-binary flame-view
INSTALL = $(BIN)/python -c 'import uv' 2>/dev/null || $(PIP) install --only-binary :all: uv 2>/dev/null; \
	FLAME_NO_INJECT=1 $(UV) install --python $(BIN)/python $(1) --editable $(2) 2>/dev/null || \
	FLAME_NO_INJECT=1 $(PIP) install $(1) --editable $(2)

PYTHONS      = $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 python)
# Three for two processors: many tests wait for another program.
PYTEST_FLAGS ?= -n 3 --dist worksteal --durations 15
MINUTES      ?= 10
RUNS         ?= 5
SIZE         ?= small
ONLY         ?=
CHECK_LOG    := build/check.log
DEMO         := samples/six_levels
LIBRARY      := flame/libflameinject.so
CORE_LIBRARY := flame/libflamecore.so
CORE_CODE    := $(wildcard csrc/*.c csrc/*.h)
LIBRARY_CODE := $(shell find inject -name fake -prune -o -name '*.cpp' -print -o -name '*.h' -print -o -name '*.map' -print)

.DEFAULT_GOAL := help
.PHONY: help demo live inject man gif wheels pyz release locks test test-deep \
	test-pythons test-textual test-loaded fuzz bench check format clean

help:
	@echo "make demo          open the app on a bundled sample (without a terminal: print the static view)"
	@echo "make live          watch a model run in the app, on a double of the CUDA driver"
	@echo "make inject        build the library of flame record, what has changed of it"
	@echo "make man           write the man pages and the generated parts of docs/"
	@echo "make gif           draw the first minute with flame, docs/first-minute.gif"
	@echo "make wheels        build wheels for Linux of both machines, with glibc 2.28 and newer, into dist/"
	@echo "make pyz           pack flame and all it needs into one file, for machines without pip"
	@echo "make release       build and try what is published, into dist/; VERSION=0.3.0 prepares one"
	@echo "make locks         write anew which versions build a release"
	@echo "make test          the checks and the quick tests: what to run before every commit"
	@echo "make test-deep     the other tests, and the properties with many examples; CI runs both"
	@echo "make test-pythons  the quick tests on every Python that flame supports and this machine has"
	@echo "make test-textual  the tests of the app with the oldest and the newest Textual it may have"
	@echo "make test-loaded   both tiers beside two busy loops, RUNS=5 times, for what only a busy machine shows"
	@echo "make fuzz          look for inputs that break a reader, for MINUTES=10"
	@echo "make bench         measure, and write docs/performance.md; SIZE=large, ONLY=\"bench_load …\""
	@echo "make check         format, lint, types, import contracts: what needs no test to run"
	@echo "make format        rewrite the code in the project's format"
	@echo "make clean         remove .venv, caches and build output"

demo: $(VENV)/.installed
	@$(BIN)/flame view $(DEMO) --fold-layers

live: $(LIBRARY) $(VENV)/.installed-dev
	@$(BIN)/python samples/live_demo.py

inject: $(LIBRARY)

# Once written: man -l docs/man/flame-view.1
man: $(VENV)/.installed-dev
	@$(BIN)/python docs/generate.py

# A compiler of its own (90 MB) into build/, for one machine or MACHINES="x86_64 aarch64"
wheels: $(VENV)/.installed-dev
	@$(BIN)/python -m release.wheels $(MACHINES)

# The same picture for picture at every run, with a font of the machine: look at what differs.
gif: $(VENV)/.installed-dev
	@$(BIN)/python -c 'import PIL' 2>/dev/null || FLAME_NO_INJECT=1 $(PIP) install --editable '.[film]'
	@$(BIN)/python docs/make_gif.py

# For this machine and the Python of .venv
pyz: $(VENV)/.installed-dev
	@$(BIN)/python -m release.pyz

# docs/releasing.md. With VERSION=0.3.0 only the version is written, to be committed.
release: $(VENV)/.installed-dev
	@$(BIN)/python $(if $(VERSION),-m release.versions $(VERSION),-m release $(if $(REPLACE),--replace))

# What builds a release, and what the one file packs: the newest versions, by their hashes.
locks: $(VENV)/.installed-dev
	@$(BIN)/python -m release.locks

# The checks run beside the tests and are heard when those have ended: their lines stay together.
test: $(VENV)/.installed-dev $(CORE_LIBRARY)
	@mkdir -p $(dir $(CHECK_LOG))
	@$(MAKE) --no-print-directory check >$(CHECK_LOG) 2>&1 & checks=$$!; \
	trap 'kill $$checks 2>/dev/null; exit 130' INT TERM; \
	$(BIN)/python -m pytest -q -m "not deep" $(PYTEST_FLAGS); tests=$$?; \
	wait $$checks; checks=$$?; \
	cat $(CHECK_LOG); \
	exit $$((checks || tests))

test-deep: $(VENV)/.installed-dev $(VENV)/.tried-extras $(CORE_LIBRARY)
	$(BIN)/python -m pytest -q -m "deep or hypothesis" --hypothesis-profile deep $(PYTEST_FLAGS)

# Each Python in an environment of its own in build/; make test-pythons VERSIONS="3.12 3.14"
test-pythons: $(VENV)/.installed-dev $(CORE_LIBRARY)
	$(BIN)/python tests/pythons.py $(VERSIONS)

# Each Textual in a folder of its own in build/; make test-textual VERSIONS="8.2.5 8.2.9"
test-textual: $(VENV)/.installed-dev $(CORE_LIBRARY)
	$(BIN)/python tests/textual_versions.py $(VERSIONS)

test-loaded: $(VENV)/.installed-dev
	$(BIN)/python tests/loaded.py $(RUNS)

fuzz: $(VENV)/.installed-dev $(VENV)/.tried-fuzz $(CORE_LIBRARY)
	@$(BIN)/python tests/fuzz/run.py --minutes $(MINUTES)

bench: $(VENV)/.installed-dev $(CORE_LIBRARY)
	@$(BIN)/python benchmarks/run_all.py --size $(SIZE) $(if $(ONLY),--only $(ONLY))

# lint-imports without its cache: that keeps an import of a module that was missing once.
check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

$(LIBRARY): $(LIBRARY_CODE) inject/build.py flame/_version.py | $(VENV)/.installed-native
	@$(BIN)/python inject/build.py

# Without a compiler there is none, and numpy does its work.
$(CORE_LIBRARY): $(CORE_CODE) csrc/build.py | $(VENV)/.installed-dev
	@$(BIN)/python csrc/build.py || true

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -f $(LIBRARY) $(CORE_LIBRARY)
	find flame tests samples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@for python in $(PYTHONS); do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "setting up $(VENV) with $$("$$python" --version)"; \
			"$$python" -m venv --clear $(VENV) && exit 0; \
			rm -rf $(VENV); \
			echo "error: $$python cannot make a virtual environment (on Debian: apt install python3-venv)" >&2; \
			exit 1; \
		fi; \
	done; \
	echo "error: flame needs Python 3.11 or newer; none found among: $(PYTHONS)" >&2; \
	echo "       name one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; \
	exit 1

# The stamps make the second run quick: pip is asked again only when pyproject.toml has changed.
# Without the library, which takes as long again and which the demo and the tests have no use for.
$(VENV)/.installed: pyproject.toml $(BIN)/python
	@echo "installing flame into $(VENV)"
	@FLAME_NO_INJECT=1 $(PIP) install --editable .
	@touch $@

$(VENV)/.installed-native: pyproject.toml $(BIN)/python
	@echo "installing flame and the headers of CUDA into $(VENV)"
	@FLAME_NO_INJECT=1 $(PIP) install --editable '.[native]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: pyproject.toml $(BIN)/python
	@echo "installing flame and its development tools into $(VENV)"
	@$(call INSTALL,,'.[dev]')
	@touch $@ $(VENV)/.installed-native $(VENV)/.installed

# The fuzzer is compiled, and nobody should need a compiler for the tests: only as a wheel.
$(VENV)/.tried-fuzz: pyproject.toml $(VENV)/.installed-dev
	@$(call INSTALL,$(WHEELS),'.[fuzz]') || echo "no fuzzer for this Python: fuzzing Python is left out" >&2
	@touch $@

# 500 MB that only the deep tests need: the fuzzer; data frames and mcp; S3 and Google's storage on
# this machine, and duckdb. In parts where this Python has no wheels of all.
$(VENV)/.tried-extras: pyproject.toml $(VENV)/.installed-dev
	@for extras in fuzz dataframes,mcp servers; do \
		$(call INSTALL,$(WHEELS),".[$$extras]") || \
		echo "no $$extras for this Python: their tests are left out" >&2; \
	done
	@touch $@ $(VENV)/.tried-fuzz
