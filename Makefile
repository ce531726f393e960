# Run `make help` for what can be done here.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := help
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

# Tools, pinned one line each. Each version is built once for all clones of a user.
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# What a caller may set. BUDGET is time for heavy suites that run whole in make test, and COSTS
# how many packages and suites it lists with their seconds.
BUDGET    ?= 60s
CI        ?=
COSTS     ?= 20
FUZZTIME  ?= 10s
GOFLAGS   ?=
PKG       ?= ./...
TESTFLAGS ?=
UPDATE    ?=
VERSION   ?=
WHICH     ?=

# The WebAssembly runtime's file interface has a Seek of its own; the linter
# checks standard methods too, and knows that exception by its line.
VETFLAGS := -stdmethods=false

TMP     := $(CURDIR)/.tmp
LDFLAGS := -s -w$(if $(VERSION), -X github.com/paddock-sandbox/paddock/internal/cli.version=$(VERSION))

# The programs that paddock carries. The first ones are what the tier jail
# and networks with rules need.
LIGHT  := guest keeper gateway
HEAVY  := sim server auxiliary microvm gvisor
CARRIED = $(patsubst %,cmd/paddock/%.bin.gz,$(filter-out guest,$(1))) $(if $(filter guest,$(1)),cmd/paddock/guest.bin)

PYTHON  := $(TMP)/python.tgz
TOOLS   := $(or $(shell go env GOCACHE 2>/dev/null),$(TMP))-paddock
LINT    := $(TOOLS)/$(notdir $(GOLANGCI_LINT))

# What is compiled for one command serves the others, and another clone too.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

# What tests take from this clone, and from this machine.
TESTENV = PADDOCK_TEST_PROGRAMS=$(TMP)/programs PADDOCK_TEST_PYTHON=$$(ls $(PYTHON) 2>/dev/null || true) PADDOCK_TEST_PLOTTING=$$(ls -d $(TMP)/plotting 2>/dev/null || true) PADDOCK_TEST_AGENTS=$$(ls -d $(TMP)/agents 2>/dev/null || true) PADDOCK_TEST_BUILT=$(CURDIR)/bin
KERNELS = PADDOCK_TEST_KERNEL=$$(if [ "$$(id -u)" = 0 ]; then echo /var/lib/paddock/vm; else echo "$${XDG_DATA_HOME:-$$HOME/.local/share}/paddock/vm"; fi)

DISKS   = PADDOCK_TEST_DISTRO=$(TOOLS)/disks

# Packages run beside each other, more than there are processors: most of them wait.
TESTRUN = go run ./internal/testrun $(if $(CI),-strict -again)
BESIDE  := -p=3 -parallel=4

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build ./bin/paddock: the tier jail first, and then all that it carries
	@mkdir -p bin
	@for f in $(call CARRIED,$(HEAVY)); do [ -e $$f ] || : > $$f; done # what is empty is not carried
	@$(MAKE) carried WHICH="$(LIGHT)"
	@$(MAKE) front
	@echo "bin/paddock runs the tier jail now; what comes is carried for the other tiers and the server"
	@$(MAKE) carried WHICH="$(HEAVY)"
	@$(MAKE) front

.PHONY: front
front:
	CGO_ENABLED=0 go build -trimpath -tags embedguest -ldflags "$(LDFLAGS)" -o bin/paddock ./cmd/paddock

# One command compiles what programs share once. Go knows which are to be linked again. The
# packages of paddock itself are among them, so that front only compiles what carries programs.
.PHONY: carried
carried:
	@mkdir -p $(TMP)/programs
	CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags "$(LDFLAGS)" -o $(TMP)/programs/ $(WHICH:%=./cmd/paddock-%) ./cmd/internal/tiers
	@$(MAKE) -j4 $(call CARRIED,$(WHICH))

cmd/paddock/guest.bin: $(TMP)/programs/paddock-guest
	@cmp -s $< $@ || cp $< $@

# The sum beside a program tells whether it has to be packed again. gzip's best effort (-9)
# takes three times as long and saves less than 1 %.
cmd/paddock/%.bin.gz: $(TMP)/programs/paddock-%
	@sum=$$(sha256sum < $<); if [ ! -s $@ ] || [ "$$sum" != "$$(cat $<.sum 2>/dev/null)" ]; then gzip -nc $< > $@ && echo "$$sum" > $<.sum; fi

