# Everything a person does with Assay. `make help` lists it.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# go-nvml's headers warn about calls that NVIDIA renamed; nothing here uses them.
export CGO_CFLAGS ?= -Wno-deprecated-declarations
# Where this runs inside a container, or the helper image of testcontainers
# can't be pulled, these two let it work; the clean-up is the project's own.
export TESTCONTAINERS_RYUK_DISABLED ?= true
export TESTCONTAINERS_HOST_OVERRIDE ?= 127.0.0.1

GINKGO := go tool ginkgo --keep-going --fail-on-empty
UNITS  := $(shell go list ./... 2>/dev/null | grep -v -e /suites/arrival -e /suites/concurrency -e /suites/crossover -e /suites/protocol -e /suites/recorded)

.PHONY: help
help: ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: run
run: ## the concurrency experiment on emulated servers: no Docker, no GPU, under two minutes
	$(GINKGO) --timeout 10m --label-filter emulated ./suites/concurrency

.PHONY: run-cpu
run-cpu: images model ## the same against real servers in containers, on this machine's CPU: about 15 minutes
	$(GINKGO) --timeout 2h --label-filter cpu ./suites/concurrency

.PHONY: run-gpu
run-gpu: ## the published set-up: vLLM and a naive server on a GPU
	./scripts/images.sh naive-cuda
	./scripts/model.sh Qwen/Qwen2.5-1.5B-Instruct 989aa7980e4cf806f80c7fef2b1adb7bc71aa306
	$(GINKGO) --timeout 6h --label-filter gpu ./suites/concurrency

.PHONY: crossover
crossover: ## the crossover experiment on emulated servers: under a minute
	$(GINKGO) --timeout 10m --label-filter emulated ./suites/crossover

.PHONY: crossover-cpu
crossover-cpu: images model ## the same on real vLLM in containers, eager against compiled: about an hour and a half
	$(GINKGO) --timeout 8h --label-filter cpu ./suites/crossover

.PHONY: arrival
arrival: ## the arrival experiment on emulated servers: about three minutes
	$(GINKGO) --timeout 15m --label-filter emulated ./suites/arrival

.PHONY: arrival-cpu
arrival-cpu: images model ## the same on real servers in containers: about twenty minutes
	$(GINKGO) --timeout 8h --label-filter cpu ./suites/arrival

.PHONY: test
test: ## unit tests, then the protocol against emulated servers and their faults
	go test $(UNITS)
	$(GINKGO) --timeout 10m --label-filter "protocol || recorded" ./suites/protocol ./suites/recorded

.PHONY: race
race: ## the unit tests under the race detector
	go test -race $(UNITS)

.PHONY: images
images: ## build the naive server's and vLLM's CPU images
	./scripts/images.sh

.PHONY: model
model: ## put SmolLM2-135M-Instruct where both servers mount it
	./scripts/model.sh

.PHONY: bench
bench: ## what the load client costs, against a null server and against peers
	go run ./bench

.PHONY: bench-peers
bench-peers: ## install those peers from the package index: minutes, several GB under .cache
	./scripts/peers.sh

.PHONY: calibrate
calibrate: ## simulate what few pairs allow to infer, for the reports and docs/statistics.md
	go run ./cmd/calibrate

.PHONY: docs
docs: ## the documentation's screenshots of published bundles' pages: needs Chromium
	go run ./cmd/screenshots

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@unformatted=$$(git ls-files '*.go' | xargs gofmt -l); test -z "$$unformatted" || { echo "not formatted:"; echo "$$unformatted"; exit 1; }
	go vet ./...
	go tool staticcheck ./...
