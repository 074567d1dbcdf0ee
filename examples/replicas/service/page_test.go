package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestThePageShowsWhatTheServiceRuns(t *testing.T) {
	page := read(t, "../../../docs/workers.md")
	_, program, _ := strings.Cut(read(t, "serve.go"), "docs/workers.md.\n\n")
	if want := "\n```go\n" + program + "```\n"; !strings.Contains(page, want) {
		t.Errorf("docs/workers.md differs from serve.go; want this block:\n%s", want)
	}
}

// The Dockerfile builds the service without a C compiler.
func TestTheServiceNeedsNoCgo(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .CgoFiles}}{{.ImportPath}}{{end}}{{if eq .Name \"sqlite3\"}}{{.ImportPath}}{{end}}", ".")
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	got, err := list.CombinedOutput()
	if err != nil || strings.TrimSpace(string(got)) != "" {
		t.Errorf("go list -deps = %s, %v; want no package that needs cgo", got, err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
