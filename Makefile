# Everything runs in a virtual environment of its own; make and python3 (3.11 or later) suffice.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help landscape reproduce test attack bench lint docs gallery notebooks registry proofs matrix clean

# (these targets replace the files in out/)
landscape: $(VENV)/.ready  ## the regret landscape of DP-SGD: figure, CSV and NetCDF in out/
	mkdir -p out
	cd out && ../$(BIN)/jaxgdp landscape --force

help:  ## this list
	@awk -F ':.*##  *' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

reproduce: $(VENV)/.ready  ## figures and tables of five papers, in out/
	mkdir -p out
	$(BIN)/jaxgdp reproduce gomez2025 --output out/gomez2025 --force
	$(BIN)/jaxgdp reproduce kulynych2024 --output out/kulynych2024 --force
	$(BIN)/jaxgdp reproduce liu2022 --output out/liu2022 --force
	$(BIN)/jaxgdp reproduce negoescu2023 --output out/negoescu2023 --force
	$(BIN)/jaxgdp reproduce chua2024 --output out/chua2024 --force

test: $(VENV)/.ready  ## all tests
	$(BIN)/python -m pytest tests jaxgdp --doctest-modules -n 2 --dist loadfile --no-loadscope-reorder

attack: $(VENV)/.ready  ## random settings against exact answers (new ones every day), and the longest tests
	$(BIN)/python -m tests.attack --number 1000
	$(BIN)/python -m tests.attack.nesting --number 20
	$(BIN)/python -m tests.attack.proofs --number 200
	$(BIN)/python -m pytest tests -m nightly

bench: $(VENV)/.bench-ready  ## all benchmarks, and the README's tables of them
	$(BIN)/python benchmarks/first_answer.py
	$(BIN)/python benchmarks/landscape_speed.py
	$(BIN)/python benchmarks/composition_speed.py
	$(BIN)/python benchmarks/calibration_speed.py
	$(BIN)/python benchmarks/group_privacy_speed.py
	$(BIN)/python benchmarks/scale_speed.py
	$(BIN)/python benchmarks/training_speed.py
	$(BIN)/python benchmarks/update_readme.py

lint: $(VENV)/.ready  ## linter and formatter, without changing anything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

docs:  ## the documentation, in out/docs; a warning is an error
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir out/docs

registry: $(VENV)/.ready  ## docs/registry.md, with every number computed again
	$(BIN)/python docs/make_registry.py

proofs: $(VENV)/.ready  ## docs/proofs.md, with every number proven again; six minutes of one core where all are
	$(BIN)/python docs/make_proofs.py

gallery: $(VENV)/.ready  ## the figures of the gallery, minutes
	$(BIN)/python docs/draw_gallery.py

notebooks: $(VENV)/.ready  ## run the notebooks, store their outputs and check them; takes minutes
	$(BIN)/python notebooks/run.py
	$(BIN)/python -m pytest tests/docs/test_notebooks.py -m "not slow"

matrix:  ## the supported range of Python and JAX
	.ci/matrix

clean:  ## remove the files that the other targets made, but not out/
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find jaxgdp tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("jaxgdp needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[all,test,docs]"
	touch $@

$(VENV)/.bench-ready: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable ".[all,test,docs,bench]"
	touch $@
