# Short names for what .ci/run and the go command do.

.PHONY: fast test race lint bench ci

fast: # a minute: format, vet, and the root module, whose tests need no server
	.ci/run gofmt vet
	go test ./...

test: # every module
	.ci/run test

race:
	.ci/run race

lint: # and what is quick beside it
	.ci/run shell gofmt tidy vet lint

bench: # one round of the generator's benchmarks, into bench.out
	ROUNDS=1 OUT=$(CURDIR)/bench.out internal/bench/run.sh

ci: # all of it
	.ci/run
