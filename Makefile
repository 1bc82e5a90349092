# Every target sets up what it needs. Choices that belong to the machine are variables:
#   PYTHON=python3.12      the interpreter to build .venv from (3.11 or newer)
#   TORCH_INDEX=<url>      another package index for torch alone: a CPU-only or a CUDA build
#   PIP_ARGS="..."         further arguments for every pip install
#   TABLE=file.csv         the table for `make demo`, whose results go to demo-out/file/
#   ENCODING=cp1252        the encoding of that table, if it is not UTF-8
#   TIMES=80               how many times the suite's generated tables `make test-properties` tries
#   TESTS=tests/gcvae      the tests whose wordings `make wordings` keeps as they are
#   FAULTS=300 JOBS=60     how many faults `make test-faults` injects, over how many jobs at least
#   FAULT_ARGS="..."       its other arguments: --seed, --real-share, --logs, ...
#   CALLS=20000            how many calls `make test-api` makes
#   GUIDED=20000           how many of each kind `make test-guided` reads
#   INPUTS=100000          how many hostile inputs `make test-fuzz` reads; ABUSE_ARGS="--seed 1"
#   AUDIT_ARGS="..."       arguments of pip-audit: -s osv asks another list of vulnerabilities
#   BENCH_ARGS="..."       arguments for the benchmark: --tables, --models, --seeds, ...
#   LOAD_ARGS="..."        arguments for the load: --seconds, --samplers, --note, ...
#   EXPERIMENTS="auto"      which experiments of the paper, all if none, and --budget

NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(or $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c '$(NEW_ENOUGH)' 2>/dev/null && { echo $$p; break; }; done),python3)
TORCH_INDEX ?=
PIP_ARGS ?=
TABLE ?=
ENCODING ?=
export TABLE ENCODING  # the shell takes it from the environment: a name may have quotes and spaces
BENCH_ARGS ?=
LOAD_ARGS ?=
EXPERIMENTS ?=
QUICK_OUT := experiments-out
TIMES ?= 80
FAULTS ?= 300
JOBS ?= 60
FAULT_ARGS ?=
CALLS ?= 20000
INPUTS ?= 100000
GUIDED ?= 20000
ABUSE_ARGS ?=
AUDIT_ARGS ?=
HOST ?= 127.0.0.1
PORT ?= 8000
TESTS ?= tests
SECRETS_DIR ?= secrets

VENV := .venv
IMAGE_VENV := .venv-image
IMAGE_PIP := $(IMAGE_VENV)/bin/python -m pip install --disable-pip-version-check $(PIP_ARGS)
PIP := $(VENV)/bin/python -m pip install --disable-pip-version-check -c constraints.txt $(PIP_ARGS)
# The server needs the library of this clone, and no index has it: they are always named together.
LIBRARY := -e .
SERVER := -e ./server
CLIENT := -e ./gcvae_client
OURS := gcvae gcvae-server gcvae-client
TORCH := $(shell grep '^torch==' constraints.txt)

.PHONY: help setup demo serve docs notebooks secrets test test-all durations fitted wordings test-properties test-report test-faults test-api test-fuzz test-guided lint lock audit bench bench-protocols bench-rules bench-speed load known-truth experiments experiments-quick clean

