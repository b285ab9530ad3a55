# Everything runs from a virtual environment in .venv that the first target makes; `make help` lists targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
SOURCES := operator tests e2e
PYTEST := $(BIN)/python -m pytest
# uv installs for half of the CPU, and by itself. pip goes on where only its own settings say where packages are.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
PYTEST_ARGS ?=
# Tests of the first kind wait half of the time; those of the second more, each process on a control plane of its own.
UNIT_WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) '*' 3 / 2)
E2E_WORKERS ?= 4
CONFORMANCE_ARGS ?=
SEED ?= 2
COUNT ?= 1000
TIMES ?= 20
MINUTES ?= 60
COMPATIBILITY_ARGS ?=
PLAYGROUND_ARGS ?=
AUTOSCALER_ARGS ?=
IMAGE ?= bayplan:0.1.0
PYTHON_TAG ?= python:3.11-slim
LOCK = $(BIN)/uv pip compile --quiet --no-header --no-annotate --generate-hashes --constraint constraints.txt \
  --python-version 3.11 --python-platform linux

# Entry points and modules come from the virtual environment, never from the folder make runs in. What Python compiled is
# kept: compiling the tests anew in each process takes longer than some of them.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv test unit coverage e2e soak oracle devices expressions faults sweep conformance controllers controlplane kubernetes openapi \
  compatibility image wheel lock sbom check collect docs format demo playground bench autoscaler autoscaler-short clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(INSTALLED) ## Make .venv with bayplan, its tests and its checks, in exactly the pinned versions

$(INSTALLED): pyproject.toml development-requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "bayplan needs Python 3.11 or newer, and '$(PYTHON)' is not: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "'$(PYTHON)' cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	sed -n '/^uv==/,/[^\\]$$/p' development-requirements.txt >$(VENV)/uv.txt
	$(PIP) --require-hashes -r $(VENV)/uv.txt
	$(UV) --compile-bytecode --require-hashes -r development-requirements.txt || \
	  $(PIP) --require-hashes -r development-requirements.txt
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

test: unit e2e ## Run all tests; the first time, the control plane is built (about 10 minutes)

unit: $(INSTALLED) ## Run the tests that need no control plane
	$(PYTEST) tests -n $(UNIT_WORKERS) --dist worksteal $(PYTEST_ARGS)

coverage: $(INSTALLED) ## Run the unit tests and list the lines and branches they do not reach
	$(BIN)/coverage run -m pytest tests $(PYTEST_ARGS)
	$(BIN)/coverage report

e2e: controlplane ## Run the scenarios on a real control plane
	$(PYTEST) e2e -m 'not alone' -n $(E2E_WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)
	$(PYTEST) e2e -m alone $(PYTEST_ARGS) || test $$? -eq 5  # pytest's code where arguments select none of them

soak: controlplane ## Have two instances schedule 100 pods a second among everything that happens to a cluster (MINUTES=60)
	$(BIN)/python -m e2e.soak --minutes $(MINUTES)

oracle: controlplane ## Record kube-scheduler's decisions on new random clusters (SEED=2), replay them, and have both decide side by side
	$(BIN)/python -m tests.oracle.record --seed $(SEED) --out build/oracle-$(SEED)
	BAYPLAN_ORACLE_DATA=build/oracle-$(SEED) $(PYTEST) tests/oracle/test_replay.py tests/oracle/test_simulate_command.py $(PYTEST_ARGS)
	$(PYTEST) e2e/scenarios/test_same_decisions.py e2e/scenarios/test_simulate_foretells.py --seed $(SEED) --pods 200 $(PYTEST_ARGS)
	$(BIN)/python -m tests.oracle.gangs.record --family at-random --family preempting --seed $(SEED) --out build/oracle-$(SEED)/gangs
	$(BIN)/python -m e2e.gangs --family at-random --family preempting --seed $(SEED) --recordings build/oracle-$(SEED)/gangs

devices: controlplane ## Compare the search for devices with kube-scheduler's own allocator on new random cases (SEED=2)
	$(BIN)/python -m tests.devices.judge --seed $(SEED)

expressions: $(INSTALLED) ## Ask Kubernetes and bayplan about new random device selectors (SEED=2), and print where they differ
	$(BIN)/python -m tests.cel.record --seed $(SEED)

faults: $(INSTALLED) ## Run random sequences of faults in virtual time (COUNT=1000), and print what breaks a promise
	$(BIN)/python -m tests.faults.sequences --count $(COUNT)

sweep: $(INSTALLED) ## Have the longest property tests try many times as many random clusters (TIMES=20), others each time
	env -u CI BAYPLAN_EXAMPLES_TIMES=$(TIMES) $(PYTEST) -n $(UNIT_WORKERS) --dist worksteal $(PYTEST_ARGS) \
	  tests/evaluation/test_evaluation.py tests/snapshot/test_redacted_decisions.py tests/config/test_convert.py \
	  tests/config/test_policy_conversion.py tests/plugins/preemption/test_kept_selections.py \
	  tests/plugins/preemption/test_properties.py

