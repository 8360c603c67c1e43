# `make install` needs Python 3.11+ and make, nothing else. PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
PROJECTS := pyproject.toml hostspecs/pyproject.toml plugins/curated/pyproject.toml plugins/gateway/pyproject.toml docs/examples/tally/pyproject.toml
STAMP := .venv/.installed

.PHONY: install demo test lint format bench faults docs clean
.DEFAULT_GOAL := install

install: $(STAMP) ## everything, editable, into .venv; a second run does nothing

$(STAMP): $(PROJECTS) constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ./hostspecs -e ./plugins/curated -e ./plugins/gateway -e '.[dev]' -e ./docs/examples/tally
	@touch $@

demo: $(STAMP) ## two runs of `beaver`, one memory; then a turn with a plugin that fails before your eyes
	@$(BIN)/python docs/examples/story.py
	@$(BIN)/python docs/examples/demo.py

test: $(STAMP) ## the test suite with branch coverage; four workers, as many tests wait for processes
	$(BIN)/python -m pytest -n 4 --cov --cov-report=term

lint: $(STAMP) ## ruff, mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## every benchmark, each against its floor
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

faults: $(STAMP) ## the killing and cancelling campaigns, ten times what is in `make test`
	@for round in 1 2 3 4 5 6 7 8 9 10; do \
		$(BIN)/python -m pytest -q tests/integration/test_audit_processes.py tests/integration/test_cancellation.py || exit 1; \
	done
	BEAVER_RUN_KILLS=200 BEAVER_SESSION_KILLS=500 BEAVER_FAULTS=1 $(BIN)/python -m pytest -q -s \
		tests/integration/test_beaver_kills.py tests/integration/test_session_kills.py plugins/curated/tests/test_curated_faults.py
	BEAVER_TURNS=1000 $(BIN)/python -m pytest -q plugins/gateway/tests/test_gateway_in_a_host.py

docs: $(STAMP) ## the generated pages: hooks from the docstrings, the schema from the settings
	$(BIN)/python docs/make_hooks.py
	$(BIN)/python docs/make_cli.py
	$(BIN)/python -m beaver_hooks.config > docs/config.schema.json.new
	mv docs/config.schema.json.new docs/config.schema.json

clean: ## forget the environment and what was built
	rm -rf .venv dist build
