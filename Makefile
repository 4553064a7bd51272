# make reproduce            every stage of the micro preset: no network beyond PyPI, no GPU
# make reproduce PRESET=laptop DATA=dir BUDGET=30m     public data from dir, counts for half an hour
# make eval PRESET=laptop ARGS="limit=5"
PRESET ?= micro
ARGS ?=
# make eval METHODS=full,sumr: others than those of the preset's sweep
METHODS ?=

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
STAGE = $(BIN)/python -m $(1) preset=$(PRESET) $(LOCAL) $(ARGS)
LOCAL = $(if $(DATA),files=local files.directory=$(DATA)) $(if $(BUDGET),budget=$(BUDGET))
# A preset may have a sweep and a grid of its own, under its name.
OWN_SWEEP = $(wildcard configs/sweep/$(PRESET).yaml)
SWEEP = $(if $(METHODS),method=$(METHODS),sweep=$(if $(OWN_SWEEP),$(PRESET),methods))
GRID = $(if $(wildcard configs/grid/$(PRESET).yaml),fidelity)
GRIDS = $(PRESET),ambiguities
# glibc hands large buffers back to the kernel after each use, which costs a CPU run half its time in page faults.
export MALLOC_MMAP_THRESHOLD_ = 4294967296
export MALLOC_TRIM_THRESHOLD_ = 17179869184
export TOKENIZERS_PARALLELISM = false

.PHONY: help env reproduce data train eval fidelity study finetuned steps report plan bench test lint clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

env: .venv/ready ## set up .venv from pyproject.toml and constraints.txt

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

# A teacher that the stage serves itself with transformers needs a few packages more.
SERVING = $(if $(shell grep -s 'teacher: transformers_serve' configs/preset/$(PRESET).yaml),.venv/serving)

.venv/serving: .venv/ready
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[serving]"
	touch $@

reproduce: data train eval $(GRID) report ## data_gen -> train -> eval -> report; only what is missing

data: env $(SERVING) ## write, summarize and build the training set
	$(call STAGE,data_gen.prepare)
	$(call STAGE,data_gen.summarize)
	$(call STAGE,data_gen.build)

train: env ## fine-tune with LoRA and export the merged model
	$(call STAGE,train.sft)
	$(call STAGE,train.export)

# ZoomR's cell comes first, since it sets the budget that others match.
eval: env ## generate with every method, then score
	$(if $(OWN_SWEEP),,$(call STAGE,eval.generate))
	$(call STAGE,eval.generate) -m $(SWEEP)
	$(call STAGE,eval.score)

fidelity: env ## what each method does to the predictions on given traces
	$(call STAGE,eval.fidelity) $(if $(GRID),-m grid=$(GRIDS))

# Everything that results/micro and micro_zoomed tell of: make study ARGS=benchmark.count=500
study: data train ## the micro world at length: c, k, window, who votes, what the paper leaves open
	$(MAKE) eval
	$(call STAGE,eval.generate) -m method=zoomr,random_zoom,recency_zoom method.c=1,3,4
	$(call STAGE,eval.generate) -m method=zoomr method.k=1,3,4
	$(call STAGE,eval.generate) -m method=zoomr option=looking_heads method.c=1,2,3,4
	$(call STAGE,eval.generate) -m sweep=ambiguities
	$(call STAGE,eval.generate) -m sweep=windows
	$(call STAGE,eval.score)
	$(call STAGE,eval.bench) checkpoint=runs/$(PRESET)/export/latest bench.lengths=[512,1024,2048] bench.window=80
	$(MAKE) finetuned steps report
	$(MAKE) data train eval PRESET=micro_zoomed METHODS=zoomr,full,random_zoom,recency_zoom,given_zoom
	$(MAKE) eval steps report PRESET=micro_zoomed METHODS="zoomr option=looking_heads"

# In runs of its own, so that its 1,000 problems are not compared with cells of fewer.
FINETUNED = paths.runs=runs/$(PRESET)_finetuned benchmark.count=1000
finetuned: env ## what fine-tuning changed of accuracy with a full cache, and whether answers keep to the format
	$(call STAGE,eval.generate) -m sweep=finetuning checkpoint=base,runs/$(PRESET)/export/latest $(FINETUNED)
	$(call STAGE,eval.score) $(FINETUNED)
	$(call STAGE,eval.finetuned) $(FINETUNED)

steps: env ## which look-ups each method gets right, on ledgers
	$(call STAGE,eval.steps)

report: env ## tables and figures under results/
	$(call STAGE,eval.report)

plan: env ## what a preset costs: tokens, GPU-hours, endpoint, disk
	$(call STAGE,eval.plan)

bench: env ## decoding speed against sequence length, to results/bench/
	$(call STAGE,eval.bench) bench.output=results/bench/decode.json

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
