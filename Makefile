# `make demo` verifies the theory at quick size; `make test` runs every check. Both set up .venv first and are idempotent.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PROBE  := $(VENV)/.installed-probe

.PHONY: demo test full lint docs wheel clean

demo: $(STAMP)
	$(BIN)/pathlines verify --report pathlines-report.html
	@echo "next: $(BIN)/pathlines view   (to see it move, and to turn its knobs)"

# Compiling is most of the tests' time, so programs are compiled without optimisation; `make demo` runs the optimised ones.
# Claims that draw many random chains or prompts run 2.5 times longer so: they get the first level. Each of two workers begins with
# half of the files, which share programs, and takes tests from the other when it has none left. Programs in one part (WHOLE)
# differ from those in several by a unit or two of the last digit at level 0; those of workers of `verify` do not.
WHOLE         := --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1
QUICK_COMPILE := --xla_backend_optimization_level=0 $(WHOLE)
QUICK_RUN     := --xla_backend_optimization_level=1 $(WHOLE)
CHAINS        := $(foreach f,advise causal homogenized,tests/claim/$(f)/test_$(f)_claims.py)
PYTEST        := NPROC=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --max-worker-restart 0 -m "not slow" --dist worksteal

test: $(PROBE) lint
	XLA_FLAGS="$(QUICK_RUN)" $(PYTEST) $(CHAINS)
	XLA_FLAGS="$(QUICK_COMPILE)" $(PYTEST) $(addprefix --ignore=,$(CHAINS))

full: $(STAMP)
	$(BIN)/pathlines verify --full --report pathlines-report-full.html

docs: $(STAMP)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo "docs/_build/html/index.html"

# With kernels for common processors inside, so that whoever installs it needs no compiler and waits for none.
wheel: $(STAMP)
	$(BIN)/python -m pathlines.kernels.native.prebuilt
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Pathlines needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(STAMP)

# Torch for a CPU, and real weights in a package whose own requirements (chemistry, an older transformers) are not needed.
$(PROBE): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt "torch==2.13.0+cpu" transformers \
	  && $(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps rxnmapper \
	  || echo "Your package index has no torch for a CPU: tests of real models will be skipped."
	touch $(PROBE)

clean:
	rm -rf $(VENV) dist src/pathlines/kernels/native/prebuilt docs/_build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
