# Everything runs in its own virtual environment; all that is needed is make and python3 (3.11 or later).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: landscape reproduce test attack bench lint docs gallery notebooks matrix clean

landscape: $(VENV)/.ready
	mkdir -p out
	cd out && ../$(BIN)/jaxgdp landscape

reproduce: $(VENV)/.ready
	mkdir -p out
	$(BIN)/jaxgdp reproduce gomez2025 --output out/gomez2025
	$(BIN)/jaxgdp reproduce kulynych2024 --output out/kulynych2024
	$(BIN)/jaxgdp reproduce liu2022 --output out/liu2022
	$(BIN)/jaxgdp reproduce negoescu2023 --output out/negoescu2023
	$(BIN)/jaxgdp reproduce chua2024 --output out/chua2024

test: $(VENV)/.ready
	$(BIN)/python -m pytest tests jaxgdp --doctest-modules -n 2 --dist loadfile

# random settings against exact answers, other ones every day
attack: $(VENV)/.ready
	$(BIN)/python -m tests.attack --number 1000

bench: $(VENV)/.bench-ready
	$(BIN)/python benchmarks/first_answer.py
	$(BIN)/python benchmarks/landscape_speed.py
	$(BIN)/python benchmarks/composition_speed.py
	$(BIN)/python benchmarks/calibration_speed.py
	$(BIN)/python benchmarks/update_readme.py

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

docs:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir out/docs

gallery: $(VENV)/.ready  ## the figures of the documentation's gallery, minutes
	$(BIN)/python docs/draw_gallery.py

notebooks: $(VENV)/.ready  ## runs the notebooks, stores their outputs and checks them, minutes
	$(BIN)/python notebooks/run.py
	$(BIN)/python -m pytest tests/test_notebooks.py -m "not slow"

matrix:
	.ci/matrix

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find jaxgdp tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("jaxgdp needs Python 3.11 or later" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[all,test]"
	touch $@

$(VENV)/.bench-ready: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --editable ".[all,test,bench]"
	touch $@
