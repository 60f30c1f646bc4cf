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
	mypy -p ansible_collections.gpuserve.sglang.plugins.module_utils
	antsibull-changelog lint
	ansible-lint --offline -q

.PHONY: unit
unit: setup ## unit tests
	pytest -q -n 2
