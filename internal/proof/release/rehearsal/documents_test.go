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
	if err != nil || len(d.settings) != 2 || len(d.groups) != 2 || len(d.groups[0]) != 2 || len(d.groups[1]) != 1 || d.groups[1][0].Text != "y = 3\n" {
		t.Errorf("readDocument(%q) = %+v, %v; want two fragments with the first setting and one with the second", page, d, err)
	}
}

func TestBlocksThatCannotBeCheckedAreErrors(t *testing.T) {
	for page, want := range map[string]string{
		"```go\npackage main\n\nfunc main() {}\n```\n":                                               "a.md:2: the program shows no output",
		"```go\npackage main\n\nfunc main() {}\n```\n\n```go\npackage main\n\nfunc main() {}\n```\n": "a.md:2: the program shows no output",
		"```go\nx = 1\n```\n":                                                 "a.md:2: a fragment without a setting",
		"<!-- setting\npackage main\n\nvar x\n-->\n":                          "a.md:2: ",
		"\n```\nplain\n```\n":                                                 `a.md:3: a block of ""`,
		"```rust\nlet x = 1;\n```\n":                                          `a.md:2: a block of "rust"`,
		"```json\n{\"id\": 1,}\n```\n":                                        "a.md:2: invalid character",
		"```json\n{\"id\": \n```\n":                                           "a.md:2: unexpected EOF",
		"```sql\nSELECT 1\n```\n":                                             "a.md:2: a block of sql: want a comment",
		"<!-- run by TestOf -->\n```sql\n```\n":                               "a.md:3: there is no TestOf, which is to run this",
		"```sh\ngo run ./examples/nothing\n```\n":                             "no folder ./examples/nothing",
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

func TestFragmentsBecomeFilesOfGo(t *testing.T) {
	const imports = "package main\n\nimport (\n\t\"context\"\n\t\"testing\"\n\n\tsnow \"github.com/snowkey/snowkey/core\"\n\t\"github.com/redis/go-redis/v9\"\n)\n\nvar ctx context.Context\n"
	s, err := newSetting(imports)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.text, "snow") || strings.Contains(s.text, "testing") || !strings.Contains(s.text, `"context"`) || strings.Count(s.text, "\n") != strings.Count(imports, "\n") {
		t.Errorf("newSetting(%q) = %q; want it without the imports that it does not use, with all lines", imports, s.text)
	}
	const line = "\n//line p.md:7\n"
	for _, test := range []struct {
		text, want string
		test       bool
	}{
		{"x := 1\n", "package main\nfunc _() {" + line + "x := 1\n\n_ = x\n}\n", false},
		{"// Comment.\nvar x, err = f()\n", "package main\n" + line + "// Comment.\nvar x, err = f()\n", false},
		{"if err := f(); err != nil {\n\treturn err\n}\nvar a, _ = 1, 2\n", "package main\nfunc _() error {" + line + "if err := f(); err != nil {\n\treturn err\n}\nvar a, _ = 1, 2\n\n_ = a\nreturn nil\n}\n", false},
		{"f(func() error { return nil })\n", "package main\nfunc _() {" + line + "f(func() error { return nil })\n\n}\n", false},
		{"snow.New(redis.Nil)\n", "package main\nimport snow \"github.com/snowkey/snowkey/core\"\nimport redis \"github.com/redis/go-redis/v9\"\nfunc _() {" + line + "snow.New(redis.Nil)\n\n}\n", false},
		{"func TestX(t *testing.T) {}\n", "package main\nimport testing \"testing\"\n" + line + "func TestX(t *testing.T) {}\n", true},
		{"func Testing() {}\n", "package main\n" + line + "func Testing() {}\n", false},
		{"import \"testing\"\n\nvar t testing.T\n", "package main\n" + line + "import \"testing\"\n\nvar t testing.T\n", false},
		{"x :=\n", "", false},
		{"func {\n", "", false},
	} {
		got, isTest, err := s.file("p.md", markdown.Block{Text: test.text, Line: 7})
		if string(got) != test.want || isTest != test.test || (err == nil) != (test.want != "") {
			t.Errorf("file(%q) = %q, %v, %v; want %q, %v", test.text, got, isTest, err, test.want, test.test)
		}
	}
}

func TestImportsAreNamedAsGoimportsNamesThem(t *testing.T) {
	for importPath, want := range map[string]string{
		"context": "context", "database/sql": "sql", "gorm.io/gorm": "gorm",
		"github.com/redis/go-redis/v9": "redis", "github.com/DATA-DOG/go-sqlmock": "sqlmock",
		"github.com/jackc/pgx/v5/stdlib": "stdlib", "gopkg.in/yaml.v3": "yaml", "github.com/lib/pq": "pq",
	} {
		s, err := newSetting("package main\n\nimport \"" + importPath + "\"\n\nvar _ = " + want + ".X\n")
		if err != nil {
			t.Fatal(err)
		}
		if got := importName(s.imports[0]); got != want || !strings.Contains(s.text, "import") {
			t.Errorf("importName(%q) = %q; want %q, and the import stays in the setting: %s", importPath, got, want, s.text)
		}
	}
}

func TestCommandsOfAPageNameWhatExists(t *testing.T) {
	for text, found := range map[string]bool{
		"go run ./examples/quickstart -x   # one file\n": true,
		"go run ./docs\n":                                     false,
		"go run ./internal\n":                                 false,
		"go test work\n":                                      true,
		"go test ./...\n":                                     true,
		"go test ./nothing/...\n":                             false,
		"A=1 go test -v -run TestNext ./core\n":               true,
		"go test -run 'TestNext/sub' ./core\n":                true,
		"go test -run TestNothingAtAll ./core\n":              false,
		"go test -bench BenchmarkNothing ./core\n":            false,
		"go test -C internal/proof/servers/suites -run X .\n": false,
		"go test \\\n  ./nothing\n":                           false,
		"cd x && go run ./nothing\n":                          false,
		".ci/run gofmt lint\n":                                true,
		".ci/nightly work\n":                                  true,
		".ci/nightly wark\n":                                  false,
		".ci/run -l\n":                                        true,
		".ci/run gofm\n":                                      false,
		"make fast\n":                                         true,
		"make slow\n":                                         false,
		"kubectl apply -f orders.yaml\n":                      true,
		"# go run ./nothing\n":                                true,
	} {
		if err := checkShell(tree, text); (err == nil) != found {
			t.Errorf("checkShell(%q) = %v; want an error: %v", text, err, !found)
		}
	}
}

func TestProgramsAndFragmentsAreFilesOfAUser(t *testing.T) {
	d, err := readDocument(tree, page0, commented+"```go\nx = 2\n```\n```go\nfunc TestX(t *int) {}\n```\n```go\npackage main\n\nfunc main() {}\n```\n```text\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := d.write(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"programs/a_1/main.go", "fragments/a_1/setting.go", "fragments/a_1/line8.go", "fragments/a_1/line11_test.go"} {
		if found, err := filepath.Glob(filepath.Join(folder, name)); err != nil || len(found) != 1 {
			t.Errorf("write makes no %s", name)
		}
	}
}
