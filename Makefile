# rexmit: everything a person or CI does, each behind one word. `make help` lists them.
CARGO ?= cargo
SEEDS ?= 3000
PUBLISHED = rexmit-core rexmit-udp rexmit-qlog rexmit-congestion rexmit-deadline rexmit-recovery rexmit-netsim rexmit-sctp rexmit-dtls rexmit-webrtc rexmit-tcp rexmit

.PHONY: help demo web-demo test test-long test-loaded golden golden-renew kernel-host studies studies-check bench soak fuzz doc book lint deny package semver setup install install-c clean

help: ## list these targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: ## replay a game stream over a lossy path, compare the recovery profiles, write a report
	@$(CARGO) run --release -p rexmit-cli -- demo

web-demo: ## a game in a page: its latency per profile and over a WebSocket (as root: with a bad link in between)
	@$(CARGO) run --release -p rexmit-web-game

test: export REXMIT_NOT_RUN = $(CURDIR)/target/not-run
test: setup ## all tests: units, scripts, random operations, fuzz, real peers (short forms), the Python package
	@mkdir -p target && rm -f target/not-run
	$(CARGO) test --quiet --no-fail-fast
	@# They wait more than they compute. The command is that of the tests above: another build of everything for this alone takes minutes.
	REXMIT=$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/rexmit scripts/at-once \
		"scripts/interop --messages 500" "scripts/webrtc-interop --messages 500" scripts/python-test scripts/new-project
	@[ ! -s target/not-run ] || (echo "These tests could not run here:" && sort -u target/not-run)

kernel-host: ## the Linux kernel in which studies with clock = "kernel" run (a few minutes, once; no root)
	scripts/kernel-host

test-long: setup ## the same at full length, thousands of seeds; path MTUs of namespaces (as root); CMT compared with ns-2; runs inside a kernel; programs over SCTP, and against a kernel's
	scripts/kernel-host || echo "without it, tests of runs inside a kernel say that they did not run"
	REXMIT_GOLDEN=all REXMIT_SEEDS=$(SEEDS) $(CARGO) test --quiet --release --no-fail-fast
	@# The limits of docs/security.md that depend on the machine: 10,000 clients of one address, 1000 at once, the cost of packets.
	CLIENTS=1000 $(CARGO) test --quiet --release -p rexmit --test one_address --test starved -- --ignored --nocapture --test-threads 1
	$(CARGO) test --quiet --release -p rexmit-sctp -p rexmit-dtls -p rexmit-tcp --test cost -- --ignored --nocapture
	$(CARGO) test --quiet --release -p rexmit --test bytes -- --ignored
	scripts/interop --messages 10000
	$(CARGO) test --quiet --release -p rexmit-webrtc --test browsers -- --ignored
	scripts/webrtc-interop --messages 10000
	REXMIT_SLURM=1 REXMIT_RAY=1 REXMIT_ROWS=1 REXMIT_FRESH=1 scripts/python-test
	$(CARGO) build --quiet --release -p rexmit-cli
	scripts/setup --long
	scripts/programs --kernel
	scripts/lksctp-tests
	scripts/freediameter
	scripts/freediameter --kernel
	scripts/run-with-kernel
	scripts/path-mtu
	if scripts/kernel-host --check; then scripts/compare-quinn --duration 20s --seeds 1 --fail-above p50=5s; fi
	scripts/ns2

test-loaded: setup ## all tests three times beside eight busy processes, then once on one processor (an hour or more)
	scripts/test-loaded

golden: ## compare every packet and counter of recorded runs with what is recorded in tests/golden
	REXMIT_GOLDEN=all $(CARGO) test --quiet --release -p rexmit-tests --test golden

golden-renew: ## record those runs anew, after a change of behaviour
	REXMIT_GOLDEN=renew $(CARGO) test --quiet --release -p rexmit-tests --test golden behaviour

studies: ## run all studies of the papers, and renew their verdicts in docs/studies.md and docs/claims.md
	$(CARGO) run --profile dist -p rexmit-cli -- study verify papers --yes --renew docs/studies.md
	$(CARGO) run --profile dist -p rexmit-cli -- study statements --markdown >docs/claims.md

studies-check: studies ## the same, and fail if a verdict or a number is not the one that is committed
	git diff --exit-code docs/studies.md docs/claims.md

bench: setup ## ratios against rivals and limits, measured in one run
	@bench/run

soak: ## 10,000 associations for an hour with 5 % loss, one side killed in the middle (SOAK_SECONDS, SOAK_ASSOCIATIONS)
	$(CARGO) build --quiet --release -p rexmit-cli
	scripts/soak

fuzz: ## all fuzz targets with coverage guidance, 10^8 inputs (FUZZ_INPUTS) or FUZZ_SECONDS; keeps fuzz/corpus
	scripts/fuzz

doc: ## the documentation of every crate, in target/doc
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --workspace --no-deps

book: ## the book of docs/, in target/book (installs mdBook under target/mdbook if it is missing)
	@scripts/book

lint: ## format, clippy, lock files, each feature of the library alone, and the number of its dependencies
	$(CARGO) fmt --all --check
	$(CARGO) metadata --locked --format-version 1 --manifest-path interop/rust/Cargo.toml >/dev/null
	$(CARGO) clippy --quiet --workspace --all-targets -- -D warnings
	scripts/features

deny: ## dependencies of both workspaces: licences, sources, vulnerabilities (installs cargo-deny if it is missing)
	@scripts/deny

package: ## the crates that are published, as they would be
	$(CARGO) package --quiet --allow-dirty $(PUBLISHED:%=-p %) $(PACKAGE_FLAGS)

semver: ## the public API of the crates that are published, compared with the last release (installs cargo-semver-checks if it is missing)
	@scripts/semver $(PUBLISHED)

setup: ## install what the tests need beyond Rust (as root), or say what is missing
	@scripts/setup

install: ## the command and what it preloads into programs, under PREFIX (default /usr/local)
	$(CARGO) build --quiet --release -p rexmit-cli -p rexmit-preload
	install -s -D -m 755 $${CARGO_TARGET_DIR:-target}/release/rexmit $(DESTDIR)$(or $(PREFIX),/usr/local)/bin/rexmit
	install -s -D -m 755 $${CARGO_TARGET_DIR:-target}/release/librexmit_preload.so $(DESTDIR)$(or $(PREFIX),/usr/local)/lib/librexmit_preload.so

install-c: ## the C library: header, libraries and pkg-config file, under PREFIX (default /usr/local)
	@scripts/install-c --prefix $(or $(PREFIX),/usr/local)

clean: ## remove everything that was built
	$(CARGO) clean
	$(MAKE) --no-print-directory -C interop clean
