package gormplugin_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The pages show code that is compiled and run, and what it prints. Each block of
// either stands in an example or in a case, but for its indentation.
func TestCodeOnThePagesIsThatOfTheExamples(t *testing.T) {
	files, err := filepath.Glob("example_*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %v, %v; want the examples", files, err)
	}
	files = append(files, filepath.Join("schemacheck", "example_test.go"), filepath.Join("..", "internal", "gormcases", "migrating.go"))
	var sources []string
	for _, file := range files {
		sources = append(sources, flush(t, file))
	}
	for _, page := range []string{"gorm.md", "migrating.md"} {
		blocks := strings.Split(flush(t, filepath.Join("..", "docs", page)), "\n```")
		if len(blocks) < 3 {
			t.Errorf("%s has no code", page)
		}
		for _, block := range blocks {
			kind, text, _ := strings.Cut(block, "\n")
			switch kind {
			case "go":
			case "text":
				text = "// " + strings.ReplaceAll(text, "\n", "\n// ")
			default:
				continue // the end of a block, or SQL, which the cases run
			}
			in := func(source string) bool {
				return strings.Contains(source, "\n"+text+"\n") || kind == "text" && strings.Contains(source, "\n// Output: "+text[3:]+"\n")
			}
			if !slices.ContainsFunc(sources, in) {
				t.Errorf("%s shows what is in no example:\n%s", page, text)
			}
		}
	}
}

// flush returns the text of a file without indentation.
func flush(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "\n")
}
