# make lists the verbs. Each is one command; none needs anything but Go, and test a redis-server, which it
# installs where apt-get can.

GO           ?= go
PKGS         ?= ./...
TESTFLAGS    ?=
DRILLFLAGS   ?=
BENCHFLAGS   ?=
# Pinned linters in a module of their own (tools/go.mod), so that they never enter the product's go.mod.
STATICCHECK  := $(GO) tool -modfile=tools/go.mod staticcheck
REVIVE       := $(GO) tool -modfile=tools/go.mod revive

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help test lint fmt vet staticcheck revive tidy generated generate race redis-server postgresql bench growth drills quickstart

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: redis-server lint generated race drills ## all that must hold: lint, generated files, every test under the race detector, then the failure drills

lint: fmt vet staticcheck revive tidy ## gofmt, go vet, staticcheck, revive on generated files, go.mod as go mod tidy leaves it

fmt:
	@out=$$(gofmt -l -s .); if [ -n "$$out" ]; then echo "not formatted (gofmt -s -w):"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet $(PKGS)
	cd bench && $(GO) vet ./...

staticcheck:
	$(STATICCHECK) $(PKGS)

revive:
	$(REVIVE) -config revive.toml -set_exit_status $$(find examples -name emq_gen.go)

tidy:
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	cd bench && $(GO) mod tidy -diff

generated: ## fail if a generated file is out of date
	$(GO) run ./cmd/emqgen -check ./examples/...

generate: ## write the generated files of the examples
	$(GO) generate .

# Two packages at a time at most: their timing tests have server processes of their own. And nothing from
# the cache, which does not know the programs that tests build and run.
race:
	$(GO) test -race -count=1 -timeout 15m -p 2 $(TESTFLAGS) $(PKGS)
	cd bench && $(GO) test -race -count=1 ./...

redis-server:
	@if [ -n "$$EMQ_TEST_SERVER" ] || command -v redis-server >/dev/null; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then \
	  echo "the tests need redis-server (6.2 or later) in the PATH, and there is no apt-get to install it with" >&2; exit 1; fi; \
	sudo=; if [ "$$(id -u)" != 0 ]; then sudo=sudo; fi; \
	$$sudo apt-get update -q && $$sudo apt-get install -q -y redis-server

bench: redis-server postgresql ## emq beside asynq, River and the limit of its own scripts: BENCHFLAGS=-short in two minutes, else bench/RESULTS.md
	cd bench && $(GO) run . $(BENCHFLAGS)

growth: redis-server ## the server's time for each step while jobs, lanes, processes and shards grow: docs/growth.csv and docs/growth.svg
	cd bench && $(GO) run . -growth ../docs

postgresql:
	@if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then exit 0; fi; \
	sudo=; if [ "$$(id -u)" != 0 ]; then sudo=sudo; fi; \
	$$sudo apt-get update -q && $$sudo apt-get install -q -y postgresql

drills: redis-server ## failure drills, two minutes: kill, freeze, cut, fill and fail over, and audit; DRILLFLAGS='-only freeze -seed 1'
	$(GO) run ./drills $(DRILLFLAGS)

quickstart: ## the example that needs nothing but Go; EMQ_URL=redis://... runs it on a server
	$(GO) run ./examples/quickstart
