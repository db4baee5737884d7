# Run `make` alone for the list. Every target is one command you could have typed.
SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

GOLANGCI  := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
PKG       ?= ./...
RUN       ?= .
COUNT     ?= 10
FUZZTIME  ?= 20s
CHAOS     ?= 5m
STREAMS   ?= 1000
SEED      ?= 0
SCENARIO  ?= fanout
ARGS      ?=
KAFKALIBS ?= $(CURDIR)/.cache/kafka/libs

# What tailcast is compared with, and how much of it: see bench-peers.
CENTRIFUGO := v6.9.1
PEERS      ?= nchan,centrifugo,nethttp
SCENARIOS  ?= fanout,best,latency,idle
PAIRS      ?= 7
SECONDS    ?= 8

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build tailcast into bin/
	go build -o bin/ ./cmd/tailcast

.PHONY: test
test: ## Run every test that needs nothing but Go (PKG=./hub RUN=TestX narrow it)
	go test -timeout 5m -run '$(RUN)' $(PKG)

.PHONY: race
race: ## Run the same tests under the race detector
	go test -timeout 10m -race -run '$(RUN)' $(PKG)

.PHONY: stress
stress: ## Run one package's tests many times (PKG=./hub COUNT=200)
	go test -race -run '$(RUN)' -count $(COUNT) -failfast $(PKG)

.PHONY: fuzz
fuzz: ## Give every fuzz target FUZZTIME of fresh input
	@for p in $$(go list $(PKG)); do \
	  for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5x $$p || exit 1; \
	  done; \
	done

.PHONY: kafka-jars
kafka-jars: ## Fetch the jars of a real Kafka broker with Maven, once
	@test -e $(KAFKALIBS)/.complete || { \
	  mvn -B -q -f internal/kafkatest/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.11.0:copy-dependencies \
	    -DincludeScope=runtime -DoutputDirectory=$(KAFKALIBS) && touch $(KAFKALIBS)/.complete; }

.PHONY: test-kafka
test-kafka: kafka-jars ## Run the tests against real Kafka brokers (needs Java 17 and Maven)
	TAILCAST_KAFKA_LIBS=$(KAFKALIBS) go test -timeout 10m -p 1 -tags kafka -run Kafka ./kafkatail ./apptest ./apptest/chaos

.PHONY: chaos
chaos: kafka-jars ## Compare what clients got with the log for CHAOS (5m), in front of kfake and of real brokers; SEED repeats a run
	TAILCAST_KAFKA_LIBS=$(KAFKALIBS) go test -timeout 2h -tags kafka -v -run '^Test(Chaos|Several)$$|^TestKafka$$/^(Chaos|Several)$$' ./apptest/chaos \
	  -chaos.duration $(CHAOS) -chaos.seed $(SEED) -chaos.clients 200

.PHONY: test-clients
test-clients: ## Run the tests with kcat, kafkajs, Chromium and nginx (needs them and Node.js)
	cd apptest/clients && npm ci --no-fund --no-audit --silent
	go test -timeout 10m -tags clients -run Clients ./apptest ./bench/peers
	cd bench/k6 && npm test --silent
	go test -timeout 10m -tags browser ./web

.PHONY: hostile
hostile: build ## Attack a gateway while STREAMS (1000) honest streams go on, and write what they noticed into docs/SECURITY.md (12 minutes, two quiet processors; ARGS narrow it)
	@mkdir -p .cache/bench
	bin/tailcast bench hostile --streams $(STREAMS) --json .cache/bench/hostile.json $(ARGS) | tee .cache/bench/hostile.txt
	@test -n "$(ARGS)" || { awk 'FNR == NR { if (/^\|/) table = table $$0 "\n"; next } \
	  /^<!-- make hostile writes/ { print; printf "%s", table; skip = 1 } /^<!-- to here/ { skip = 0 } !skip' \
	  .cache/bench/hostile.txt docs/SECURITY.md > .cache/bench/SECURITY.md && cp .cache/bench/SECURITY.md docs/SECURITY.md; }

.PHONY: bench
bench: ## Run the micro-benchmarks into bench.txt (PKG, RUN, COUNT)
	go test -run '^$$' -bench '$(RUN)' -benchmem -count $(COUNT) $(PKG) | tee bench.txt

.PHONY: guard
guard: ## Compare instructions and allocations of the hot functions with the baseline (needs valgrind for the instructions)
	go run ./internal/guard

.PHONY: guard-update
guard-update: ## Rewrite that baseline, internal/guard/baseline.txt
	go run ./internal/guard -update

.PHONY: bench-run
bench-run: build ## Measure a scenario, by SCENARIO and ARGS; result and page go to .cache/bench
	@mkdir -p .cache/bench
	bin/tailcast bench $(SCENARIO) --json .cache/bench/$(SCENARIO).json --html .cache/bench/$(SCENARIO).html $(ARGS)

.PHONY: bench-peers
bench-peers: build ## Measure tailcast beside its peers (PEERS, SCENARIOS, PAIRS, SECONDS narrow it; needs 2 processors and nginx with nchan)
	go build -o bin/ ./bench/peers ./bench/peers/nethttp
	@test -x .cache/centrifugo-$(CENTRIFUGO)/centrifugo || \
	  GOBIN=$(CURDIR)/.cache/centrifugo-$(CENTRIFUGO) go install github.com/centrifugal/centrifugo/v6@$(CENTRIFUGO)
	bin/peers -tailcast bin/tailcast -nethttp bin/nethttp -centrifugo .cache/centrifugo-$(CENTRIFUGO)/centrifugo \
	  -peers $(PEERS) -scenarios $(SCENARIOS) -pairs $(PAIRS) -seconds $(SECONDS) -docs docs/BENCHMARKS.md

.PHONY: pgo
pgo: ## Take the profile that tailcast is built with, cmd/tailcast/default.pgo (a minute, two processors)
	bench/pgo.sh

.PHONY: golden
golden: ## Rewrite golden files and generated docs, then read the diff
	go test ./frame ./config -update

.PHONY: fmt
fmt: ## Format every file in place
	go run $(GOLANGCI) fmt

.PHONY: lint
lint: ## Run vet (for Linux and macOS) and the linters of .golangci.yml
	GOOS=darwin go vet ./...
	go run $(GOLANGCI) run --allow-parallel-runners

.PHONY: check
check: fmt lint test ## What to run before a commit
