package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/release/markdown"
)

// page0 is a page. It is not one word here, since tests that name a page run its SQL.
const page0 = "docs/a" + ".md"

// commented is the setting of a page.
const commented = "<!-- setting\npackage main\n\nvar x int\n-->\n\n"

func TestProgramsOfADocumentAreFoundWithTheirOutput(t *testing.T) {
	page := "# A\n\n```sh\ngo version\n```\n\n```go\npackage main\n\nfunc main() {}\n```\n\n```text\ntrue\n```\nend\n"
	d, err := readDocument(tree, page0, page)
	want := program{"package main\n\nfunc main() {}\n", "true\n", 8}
	if err != nil || len(d.programs) != 1 || d.programs[0] != want {
		t.Errorf("readDocument(%q) = %+v, %v; want the program %+v", page, d, err, want)
	}
}

func TestFragmentsBelongToTheSettingBeforeThemOrToTheFirst(t *testing.T) {
	const other = "<!-- setting\npackage main\n\nvar y int\n-->\n\n"
	page := "```go\nx = 1\n```\n" + commented + "```go\nx = 2\n```\n" + other + "```go\ny = 3\n```\n"
	d, err := readDocument(tree, page0, page)
	if err != nil || len(d.groups) != 2 || len(d.groups[0].fragments) != 2 || len(d.groups[1].fragments) != 1 || d.groups[1].fragments[0].Text != "y = 3\n" {
		t.Errorf("readDocument(%q) = %+v, %v; want two fragments with the first setting and one with the second", page, d, err)
	}
}

func TestBlocksThatCannotBeCheckedAreErrors(t *testing.T) {
	for page, want := range map[string]string{
		"```go\npackage main\n\nfunc main() {}\n```\n":                                               "a.md:2: the program shows no output",
		"```go\npackage main\n\nfunc main() {}\n```\n\n```go\npackage main\n\nfunc main() {}\n```\n": "a.md:2: the program shows no output",
		"```go\nx = 1\n```\n":                                                 "a.md:2: a fragment without a setting",
		"\n```\nplain\n```\n":                                                 `a.md:3: a block of ""`,
		"```rust\nlet x = 1;\n```\n":                                          `a.md:2: a block of "rust"`,
		"```json\n{\"id\": 1,}\n```\n":                                        "a.md:2: invalid character",
		"```json\n{\"id\": \n```\n":                                           "a.md:2: unexpected EOF",
		"```sql\nSELECT 1\n```\n":                                             "a.md:2: a block of sql: want a comment",
		"<!-- run by TestOf -->\n```sql\n```\n":                               "a.md:3: there is no TestOf, which is to run this",
		"```sh\ngo run ./examples/nothing\n```\n":                             "examples/nothing: no such file",
		"text\n```go\nx = 1\n":                                                "line 2: the block of \"go\" does not end",
		"```sh\ngo run ./examples/quickstart\n```":                            "",
		"```json\n{\"id\": \"1\"}\n{\"id\": 2}\n```":                          "",
		commented + "```yaml\na: 1\n```\n```text\n```":                        "",
		"<!-- run by TestBlocksThatCannotBeCheckedAreErrors -->\n```sql\n```": "",
	} {
		_, err := readDocument(tree, page0, page)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("readDocument(%q) = %v; want an error with %q", page, err, want)
		}
	}
}

func TestFragmentsBecomePartsOfAFileOfGo(t *testing.T) {
	const line = "\n//line p.md:7\n"
	for text, want := range map[string]string{
		"x := 1\n":                        "func _() {" + line + "x := 1\n\n_ = x\n}\n",
		"// Comment.\nvar x, err = f()\n": line + "// Comment.\nvar x, err = f()\n",
		"if err := f(); err != nil {\n\treturn err\n}\nvar a, _ = 1, 2\n": "func _() error {" + line + "if err := f(); err != nil {\n\treturn err\n}\nvar a, _ = 1, 2\n\n_ = a\nreturn nil\n}\n",
		"f(func() error { return nil })\n":                                "func _() {" + line + "f(func() error { return nil })\n\n}\n",
		"x :=\n":                                                          "",
		"func {\n":                                                        "",
	} {
		got, imports, err := fragment("p.md", markdown.Block{Text: text, Line: 7})
		if imports || (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("fragment(%q) = %q, %v, %v; want %q", text, got, imports, err, want)
		}
	}
}

func TestCommandsOfAPageNameWhatExists(t *testing.T) {
	for text, found := range map[string]bool{
		"go run ./examples/quickstart -x   # ./nothing\n": true,
		"go test work\n":          true,
		"go test ./...\n":         true,
		"go test ./nothing/...\n": false,
		"A=1 go test -v -run TestFragmentsBecomePartsOfAFileOfGo ./core\n": true,
		"go test -run 'TestFragmentsBecomePartsOfAFileOfGo$/sub' ./core\n": true,
		"go test -run TestNothingAtAll ./core\n":                           false,
		"go test -bench BenchmarkNothing ./core\n":                         false,
		"go test \\\n  ./nothing\n":                                        false,
		"cd x && go run ./nothing\n":                                       false,
		".ci/run gofmt lint\n":                                             true,
		".ci/nightly wark\n":                                               false,
		".ci/run -l\n":                                                     true,
		"kubectl apply -f ./orders.yaml\n":                                 true,
		"# go run ./nothing\n":                                             true,
	} {
		if err := checkShell(tree, text); (err == nil) != found {
			t.Errorf("checkShell(%q) = %v; want an error: %v", text, err, !found)
		}
	}
}

func TestProgramsAndFragmentsAreFilesOfAUser(t *testing.T) {
	d, err := readDocument(tree, page0, commented+"```go\nx = 2\n```\n```go\nimport \"fmt\"\n```\n```go\npackage main\n\nfunc main() {}\n```\n```text\n```\n")
	must(t, err)
	folder := t.TempDir()
	must(t, d.write(folder))
	for _, name := range []string{"programs/a_1/main.go", "fragments/a_1/setting.go", "fragments/a_1/line11.go"} {
		if found, err := filepath.Glob(filepath.Join(folder, name)); err != nil || len(found) != 1 {
			t.Errorf("write makes no %s", name)
		}
	}
}
