# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Each makes its own .venv; nothing has to be installed by hand but Python 3.11+, git and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= auto

.PHONY: demo test check format bench-startup clean

demo: $(STAMP)
	$(BIN)/python -m headway.demo

test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_imports.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench-startup: $(STAMP)
	$(BIN)/python bench/startup.py

clean:
	rm -rf $(VENV) dist build

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Headway needs Python 3.11 or newer; run make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