conformance: controlplane ## Run Kubernetes' own scheduling specs with bayplan as the only scheduler (CONFORMANCE_ARGS='--repeat 3')
	$(BIN)/python -m e2e.conformance $(CONFORMANCE_ARGS)

controllers: controlplane ## Run the samples of mpi-operator and KubeRay under these themselves, which are built the first time
	$(BIN)/python -m e2e.gangs.controllers
	$(PYTEST) -n 0 e2e/gangs/published_samples.py $(PYTEST_ARGS)

controlplane: $(INSTALLED) ## Build the control plane for tests, unless it is cached
	$(BIN)/python -m e2e.controlplane.build

kubernetes: $(INSTALLED) ## Have the control plane built from another Kubernetes (VERSION=1.38.0); CONTRIBUTING.md has the steps
	$(BIN)/python -m e2e.controlplane.change_kubernetes $(VERSION)

openapi: controlplane ## Write anew what simulations check files by, from the OpenAPI document of the API server of go.mod
	$(BIN)/python -m e2e.controlplane.openapi_document

compatibility: $(INSTALLED) ## Apply the manifests to each API server from 1.33 on, built one by one, and schedule there (about an hour)
	$(BIN)/python -m e2e.compatibility $(COMPATIBILITY_ARGS)

image: ## Build the container image (IMAGE=bayplan:0.1.0), on Python's image by its present digest
	docker build --build-arg PYTHON_IMAGE=$(PYTHON_TAG)@$$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' $(PYTHON_TAG)) \
	  --tag $(IMAGE) .

wheel: $(INSTALLED) ## Build what pipx and uv install: dist/bayplan-VERSION-py3-none-any.whl and the source distribution
	rm -rf dist
	$(BIN)/uv build --quiet --out-dir dist

lock: $(INSTALLED) ## Write the versions and hashes of what .venv, the image and the site are made with, from constraints.txt
	$(LOCK) pyproject.toml --output-file image/requirements.txt
	$(LOCK) --group build --output-file image/build-requirements.txt
	$(LOCK) --group docs --output-file docs/requirements.txt
	$(subst --python-platform linux,--universal,$(LOCK)) pyproject.toml --group test --group check --group release --group build \
	  --group venv --output-file development-requirements.txt

sbom: $(INSTALLED) ## Write what the image has of Python's packages as CycloneDX: build/bayplan.cdx.json
	@mkdir -p build
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file build/bayplan.cdx.json \
	  image/requirements.txt

check: $(INSTALLED) ## Check format, lint, types and import contracts
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy
	$(BIN)/mypy --follow-imports=silent -p e2e
	$(BIN)/lint-imports

collect: $(INSTALLED) ## Have pytest compile all tests and keep that, which else each of its processes does
	@$(PYTEST) tests e2e --collect-only -q >/dev/null

docs: $(INSTALLED) ## Build the site of the documents, which needs no server: build/site/index.html
	rm -rf build/site build/site-source
	mkdir -p build/site-source
	git ls-files -z --cached --others --exclude-standard -- '*.md' docs examples image manifests operator | \
	  tar --create --null --files-from=- | tar --extract --directory=build/site-source
	$(BIN)/uv run --quiet --isolated --no-project --with-requirements docs/requirements.txt zensical build --strict

format: $(INSTALLED) ## Format the sources and fix what can be fixed
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

demo: $(INSTALLED) ## Watch the scheduler pack a synthetic cluster, without Kubernetes
	$(BIN)/bayplan demo

playground: controlplane ## Have a cluster on this machine to try bayplan on (PLAYGROUND_ARGS='--nodes 100'); Ctrl-C ends it
	@$(BIN)/python -m e2e.playground $(PLAYGROUND_ARGS)

bench: controlplane ## Measure the engine alone, then bayplan against kube-scheduler on one control plane
	$(BIN)/python -m e2e.bench.simulate
	$(BIN)/python -m e2e.bench
	$(BIN)/python -m e2e.bench.scale
	$(BIN)/python -m e2e.bench.families

autoscaler: controlplane ## Measure node-hours under Karpenter, kube-scheduler and bayplan on the same pods (AUTOSCALER_ARGS='--minutes 5'); an hour
	$(BIN)/python -m e2e.autoscaler $(AUTOSCALER_ARGS)

autoscaler-short: controlplane ## The same for one trace of five minutes, with empty nodes going and no pod being moved
	$(BIN)/python -m e2e.autoscaler --minutes 5 --seeds 1 --consolidation WhenEmpty --out build/autoscaler-short

clean: ## Remove caches and build results, but neither .venv nor the cached control plane
	rm -rf build dist .coverage .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .cache
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