.PHONY: demo
demo: build ## Build what is missing, and run a real job in a sandbox of the strongest tier that works here
	@./.ci/deps python3:python3
	@echo; echo "A script makes a CSV of orders. A Python program reads it in a sandbox, and writes a report beside it."
	python3 examples/report/orders.py
	bin/paddock run -v --workspace examples/report -- python3 report.py
	@head -20 examples/report/report.md

# Tests take what make build has built a moment ago.
.PHONY: programs
programs: build

.PHONY: test
test: deps programs $(if $(CI),referees machine python sdk clients plotting agents) ## Run every test, of the heaviest suites a sample (make matrix has all)
	export $(TESTENV) $(if $(CI),$(KERNELS)) CGO_ENABLED=0; \
	$(TESTRUN) -sample -budget=$(BUDGET) -costs=$(COSTS) -- $(if $(CI),-count=1 -vet=off) $(BESIDE) -timeout=30m $(TESTFLAGS) $(PKG)

.PHONY: matrix
matrix: deps programs referees hosts machine disks python sdk clients plotting agents ## Run every test whole: every tier, both callers, every machine
	export $(TESTENV) $(KERNELS) $(DISKS) PADDOCK_TEST_HOSTS=1 CGO_ENABLED=0; \
	$(TESTRUN) -again -- -count=1 $(BESIDE) -timeout=3h $(TESTFLAGS) $(PKG)

.PHONY: referees
referees: ## Install what tests compare with, or make containers with
	@./.ci/deps Rscript:r-base-core bash:bash bc:bc bzip2:bzip2 column:bsdextrautils crun:crun curl:curl mkfs.btrfs:btrfs-progs mmdebstrap:mmdebstrap umoci:umoci dc:dc envsubst:gettext-base file:file gawk:gawk \
		javac:default-jdk-headless jq:jq mawk:mawk node:nodejs npm:npm patch:patch pg_createcluster:postgresql pgrep:procps pip3:python3-pip rg:ripgrep \
		sqlite3:sqlite3 ssh:openssh-client strings:binutils unzip:unzip wget:wget xxd:xxd xz:xz-utils zip:zip zstd:zstd

.PHONY: hosts
hosts: ## Install programs that obey files of a directory, which tests of protected names start
	@./.ci/deps R:r-base-core brz:brz darcs:darcs fossil:fossil gdb:gdb hg:mercurial irb:ruby \
		mbsync:isync msmtp:msmtp perl:perl svn:subversion vim:vim weechat-headless:weechat-headless zsh:zsh

.PHONY: machine
machine: build ## Get what the tests of the tier microvm need: QEMU and a kernel
	@./.ci/deps qemu-system-x86_64:qemu-system-x86
	@bin/paddock vm status >/dev/null || bin/paddock vm setup

.PHONY: disks
disks: ## Make the disks of the machines of make distro: Debian 13, and 12 where the archive has it
	@./.ci/deps mmdebstrap:mmdebstrap mke2fs:e2fsprogs ssh-keygen:openssh-client
	@distrotest/image.sh trixie $(TOOLS)/disks
	@distrotest/image.sh bookworm $(TOOLS)/disks || echo "there is no disk of Debian 12, so that it is skipped"

.PHONY: distro
distro: build disks ## Try the program on machines that users have: systemd, a user's session, a service
	@./.ci/deps qemu-system-x86_64:qemu-system-x86
	export $(DISKS) CGO_ENABLED=0; go test -count=1 -v -timeout 6h $(TESTFLAGS) ./distrotest

.PHONY: python
python: $(PYTHON) ## Fetch what the tests of Python in the simulated tier take, with npm

