# rexmit: everything a person or CI does, each behind one word. `make help` lists them.
CARGO ?= cargo
SEEDS ?= 3000

.PHONY: help demo test test-long bench doc lint setup clean

help: ## list these targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: ## replay a game stream over a lossy path, compare the recovery profiles, write a report
	@$(CARGO) run --release -p rexmit-cli -- demo

test: setup ## all tests: units, scripts, random operations, fuzz, real peers (short forms)
	$(CARGO) test --quiet
	scripts/interop --messages 500

test-long: setup ## the same at full length, thousands of seeds; and CMT compared with ns-2
	REXMIT_SEEDS=$(SEEDS) $(CARGO) test --quiet --release
	scripts/interop --messages 10000
	scripts/ns2

bench: setup ## ratios against rivals and limits, measured in one run
	@bench/run

doc: ## the documentation of every crate, in target/doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --workspace --no-deps

lint: ## format and clippy, as CI checks them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace --all-targets -- -D warnings

setup: ## install what the tests need beyond Rust (as root), or say what is missing
	@scripts/setup

clean: ## remove everything that was built
	$(CARGO) clean
	$(MAKE) --no-print-directory -C interop clean
