# The commands of this tree. `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Slow things (root file systems, wheels, tool venvs) live here under a hash of what they are made from.
export GPUSERVE_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/gpuserve-sglang
PYTHON ?= /usr/bin/python3
# ansible-test cannot bear a version manager's shims: Debian's own folders alone.
export PATH := $(CURDIR)/.build/venv/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
export ANSIBLE_CONFIG := $(CURDIR)/ansible.cfg
# The labs of the fault matrix, a number behind it for each: those that are up are used, and left up.
FAULTS_LAB := faults
# Written by tests/faults.
FAULTS := .build/faults
# Written by molecule/conftest.py.
FAILED_TESTS := .build/failed-tests.txt
COLLECTION := .build/collections/ansible_collections/gpuserve/sglang

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: setup
setup: ## the checkout's own venv and the link that makes every FQCN resolve
	@scripts/setup.sh "$(PYTHON)" "$(COLLECTION)"

.PHONY: lint
lint: setup ## yamllint, ansible-lint (production), ruff, mypy, changelog fragments
	yamllint --strict .
	ruff check .
	ruff format --check .
	mypy -p ansible_collections.gpuserve.sglang.plugins.module_utils -p lab
	antsibull-changelog lint
	ansible-lint --offline -q

.PHONY: unit
unit: setup ## unit tests
	pytest -q -n 2

.PHONY: sanity
sanity: setup ## ansible-test sanity, with no container
	@scripts/sanity.sh

.PHONY: build
build: setup ## the collection as a tarball, installed once from it
	@scripts/build.sh .build/dist

.PHONY: molecule
molecule: sandbox-check setup ## the scenarios on real LXC containers (SCENARIO=default for one)
	@rm -f $(FAILED_TESTS)
	GPUSERVE_LAB=$(or $(TEST_LAB),test) molecule test $(if $(SCENARIO),-s $(SCENARIO),--all) || { \
	  echo "Failed tests:" >&2; cat $(FAILED_TESTS) >&2 || true; exit 1; }

.PHONY: test-faults
test-faults: sandbox-check setup ## each fault on a lab, repaired by a rerun, and docs/faults.md written (1 hour and a half; no part of make test)
	rm -rf $(FAULTS)
	@$(MAKE) $(MODELS)/.made
	GPUSERVE_LAB=$(FAULTS_LAB) pytest -q -n 2 --maxschedchunk=1 tests/faults
	python scripts/faults.py

.PHONY: bench-download
bench-download: setup ## throughput of a download against `hf download` from the same server
	python benchmarks/download.py

.PHONY: bench-run
bench-run: setup ## what a run of the main playbook costs when there is nothing to do, on the running sandbox
	python benchmarks/run.py

.PHONY: test
test: lint unit sanity build ## everything; what needs containers is named and not run where they cannot be had
	@if $(LAB) check; then $(MAKE) molecule; else \
	  echo "NOT RUN: the molecule scenarios ($$(cd molecule && ls -d */ | tr -d / | xargs)), since this machine cannot run containers, as said above." >&2; \
	  if [ "$${CI:-}" = true ]; then echo "In CI that is a failure." >&2; exit 1; fi; \
	fi

# --- the sandbox -----------------------------------------------------------------------------------------------------
export GPUSERVE_LAB ?= demo
LAB := $(PYTHON) -m lab
SANDBOX := -i inventories/sandbox
STANDINS := $(CURDIR)/lab/engine/standins
MODELS := $(CURDIR)/.build/models
WHEELHOUSE := $(GPUSERVE_CACHE)/wheelhouse

.PHONY: sandbox-check
sandbox-check:
	@$(LAB) check

$(MODELS)/.made: lab/engine/models.py
	@python -m lab.engine.models $(MODELS) && touch $@

.PHONY: sandbox-up
sandbox-up: sandbox-check setup
	@$(MAKE) $(MODELS)/.made
	@mkdir -p $(WHEELHOUSE)
	@$(LAB) up --mount $(WHEELHOUSE):/srv/lab/wheelhouse --mount $(MODELS):pve:/srv/hub/lab --mount $(STANDINS):/srv/lab/standins
	@ansible-playbook playbooks/wheelhouse.yml $(SANDBOX) -e wheelhouse_path=$(WHEELHOUSE)

.PHONY: sandbox
sandbox: sandbox-up ## build the lab and run the main job on it
	ansible-playbook playbooks/k26_eagle3.yml $(SANDBOX)

.PHONY: sandbox-shell
sandbox-shell: ## a shell in the lab's container (HOST=pve: on its Proxmox host)
	@$(LAB) shell $(or $(HOST),ct200)

.PHONY: sandbox-down
sandbox-down: ## remove every trace of the lab
	@$(LAB) down

.PHONY: demo
demo: sandbox ## the main job on the sandbox, then a second run that changes nothing
	ansible-playbook playbooks/k26_eagle3.yml $(SANDBOX)
	@echo "The sandbox is still up. make sandbox-shell looks into it, make sandbox-down removes it."
