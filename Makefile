# Two commands do everything on a fresh machine: `make demo` and `make test`.
# Each makes its own .venv; nothing has to be installed by hand but Python 3.11+, git and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= $(shell expr $$(nproc) + 2)
BENCH_VENV  := bench/.venv
BENCH_STAMP := $(BENCH_VENV)/.installed

RUNNERS := build/runners

KILLS  ?= 10000
STORE  ?= both
SIM_STORE = $(if $(filter both,$(STORE)),sqlite,$(STORE))

.PHONY: demo test test-quick test-plain coverage mutants test-runners torture check format bench bench-startup hops openapi pictures dist clean

demo: $(STAMP)
	$(BIN)/python -m headway.admin.demo

# Two processes more than there are processors: tests often wait for others to act.
test: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

# Some tests of functions with the fast lane off: the general way settles the same rows, slower.
# The whole suite passes so: make test ARGS=--without-fastlane
PLAIN := test_tasks test_retry_functions test_cancel_functions test_graph_functions test_hosts_life
test-plain: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --without-fastlane \
	  $(PLAIN:%=tests/functions/%.py) $(ARGS)

# What needs no process of its own and no server (tests/support/kinds.py): under a minute.
test-quick: $(STAMP)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not processes" $(ARGS)

# The lines that all tests run, in all processes; one total at the end (tests/support/linecoverage.py).
coverage: $(STAMP)
	$(BIN)/python tests/support/linecoverage.py -q -n $(JOBS) --dist worksteal $(ARGS)

# Known mistakes, made one at a time in a copy: the tests named with each must turn red.
# ARGS="core -k lock" tries some, ARGS=--list shows them. CONTRIBUTING.md
mutants: $(STAMP)
	PYTHONPATH=tests:tests/support $(BIN)/python -m mutants $(ARGS)

# The real agent programs, from npm, against a model API on this machine. docs/agents.md
test-runners: $(STAMP) $(RUNNERS)/.installed
	HEADWAY_TEST_PROGRAMS=$(CURDIR)/$(RUNNERS)/node_modules/.bin \
	  $(BIN)/python -m pytest -v tests/integrations/agents/real_programs.py tests/mcp/real_agents.py $(ARGS)

$(RUNNERS)/.installed: tests/integrations/agents/package.json
	@command -v npm >/dev/null || { echo 'npm is missing; install Node.js 20 or newer'; exit 1; }
	mkdir -p $(RUNNERS) && cp tests/integrations/agents/package.json $(RUNNERS)/
	npm install --prefix $(RUNNERS) --no-audit --no-fund --loglevel=error
	@touch $@

# KILLS=500 SEED=7 STORE=sqlite, postgres or both; SIM=1000000 simulates that many jobs, and
# STORIES=5000 tells that many random stories to each store, ZONES=all walks the minutes around
# each change of the clocks of all time zones, and SCHEDULES=200 fires so many schedules every
# second for SECONDS (60) under kills, TERMINATIONS=50 ends the connections of a worker on PostgreSQL
# so often, CHANGES=300 kills the worker and the operations of a workflow, and DELIVERIES=50000 sends so
# many webhooks by couriers that are killed 200 times (ARGS="--kills 50"), instead. docs/torture.md
torture: $(STAMP)
ifdef SIM
	PYTHONPATH=tests:tests/support $(BIN)/python -m simulation --jobs $(SIM) --store $(SIM_STORE) $(if $(SEED),--seed $(SEED)) $(ARGS)
else ifdef STORIES
	HEADWAY_EXAMPLES=$(STORIES) $(BIN)/python -m pytest -n $(JOBS) tests/store/test_store_stateful.py $(ARGS)
else ifdef SCHEDULES
	PYTHONPATH=tests:tests/support $(BIN)/python -m torture.timetable --schedules $(SCHEDULES) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(ARGS)
else ifdef TERMINATIONS
	PYTHONPATH=tests:tests/support $(BIN)/python -m torture.terminations --times $(TERMINATIONS) $(if $(SEED),--seed $(SEED)) $(ARGS)
else ifdef CHANGES
	PYTHONPATH=tests:tests/support $(BIN)/python -m torture.changes --kills $(CHANGES) $(if $(SEED),--seed $(SEED)) $(ARGS)
else ifdef DELIVERIES
	PYTHONPATH=tests:tests/support $(BIN)/python -m torture.deliveries --deliveries $(DELIVERIES) --store $(STORE) $(if $(SEED),--seed $(SEED)) $(ARGS)
else ifdef ZONES
	PYTHONPATH=tests/schedules:tests/support $(BIN)/python -m timing.everywhere $(ARGS)
else
	PYTHONPATH=tests:tests/support $(BIN)/python -m torture --kills $(KILLS) --store $(STORE) $(if $(SEED),--seed $(SEED)) $(ARGS)
endif

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_imports.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# BENCH=quick makes it ten times smaller; ARGS="flat chain" runs only those. docs/benchmarks.md
bench: $(BENCH_STAMP)
	@command -v tsp >/dev/null || [ "$$(id -u)" != 0 ] || apt-get install -y -qq task-spooler >/dev/null \
	  || echo 'task-spooler could not be installed; the table says so'
	BENCH=$(BENCH) $(BENCH_VENV)/bin/python bench/run.py $(ARGS)

bench-startup: $(STAMP)
	$(BIN)/python bench/startup.py

# How many calls, modules and switches of rooms five actions take. ARGS=--json. docs/benchmarks.md
hops: $(STAMP)
	$(BIN)/python bench/hops.py $(ARGS)

# docs/openapi.json from the route table. It refuses to take away what programs rely on. The table of
# docs/mcp.md from the table of tools.
openapi: $(STAMP)
	$(BIN)/python docs/openapi.py
	$(BIN)/python docs/mcp_tools.py

# Draws the pictures of README, docs/views.md and docs/dashboard.md anew, from real jobs: a minute. Those of
# pages need chromium and chromedriver; without, they stay.
pictures: $(STAMP)
	$(BIN)/python docs/night.py
	$(BIN)/python docs/pictures.py
	$(BIN)/python docs/page_pictures.py

# The sdist, and the wheel that is made of it, in dist/. What .venv has builds both: nothing is fetched.
dist: $(STAMP)
	$(BIN)/python -m build --no-isolation $(ARGS)

clean:
	rm -rf $(VENV) $(BENCH_VENV) dist build

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Headway needs Python 3.11 or newer; run make PYTHON=python3.11 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# A peer that cannot be had is left out, one by one, and the table says so.
$(BENCH_STAMP): pyproject.toml bench/requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[postgres,web]'
	@grep -v '^#' bench/requirements.txt | while read -r peer; do \
	  $(BENCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check "$$peer" \
	    || echo "$$peer could not be installed; the table says so"; done
	@touch $@