$(PYTHON):
	@mkdir -p $(TMP)/npm
	cd $(TMP)/npm && npm pack --silent "$$(sed -n 's/^const Package = "\(.*\)"/\1/p' $(CURDIR)/internal/sim/command/python/install.go)"
	@mv $(TMP)/npm/*.tgz $@

.PHONY: sdk
sdk: $(TMP)/sdk/js.txt $(TMP)/sdk/py.txt $(TMP)/sdk/daytona.txt $(TMP)/sdk/daytona-js.txt ## Install E2B's and Daytona's own clients, which judge the dialects, with npm and pip

# Each is installed again when what is pinned changes.
$(TMP)/sdk/js.txt: internal/dialect/e2b/testdata/js/package.json internal/dialect/e2b/testdata/js/package-lock.json
	@mkdir -p $(TMP)/sdk/js
	cp $^ $(TMP)/sdk/js/
	cd $(TMP)/sdk/js && npm ci --no-audit --no-fund --ignore-scripts --silent
	@touch $@

$(TMP)/sdk/py.txt: internal/dialect/e2b/testdata/py/requirements.txt
	@mkdir -p $(TMP)/sdk
	rm -rf $(TMP)/sdk/py
	pip3 install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target $(TMP)/sdk/py -r $<
	@touch $@

$(TMP)/sdk/daytona-js.txt: internal/dialect/daytona/testdata/js/package.json internal/dialect/daytona/testdata/js/package-lock.json
	@mkdir -p $(TMP)/sdk/daytona-js
	cp $^ $(TMP)/sdk/daytona-js/
	cd $(TMP)/sdk/daytona-js && npm ci --no-audit --no-fund --ignore-scripts --silent
	@touch $@

$(TMP)/sdk/daytona.txt: internal/dialect/daytona/testdata/py/requirements.txt
	@mkdir -p $(TMP)/sdk
	rm -rf $(TMP)/sdk/daytona
	pip3 install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target $(TMP)/sdk/daytona -r $<
	@touch $@

.PHONY: clients
clients: $(TMP)/clients/js.txt $(TMP)/clients/py.txt ## Install what judges the API's contract, and makes clients from it, with npm and pip

$(TMP)/clients/js.txt: internal/server/testdata/clients/package.json internal/server/testdata/clients/package-lock.json
	@mkdir -p $(TMP)/clients/js
	cp $^ $(TMP)/clients/js/
	cd $(TMP)/clients/js && npm ci --no-audit --no-fund --ignore-scripts --silent
	@touch $@

$(TMP)/clients/py.txt: internal/server/testdata/clients/requirements.txt
	@mkdir -p $(TMP)/clients
	rm -rf $(TMP)/clients/py
	pip3 install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target $(TMP)/clients/py -r $<
	@touch $@

.PHONY: plotting
plotting: $(TMP)/plotting.txt ## Install what the tests of figures and tables draw with, with pip

$(TMP)/plotting.txt: internal/interpreter/testdata/requirements.txt
	rm -rf $(TMP)/plotting
	pip3 install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --target $(TMP)/plotting -r $<
	@touch $@

.PHONY: race
race: export CGO_ENABLED := 1
race: ## Run short tests of what is concurrent under the race detector
	go run ./internal/testrun $(if $(CI),-again) -sample -- -race -short $(if $(CI),-count=1 -vet=off) $(BESIDE) -timeout=15m ./client ./internal/box/... ./internal/guestclient/... ./internal/guest/... ./internal/cgroup/... ./internal/policy/... ./internal/protect/... \
		./internal/egress/gateway ./internal/egress/inspect ./internal/egress/netstack ./internal/egress/gatewayclient ./internal/egress/secret \
		./internal/wrap/admission ./internal/wrap/lifetime ./internal/wrap/pool/... ./internal/wrap/tenant ./internal/dialect/e2b/envd ./internal/ingress/... ./internal/server/... ./internal/store/... \
		./internal/usage ./internal/outputring/... ./internal/snapshot/... ./internal/sim/budget/... ./internal/sim/vfs/... ./internal/sim/kernel/...

.PHONY: agents
agents: $(TMP)/agents.txt $(TMP)/agents-py.txt ## Install the coding agents that tests start, with npm and pip
	@./.ci/deps tmux:tmux

# For the system's Python, which sandboxes see. The package brings a Claude Code of 400 MB.
$(TMP)/agents-py.txt: examples/agent-sdk/requirements.txt
	@mkdir -p $(TMP)/agents
	rm -rf $(TMP)/agents/py
	pip3 --python /usr/bin/python3 install --quiet --disable-pip-version-check --root-user-action=ignore --no-deps --require-hashes --target $(TMP)/agents/py -r $<
	@touch $@

# Scripts of packages do not run. Those of two would put the program for this system in the place of a stub.
$(TMP)/agents.txt: internal/agenttest/testdata/npm/package.json internal/agenttest/testdata/npm/package-lock.json
	@mkdir -p $(TMP)/agents
	cp $^ $(TMP)/agents/
	cd $(TMP)/agents && npm ci --no-audit --no-fund --ignore-scripts --silent
	@cd $(TMP)/agents/node_modules && cpu=$$(node -p process.arch) && \
	ln -f @anthropic-ai/claude-code-linux-$$cpu/claude @anthropic-ai/claude-code/bin/claude.exe && \
	own=opencode-linux-$$cpu && if [ $$cpu = x64 ] && ! grep -qw avx2 /proc/cpuinfo; then own=$$own-baseline; fi && \
	ln -f $$own/bin/opencode opencode-ai/bin/opencode.exe
	@touch $@

# The linter runs vet for this system, so vet runs for the others alone.
.PHONY: check
check: export CGO_ENABLED := 0
check: format lint cross tidy fresh ## Everything that can be said without running a test

.PHONY: format
format:
	@out=$$(git ls-files -co --exclude-standard -z '*.go' | xargs -0r ls -d 2>/dev/null | xargs -r gofmt -l); \
	if [ -n "$$out" ]; then echo "not formatted by gofmt:"; echo "$$out"; exit 1; fi

.PHONY: vet
vet:
	go vet $(VETFLAGS) ./...

.PHONY: lint
lint: $(LINT) ## Lint with the pinned golangci-lint
	$(LINT) run ./...

$(LINT):
	@mkdir -p $(@D).new
	GOFLAGS= GOBIN=$(@D).new go install $(GOLANGCI_LINT)
	@mkdir -p $(@D)
	@mv $(@D).new/golangci-lint $@ && rmdir $(@D).new

.PHONY: tidy
tidy:
	go mod tidy -diff
	go mod verify

.PHONY: fresh
fresh: deps
	@sum() { git ls-files -co --exclude-standard '*.pb.go' '*.connect.go' | xargs grep -hv '^// .*protoc ' | sha256sum; }; \
	before=$$(sum); go generate ./...; \
	if [ "$$before" != "$$(sum)" ]; then echo "generated code was not fresh; commit what make generate wrote"; exit 1; fi

.PHONY: cross
cross:
	GOOS=darwin GOARCH=arm64 go vet $(VETFLAGS) ./...
	GOOS=linux GOARCH=arm64 go vet $(VETFLAGS) ./...
	GOOS=js GOARCH=wasm go build $$(go list ./internal/sim/... | grep -v '/javascript\|/sqlite\|/commandtest') # without the engines that C was translated to for few systems

.PHONY: attack
attack: build ## Run the escape attempts; UPDATE=1 rewrites the golden matrix
	CGO_ENABLED=0 go test -count=1 -v -timeout 2h ./attack $(if $(UPDATE),-update)

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME=10s
	@go list ./... | while read -r pkg; do \
		go test -list '^Fuzz' "$$pkg" | { grep '^Fuzz' || true; } | while read -r target; do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$pkg" < /dev/null; \
		done; \
	done

.PHONY: bench
bench: build python sdk ## Measure against bubblewrap, runsc and srt; UPDATE=1 writes docs/PROMISES.md
	./bench/peers.sh
	go run ./bench -paddock bin/paddock -peers "$$(./bench/peers.sh -where)" -sdk $(TMP)/sdk $(if $(UPDATE),-update docs/PROMISES.md)

.PHONY: generate
generate: deps ## Regenerate code from its sources
	go generate ./...

.PHONY: documents
documents: ## Write the parts of documents that come from the code: the tree, the command line, the lists of sim
	PADDOCK_UPDATE=1 go test -count=1 -run 'TheIndexOfReasons|TheTreeNames|TheReference|TheSchemaOfTheConf|TheDocumentLists|TheTableOfJobs' ./internal/archtest ./cmd/paddock ./internal/cli/serve ./internal/driver/sim ./internal/protect ./internal/language ./sim

.PHONY: deps
deps:
	@./.ci/deps python3:python3 git:git protoc:protobuf-compiler

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin $(TMP) $(call CARRIED,$(LIGHT) $(HEAVY))
