package main

import (
	"slices"
	"testing"
)

func TestProgramsOfADocumentAreFoundWithTheirOutput(t *testing.T) {
	page := "# A\n\n```sh\ngo run .\n```\n\n```go\nfmt.Println(1)\n```\n\n```go\npackage main\n\nfunc main() {}\n```\n\n```text\ntrue\n```\nend\n"
	got, err := programs(page)
	want := []program{{"package main\n\nfunc main() {}\n", "true\n"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("programs(%q) = %q, %v; want %q", page, got, err, want)
	}
}

func TestAProgramWithoutOutputIsAnError(t *testing.T) {
	for _, page := range []string{
		"```go\npackage main\n\nfunc main() {}\n```\n",
		"```go\npackage main\n\nfunc main() {}\n```\n\n```go\npackage main\n\nfunc main() {}\n```\n",
	} {
		if got, err := programs(page); err == nil {
			t.Errorf("programs(%q) = %q, nil; want an error", page, got)
		}
	}
}