help:
	@echo "make setup   make $(VENV) with gcvae on it: library, command, client and server"
	@echo "make demo    the whole way on a real table, into demo-out/"
	@echo "             (TABLE=x/file.csv: on yours, into demo-out/file/; ENCODING=cp1252)"
	@echo "make serve   the service on $(HOST):$(PORT)"
	@echo "make docs    the documentation as a site, into service/site/guide/: the service shows it at /guide"
	@echo "make notebooks   runs the notebooks of docs/ anew, and keeps what they print"
	@echo "make secrets the passwords of docker-compose.yml, into $(SECRETS_DIR)/; none is replaced"
	@echo "make test    the test suite, briefly: every behaviour once"
	@echo "make test-all   the whole suite: browser, system, faults, packaging, notebooks, six presets"
	@echo "make durations  the whole suite, and where its time goes into tests/durations.md"
	@echo "make fitted  fits the models anew that tests begin with, into tests/fitted/"
	@echo "make wordings    the errors' texts as they are now, into tests/wordings.json; TESTS=tests/gcvae"
	@echo "make test-properties   the laws of every table, on TIMES=80 times as many generated tables"
	@echo "make test-report   how often the attacks of a report raise an alarm where nothing leaks"
	@echo "make test-faults   FAULTS=300 faults over JOBS=60 jobs, on real servers: half an hour"
	@echo "make test-api    CALLS=20000 calls of the whole REST API, half of them not allowed"
	@echo "make test-fuzz   INPUTS=100000 hostile files, documents, bodies and models"
	@echo "make test-guided GUIDED=20000 of each kind, changed along the code that they reach"
	@echo "make lint    ruff, mypy and the import contracts"
	@echo "make lock    requirements.lock from constraints.txt: what an image holds, with hashes"
	@echo "make audit   an image's packages beside known vulnerabilities and allowed licences; sbom.json"
	@echo "make known-truth   scores beside true log densities, of tables from known distributions"
	@echo "make bench   quality beside the peers, into docs/quality.md"
	@echo "make bench-protocols   detection as other papers measure it, into docs/protocols.md"
	@echo "make bench-speed   time beside the machine's limits, into docs/performance.md"
	@echo "make bench-rules   how many drawn rows keep the rules of flights and of generated orders"
	@echo "make experiments   the paper's tables and figures, hours, into docs/paper.md"
	@echo "make experiments-quick   the same page of barely trained models, into $(QUICK_OUT)/"
	@echo "make load    210 clients for 5 minutes while a job trains, into benchmarks/results/"

setup: $(VENV)/.installed

demo: $(VENV)/.installed
	$(VENV)/bin/gcvae demo $(if $(TABLE),--table "$$TABLE") $(if $(ENCODING),--encoding "$$ENCODING")

serve: $(VENV)/.installed
	$(VENV)/bin/gcvae serve --host $(HOST) --port $(PORT)

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet

notebooks: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.long.notebooks

# The folder is closed, the files are open: each container's own user reads those it is given.
# An API key has its own form: catalog/access/keys.py.
secrets:
	@mkdir -p -m 700 $(SECRETS_DIR)
	@for name in $$(grep -oE 'file: .*/\w+$$' docker-compose.yml | sed 's:.*/::'); do \
	  test -s $(SECRETS_DIR)/$$name || { umask 022; random() { od -An -N$$1 -tx1 /dev/urandom | tr -d ' \n'; }; \
	    case $$name in api_key) printf 'gcv_%s_%s' $$(random 13) $$(random 24);; *) random 24;; esac \
	    > $(SECRETS_DIR)/$$name; }; done
	@echo "$(SECRETS_DIR)/ holds: $$(ls $(SECRETS_DIR) | tr '\n' ' ')"

# worksteal: neighbours stay together, so that what a file's tests share is made once.
PYTEST := OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n 2 --dist worksteal

test: $(VENV)/.installed-dev
	$(PYTEST) --ignore=tests/long -m "not slow" $(PYTEST_ARGS)

test-all: $(VENV)/.installed-dev
	GCVAE_TIMES_EXAMPLES=1 $(PYTEST) $(PYTEST_ARGS)

fitted: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.fitted.models

durations: $(VENV)/.installed-dev
	GCVAE_TIMES_EXAMPLES=1 $(PYTEST) -q --durations=0 | $(VENV)/bin/python -m tests.durations \
	  > tests/durations.md

# Of the files that have any: the others would only take time.
wordings: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 GCVAE_TIMES_EXAMPLES=1 $(VENV)/bin/python -m pytest --write-wordings $(PYTEST_ARGS) \
	  $$(grep -rl --include='test_*.py' 'from tests.wordings import' $(TESTS))

test-properties: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 GCVAE_TIMES_EXAMPLES=$(TIMES) $(VENV)/bin/python -m pytest -n 2 \
	  tests/gcvae/test_generated_tables.py tests/gcvae/test_saved_and_loaded.py \
	  -o faulthandler_timeout=7200 $(PYTEST_ARGS)

test-report: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 GCVAE_TIMES_EXAMPLES=8 $(VENV)/bin/python -m pytest -s \
	  tests/gcvae/evaluation/report/test_no_leak.py $(PYTEST_ARGS)

test-faults: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.faults --faults $(FAULTS) --jobs $(JOBS) $(FAULT_ARGS)

test-api: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.abuse.api --calls $(CALLS) $(ABUSE_ARGS)

