# Short names for what .ci/run and the go command do.

.PHONY: fast test race lint bench ci nightly

fast: # a minute or two: format, and the root module, whose tests need no server
	.ci/run gofmt
	go test ./...

test: # what the gate tests
	.ci/run test published databases

race:
	.ci/run race

lint: # and what is quick beside it
	.ci/run shell gofmt tidy lint

bench: # one round of the generator's benchmarks, into the folder bench.out
	go run ./internal/proof/lab/bench -rounds 1 -out $(CURDIR)/bench.out generator

ci: # the gate
	.ci/run

nightly: # everything
	.ci/nightly
