# make reproduce            every stage of the micro preset: no network beyond PyPI, no GPU
# make reproduce PRESET=laptop DATA=dir BUDGET=30m     public data from dir, counts for half an hour
# make eval PRESET=laptop ARGS="limit=5"
PRESET ?= micro
ARGS ?=

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
GIVEN = preset=$(PRESET) $(if $(DATA),files=local 'files.directory="$(DATA)"') $(if $(BUDGET),time_limit=$(BUDGET)) $(ARGS)
STAGES = $(BIN)/python -m pipeline install=true $(GIVEN)
# glibc hands large buffers back to the kernel after each use, which costs a CPU run half its time in page faults.
export MALLOC_MMAP_THRESHOLD_ = 4294967296
export MALLOC_TRIM_THRESHOLD_ = 17179869184
export TOKENIZERS_PARALLELISM = false

.PHONY: help env reproduce data train eval fidelity study report publish plan bench test lint clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

env: .venv/ready ## set up .venv from pyproject.toml and constraints.txt

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

reproduce: env ## data_gen -> train -> eval -> report: the preset's stages; only what is missing
	$(STAGES)

data: env ## write, summarize and build the training set
	$(STAGES) only=data_gen

train: env ## fine-tune with LoRA and export the merged model
	$(STAGES) only=train

eval: env ## generate with every method, then score
	$(STAGES) only=eval.generate
	$(STAGES) only=eval.score

fidelity: env ## what each method does to the predictions on given traces
	$(STAGES) only=eval.fidelity

report: env ## tables and figures under runs/<preset>/report/
	$(STAGES) only=eval.report

study: ## all that results/micro and results/micro_zoomed tell of
	$(MAKE) reproduce PRESET=micro_study
	$(MAKE) reproduce PRESET=micro_zoomed ARGS="benchmark.count=500 $(ARGS)"

publish: ## copy the preset's report to results/, which is committed
	mkdir -p results/$(PRESET)
	cp runs/$(PRESET)/report/* results/$(PRESET)/

plan: env ## what a preset costs: tokens, GPU-hours, endpoint, disk
	$(BIN)/python -m eval.plan $(GIVEN)

bench: env ## decoding speed against sequence length, to results/bench/
	$(BIN)/python -m eval.bench bench.output=results/bench/decode.json $(ARGS)

# The oldest transformers that pyproject.toml allows, in front of the installed one for the tests that it could break.
OLDEST = $(shell sed -nE 's/^ *"transformers>=([0-9.]+),.*/transformers==\1/p' pyproject.toml)
.venv/oldest: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $@ $(OLDEST)
	touch $@

test: lint .venv/oldest ## lint, types, tests at both ends of transformers' range
	PYTHONPATH=.venv/oldest OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/zoomr/test_generate.py tests/zoomr/test_loading.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: env ## ruff and mypy
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

clean: ## remove .venv and runs/, keep results/
	rm -rf .venv runs *.egg-info
