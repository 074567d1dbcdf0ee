package main

import (
	"path"
	"slices"
	"strings"
)

// When a step runs.
const (
	always  = "always"  // in the gate
	changed = "changed" // in the gate, if one of its inputs has changed
	nightly = "nightly" // in .ci/nightly, which runs the others too
)

// A step is one check of .ci/run: the shell function of its name, in .ci/run or .ci/tests.
type step struct {
	name, when, heading string

	// inputs are the files whose change needs the step in the gate: a folder with a slash at its
	// end, a pattern of path.Match, or such a pattern of the last element behind "**/".
	inputs []string

	// tests are the packages whose tests the step runs, as the go command names them. Each
	// package belongs to a step.
	tests []string
}

// What the plugins and the stores send to a database.
var statements = []string{
	"core/lease/sqllease/", "core/segment/sqlsegment/", "core/serial/sqlserial/", "core/feed/", "core/keysql/",
	"core/internal/", "core/sqlstore/", "gormplugin/", "sqlxhelper/", "internal/base/",
	"internal/proof/cases/", "internal/proof/servers/suites/", "internal/proof/servers/servertest/", "internal/proof/servers/faultproxy/", ".ci/servers",
}

// The steps, in the order in which they run. The first that fails ends the run, so what is
// quick comes first.
var steps = []step{
	{name: "tools", when: always, heading: "tools"},
	{name: "servers", when: always, heading: "servers"},

	{name: "shell", when: always, heading: "shellcheck"},
	{name: "gofmt", when: always, heading: "gofmt"},
	{name: "tidy", when: always, heading: "go mod tidy of all modules"},
	{name: "lint", when: always, heading: "golangci-lint, go vet among it"},
	{name: "builds", when: always, heading: "the published modules with the oldest Go and the newest, and for Windows and macOS"},
	{name: "test", when: always, heading: "go test ./..., as in the README", tests: []string{"./..."}},
	{
		name: "published", when: always, heading: "go test of the other published modules",
		tests: []string{
			"./cmd/snowkey/...", "./cmd/snowkeyvet/...", "./core/lease/etcdlease/...", "./core/lease/redislease/...",
			"./core/lease/zklease/...", "./core/otelsnowkey/...", "./sqlxhelper/pgxcopy/...",
		},
	},
	{name: "databases", when: always, heading: "the suites on PostgreSQL and MariaDB", tests: []string{"./internal/proof/servers/suites"}},
	{name: "race", when: always, heading: "go test -race of what is concurrent"},
	{name: "examples", when: always, heading: "quickstart, orders, invoices and web"},
	{name: "api", when: always, heading: "API compatibility"},

	{
		name: "mysql", when: changed, heading: "the suites on MySQL",
		inputs: statements,
		tests:  []string{"./internal/proof/servers/suites"},
	},
	{
		name: "fuzz", when: changed, heading: "fuzzing of the packages that changed, 20 s a target",
		inputs: []string{"**/*.go"},
	},
	{
		name: "walk", when: changed, heading: "README and docs, from a new clone",
		inputs: []string{"README.md", "docs/", "examples/quickstart/", "internal/proof/release/rehearsal/", "internal/proof/release/markdown/", ".ci/walk"},
	},
	{
		name: "release", when: changed, heading: "rehearsal of a release",
		inputs: []string{"**/go.mod", "**/go.sum", "go.work", "internal/proof/release/rehearsal/", "cmd/snowkey/*_linux.go", "cmd/snowkey/*_other.go"},
		tests:  []string{"./internal/proof/release/rehearsal/..."},
	},
	{
		name: "rename", when: changed, heading: "another module path",
		inputs: []string{"**/go.mod", "go.work", ".ci/rename"},
	},
	{
		name: "narrow", when: changed, heading: "go test on 32 bits",
		inputs: []string{"types/", "core/", "internal/base/wait/", "go.mod"},
	},
	{
		name: "oldest", when: changed, heading: "go test with the oldest Go that go.mod allows",
		inputs: []string{"types/", "core/*.go", "go.mod"},
	},
	{
		name: "newest", when: changed, heading: "go test with Go 1.27",
		inputs: []string{"types/", "core/*.go", "core/publicid/", "gormplugin/*.go", "sqlxhelper/*.go", "go.mod", "internal/proof/lab/go.*", "internal/proof/lab/compat/jsonengines/"},
	},
	{
		name: "compat", when: changed, heading: "other people's libraries",
		inputs: []string{"types/", "core/publicid/", "internal/proof/lab/go.*", "internal/proof/lab/compat/", "internal/proof/servers/node/"},
		tests:  []string{"./internal/proof/lab/compat/..."},
	},
	{
		name: "browser", when: changed, heading: "a browser on examples/web",
		inputs: []string{"examples/web/", "internal/proof/lab/compat/browser/"},
		tests:  []string{"./internal/proof/lab/compat/browser"},
	},
	{
		name: "figures", when: changed, heading: "metrics, dashboard, alerts and the tables of benchmarks",
		inputs: []string{"core/otelsnowkey/", "core/generator_stats.go", "core/*/stats.go", "docs/monitoring/", "docs/logs.md", "docs/benchmarks.md", "internal/proof/lab/go.*", "internal/proof/lab/monitoring/", "internal/proof/lab/bench/"},
		tests:  []string{"./internal/proof/lab/monitoring/...", "./internal/proof/lab/bench/..."},
	},
	{
		name: "programs", when: changed, heading: "the other examples",
		inputs: []string{"examples/"},
		tests:  []string{"./examples/replicas/..."},
	},

	{
		name: "work", when: nightly, heading: "go test work: every module, every test, for longer",
		tests: []string{"./internal/proof/servers/suites/..."},
	},
	{name: "races", when: nightly, heading: "go test -race of all modules"},
	{name: "tidb", when: nightly, heading: "go test on TiDB"},
	{name: "postgres", when: nightly, heading: "the oldest and the newest PostgreSQL"},
	{
		name: "copies", when: nightly, heading: "ClickHouse",
		tests: []string{"./internal/proof/servers/suites/warehouses"},
	},
	{name: "search", when: nightly, heading: "long searches"},
	{
		name: "fire", when: nightly, heading: "clusters that fail",
		tests: []string{"./internal/proof/robust/fire/..."},
	},
	{name: "vuln", when: nightly, heading: "govulncheck"},
	{name: "flaky", when: nightly, heading: "no test has failed by chance twice"},
}

// wanted returns the names of the steps that the gate runs when files have changed.
func wanted(steps []step, files []string) []string {
	var names []string
	for _, s := range steps {
		if s.when == always || s.when == changed && slices.ContainsFunc(files, s.reads) {
			names = append(names, s.name)
		}
	}
	return names
}

// reads reports whether a file is an input of the step.
func (s step) reads(file string) bool {
	return slices.ContainsFunc(s.inputs, func(input string) bool { return matches(input, file) })
}

func matches(input, file string) bool {
	if last, any := strings.CutPrefix(input, "**/"); any {
		ok, _ := path.Match(last, path.Base(file))
		return ok
	}
	if strings.HasSuffix(input, "/") {
		return strings.HasPrefix(file, input)
	}
	ok, _ := path.Match(input, file)
	return ok
}
