# Short names for what the scripts do; none of them is needed to build or test.
.PHONY: build test ci up down status bench generate faults faults-long faults-planted

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$$(git describe --tags --always --dirty)" -o bin/rollcall ./cmd/rollcall

test:
	scripts/test.sh

ci:
	.ci/run

up down status:
	scripts/cluster.sh $@

bench:
	go test -run '^$$' -bench . -benchmem ./registry ./fsm ./raftnode ./health ./httpapi

generate:
	go generate ./internal/wire

# The proof under fault: a table of what was tried and what held; docs/faults.md explains it.
faults:
	scripts/faults.sh

faults-long:
	scripts/faults.sh long

faults-planted:
	scripts/faults.sh planted
