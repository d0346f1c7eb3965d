# Everything below needs Go alone; only docker-build and docker-push need a container engine.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# IMG is the operator's image: make deploy IMG=registry.example.com/memcached-operator:v0.1.0
IMG ?= controller:latest
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
# SANDBOX_DIR holds the sandbox; two sandboxes need two.
SANDBOX_DIR ?= .sandbox
CONTAINER_TOOL ?= docker
KUBECTL ?= kubectl

LDFLAGS := -s -w -X github.com/example/memcached-operator/version.Version=$(VERSION) -X github.com/example/memcached-operator/version.Commit=$(COMMIT)
GO_BUILD := CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)"
TOOL := go tool -modfile=tools/go.mod

##@ Start here

.PHONY: help
help: ## Print this help.
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  \033[36m%-14s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: sandbox
sandbox: ## Run the operator on a real control plane with simulated nodes, all on this machine; Ctrl-C ends it.
	@echo "Compiling the operator and the sandbox (the first time takes some minutes)"
	@$(MAKE) --no-print-directory build bin/sandbox
	@exec bin/sandbox -dir $(SANDBOX_DIR)

.PHONY: test
test: ## Run all tests, on a real control plane where Kubernetes is involved.
	@echo "Compiling the control plane, unless that is done"
	@$(MAKE) --no-print-directory bin/sandbox
	@bin/sandbox -prepare
	go test $(RACE) $(UNIT_PACKAGES)
	cd tools && go test ./...
	cd test/prometheus && go test -count=1 ./... # Go would not see that files of this module changed.
	go test $(RACE) -timeout 20m -p 1 $(CLUSTER_PACKAGES)
	go test -timeout 20m ./test/agreement # CUE is ten times slower under the race detector.

.PHONY: bench
bench: ## Measure what the operator costs, into docs/performance.md; takes half an hour. BENCH='-rest 30s' adds flags, -help lists them.
	@$(MAKE) --no-print-directory bin/manager bin/bench
	@bin/bench -results docs/performance.json -docs docs/performance.md $(BENCH)
	@cd tools && go run ./plot -results ../docs/performance.json -output ../docs/images

# These start control planes, one at a time.
CLUSTER_PACKAGES := $$(go list ./test/... | grep -v /agreement$$) ./reconciler
UNIT_PACKAGES := $$(go list ./... | grep -v -e /test/ -e /reconciler$$)
# The race detector needs a C compiler.
RACE := $(if $(shell command -v $${CC:-cc}),-race)

##@ Build

.PHONY: build
build: bin/manager bin/opctl ## Build the operator (bin/manager) and its CLI (bin/opctl).

bin:
	@mkdir -p $@

# Go knows best what is out of date.
.PHONY: bin/manager bin/opctl bin/sandbox bin/bench
bin/manager bin/opctl:
	@$(GO_BUILD) -o $@ ./cmd/$(@F)
bin/sandbox bin/bench:
	@$(GO_BUILD) -o $@ ./test/$(@F)

.PHONY: image
image: ## Build the image IMG as dist/image.tar without a container engine; PUSH=1 pushes it, BASE=scratch needs no registry.
	@mkdir -p dist
	@GOOS=linux $(GO_BUILD) -o dist/manager ./cmd/manager
	cd tools && go run ./image -binary ../dist/manager -tag $(IMG) -version $(VERSION) -revision "$(COMMIT)" -output ../dist/image.tar $(if $(PUSH),-push) $(if $(BASE),-base $(BASE))

.PHONY: docker-build
docker-build: ## Build the image IMG with a container engine.
	$(CONTAINER_TOOL) build -t $(IMG) --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) .

.PHONY: docker-push
docker-push: ## Push the image IMG.
	$(CONTAINER_TOOL) push $(IMG)

.PHONY: clean
clean: ## Remove what was built; the control plane in .cache stays.
	rm -rf bin dist

##@ Develop

.PHONY: check
check: generate manifests compat fmt vet lint test ## Do all that CI does, and fail if it changes a file.
	git diff --exit-code

.PHONY: generate
generate: ## Write all that follows from the kinds: definitions, rights, samples, values, reference, snapshots.
	go run ./cmd/opctl generate --kinds-dir .

.PHONY: manifests
manifests: generate ## The same, as kubebuilder's users call it.

.PHONY: golden
golden: ## Refresh what tests compare with: opctl's output, and what users are told of config/samples/invalid.
	go test ./cmd/opctl -update
	go test ./test/agreement -run InvalidSamples -update

.PHONY: compat
compat: ## Refuse a change of a schema that custom resources of the last release would not survive.
	@tag=$$(git describe --tags --abbrev=0 2>/dev/null) || { echo "There is no release yet, and so nothing is stored"; exit 0; }; \
	mkdir -p bin && rm -rf bin/released && mkdir bin/released && git archive $$tag config/crd/bases | tar -x -C bin/released && \
	go run ./cmd/opctl test --runs 1 --kinds-dir . --against bin/released/config/crd/bases

.PHONY: fmt
fmt: ## Format the code.
	$(TOOL) golangci-lint fmt

.PHONY: vet
vet: ## Run go vet, and cue vet on the samples.
	go vet ./...
	@for sample in config/samples/*_*_*.yaml; do \
		kind=$$(sed -n 's/^kind: //p' $$sample); \
		echo cue vet -c -d "#$$kind" ./schemas/$${kind,,} $$sample; \
		$(TOOL) cue vet -c -d "#$$kind" ./schemas/$${kind,,} $$sample; \
	done

.PHONY: lint
lint: ## Run golangci-lint.
	$(TOOL) golangci-lint run ./...

##@ In the current kubeconfig's cluster

.PHONY: install
install: ## Install the CustomResourceDefinitions.
	$(KUBECTL) apply --server-side -k config/crd

.PHONY: uninstall
uninstall: ## Delete the CustomResourceDefinitions, and with them every custom resource.
	$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: run
run: bin/manager ## Run the operator from this machine.
	exec bin/manager --metrics-bind-address=0 --health-probe-bind-address=0

.PHONY: deploy
deploy: dist/deploy/kustomization.yaml ## Install everything and run the image IMG.
	$(KUBECTL) apply --server-side -k dist/deploy

.PHONY: undeploy
undeploy: dist/deploy/kustomization.yaml ## Delete all that deploy made, custom resources included.
	$(KUBECTL) delete --ignore-not-found -k dist/deploy

# An overlay rather than an edit of config/manager, so that deploying changes no file of the repository.
.PHONY: dist/deploy/kustomization.yaml
dist/deploy/kustomization.yaml:
	@mkdir -p $(@D)
	@printf '%s\n' 'resources: [../../config/default]' 'images:' '  - name: controller' $(if $(findstring @,$(IMG)),'    newName: $(firstword $(subst @, ,$(IMG)))' '    digest: $(lastword $(subst @, ,$(IMG)))','    newName: $(shell echo '$(IMG)' | sed 's/:[^:/]*$$//')' '    newTag: "$(shell echo '$(IMG)' | sed -n 's/.*:\([^:/]*\)$$/\1/p')"') > $@