test-fuzz: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.abuse.fuzz --inputs $(INPUTS) $(ABUSE_ARGS)

test-guided: $(VENV)/.installed-dev
	for subject in csv parquet schema json manifest; do \
	  OMP_NUM_THREADS=1 $(VENV)/bin/python -m tests.abuse.guided $$subject --inputs $(GUIDED) || exit 1; done

lint: $(VENV)/.installed-dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# Without torch, whose build the machine decides, and without what its CUDA build alone asks for.
# hatchling builds our packages: it is as little taken on trust as the others.
lock: $(VENV)/.installed-supply
	printf '%s\n' hatchling '$(LIBRARY)' '$(SERVER)[postgres,mysql,redis,traces]' '$(CLIENT)' \
	  | $(VENV)/bin/uv pip compile - --quiet --constraint constraints.txt --universal \
	    --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-package gcvae --no-emit-package gcvae-server --no-emit-package gcvae-client \
	    -o requirements.lock.partial > /dev/null
	awk '/^[[:alpha:]]/ {kept = !/^(torch|triton|nvidia-|cuda-)/} kept' requirements.lock.partial \
	  > requirements.lock
	rm requirements.lock.partial

# The same packages in the same way as the Dockerfile.
$(IMAGE_VENV)/.installed: requirements.lock constraints.txt Makefile
	rm -rf $(IMAGE_VENV) && $(PYTHON) -m venv $(IMAGE_VENV)
	$(IMAGE_PIP) --require-hashes -r requirements.lock
	$(IMAGE_PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	$(IMAGE_PIP) --no-deps --no-build-isolation . './server[postgres,mysql,redis,traces]' ./gcvae_client
	$(IMAGE_VENV)/bin/python -m pip check
	touch $@

audit: $(VENV)/.installed-supply $(IMAGE_VENV)/.installed
	$(VENV)/bin/pip-licenses --python $(IMAGE_VENV)/bin/python --from mixed \
	  --ignore-packages $(OURS) > $(IMAGE_VENV)/licences.txt
	$(VENV)/bin/cyclonedx-py environment $(IMAGE_VENV)/bin/python --pyproject pyproject.toml \
	  --output-reproducible -o sbom.json
	$(VENV)/bin/pip-audit --strict --disable-pip --no-deps -r constraints.txt $(AUDIT_ARGS)

# Of the peers those run that are installed (extra `bench`); the others' dated results are shown.
bench: $(VENV)/.installed
	$(VENV)/bin/python -m benchmarks.quality --merge benchmarks/results/peers-*.json $(BENCH_ARGS)

bench-protocols: $(VENV)/.installed
	$(PIP) $(LIBRARY)'[protocols]'
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m benchmarks.protocols $(BENCH_ARGS)

bench-rules: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m benchmarks.rules $(BENCH_ARGS)

# MOSTLY AI's own figures are those of its dated results.
bench-speed: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m benchmarks.speed $(BENCH_ARGS)

load: $(VENV)/.installed
	$(PIP) $(LIBRARY)'[load]'
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m benchmarks.load $(LOAD_ARGS)

experiments: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m experiments $(EXPERIMENTS)

experiments-quick: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m experiments $(EXPERIMENTS) --budget look \
	  --results $(QUICK_OUT) --page $(QUICK_OUT)/paper.md

known-truth: $(VENV)/.installed
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m benchmarks.known_truth.scores

clean:
	rm -rf $(VENV) demo-out build dist *.egg-info

$(VENV)/bin/python:
	@$(PYTHON) -c '$(NEW_ENOUGH)' || { echo "gcvae needs Python 3.11 or newer, and $(PYTHON) is\
	 $$($(PYTHON) --version 2>&1). Name a newer one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# torch comes first, alone, so that TORCH_INDEX decides its build and nothing else.
$(VENV)/.installed: pyproject.toml server/pyproject.toml gcvae_client/pyproject.toml \
  constraints.txt Makefile | $(VENV)/bin/python
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH)
	$(PIP) $(LIBRARY) $(SERVER) $(CLIENT)
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) $(LIBRARY)'[docs]'
	touch $@

$(VENV)/.installed-supply: $(VENV)/.installed
	$(PIP) $(LIBRARY)'[dev,supply]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) $(LIBRARY)'[dev,docs]' $(SERVER)'[postgres,mysql,redis,traces]' $(CLIENT)
	touch $@
