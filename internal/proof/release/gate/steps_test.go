package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../../.."

func TestEveryPackageBelongsToAStep(t *testing.T) {
	list := func(patterns ...string) []string {
		cmd := exec.Command("go", append([]string{"list", "-e"}, patterns...)...)
		cmd.Dir = root
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %v: %v\n%s", patterns, err, &stderr)
		}
		return strings.Fields(string(out))
	}
	var patterns []string
	for _, s := range steps {
		patterns = append(patterns, s.tests...)
	}
	tested := list(patterns...)
	packages := list("work")
	if len(packages) < 50 {
		t.Fatalf("go list work = %d packages; want all", len(packages))
	}
	for _, p := range packages {
		if !slices.Contains(tested, p) {
			t.Errorf("no step of steps.go runs the tests of %s; add it to one", p)
		}
	}
}

func TestEachStepHasAFunctionAndEachFunctionAStep(t *testing.T) {
	var script strings.Builder
	for _, name := range []string{"run", "tests", "servers"} {
		text, err := os.ReadFile(filepath.Join(root, ".ci", name))
		must(t, err)
		script.Write(text)
	}
	defined := []string{}
	for line := range strings.Lines(script.String()) {
		if name, rest, found := strings.Cut(line, "()"); found && strings.HasPrefix(name, "step_") && strings.HasPrefix(rest, " ") {
			defined = append(defined, strings.TrimPrefix(name, "step_"))
		}
	}
	for _, s := range steps {
		if !slices.Contains(defined, s.name) {
			t.Errorf("no function step_%s in .ci", s.name)
		}
		if (s.when == changed) != (len(s.inputs) > 0) {
			t.Errorf("step %s runs %s, with inputs %q; want inputs where it waits for their change, and only there", s.name, s.when, s.inputs)
		}
	}
	for _, name := range defined {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.name == name }) {
			t.Errorf("steps.go does not list the function step_%s", name)
		}
	}
}

func TestAChangeRunsTheStepsOfItsFiles(t *testing.T) {
	for _, test := range []struct {
		file string
		want []string // beside those that always run, in order
	}{
		{"docs/gorm.md", []string{"walk"}},
		{"README.md", []string{"walk"}},
		{"gormplugin/row.go", []string{"mysql", "fuzz", "newest"}},
		{"sqlxhelper/intx.go", []string{"mysql", "fuzz", "newest"}},
		{"internal/base/dialect/commit.go", []string{"mysql", "fuzz"}},
		{"core/lease/protocol.go", []string{"fuzz", "narrow"}},
		{"core/lease/sqllease/register.go", []string{"mysql", "fuzz", "narrow"}},
		{"types/parse.go", []string{"fuzz", "narrow", "oldest", "newest", "compat"}},
		{"go.mod", []string{"release", "rename", "narrow", "oldest", "newest"}},
		{"cmd/snowkey/go.sum", []string{"release"}},
		{"internal/proof/lab/go.mod", []string{"release", "rename", "newest", "compat", "figures"}},
		{"internal/proof/servers/node/node.go", []string{"fuzz", "compat"}},
		{"examples/web/page/client.ts", []string{"browser", "programs"}},
		{"internal/proof/lab/bench/results.go", []string{"fuzz", "figures"}},
		{"CHANGELOG.md", nil},
	} {
		var got []string
		for _, name := range wanted(steps, []string{test.file}) {
			if i := slices.IndexFunc(steps, func(s step) bool { return s.name == name }); steps[i].when != always {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("a change of %s runs %q; want %q", test.file, got, test.want)
		}
	}
	for _, s := range steps {
		if got := slices.Contains(wanted(steps, nil), s.name); got != (s.when == always) {
			t.Errorf("without a change, the gate runs %s = %v", s.name, got)
		}
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
