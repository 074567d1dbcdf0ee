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
	go run ./internal/bench -rounds 1 -out $(CURDIR)/bench.out generator

ci: # all of it
	.ci/run
