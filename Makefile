# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types tests docs bench format lock clean

demo: $(READY)  ## explore Mountain Car with no reward, and draw what is known of it
	$(BIN)/python examples/mountain_car.py

test: lint types tests  ## everything that CI checks

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/pyright

tests: $(READY)
	$(BIN)/pytest -n 2 --dist worksteal --durations=15  # neighbours stay together: they share what is compiled

docs: $(READY)  ## the documentation as a static site in site/; warnings, broken links too, are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html"

bench: $(READY)  ## the speed of the core, as shares of this machine's matrix-multiply rate; and what durability costs
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/durability.py

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(READY)  ## resolve the dependencies of pyproject.toml anew
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --extra dev --upgrade \
		--no-emit-index-url --custom-compile-command "make lock" pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) site .pytest_cache .ruff_cache .hypothesis

# Everything at its locked version; the package itself editable, built by the locked build tool.
$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; sys.version_info >= (3, 11) or sys.exit('maxplore needs Python 3.11 or newer, got ' + sys.version.split()[0] + ': run make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $(READY)
