package snowkey_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/types"
)

// docs/errors.md and docs/logs.md list what an operator can meet. The lists here come from the
// source: exported errors and the messages of log lines.
func TestOperatorsFindEveryErrorAndLogLineOnTheirPages(t *testing.T) {
	const errorsPage, logsPage = "docs/errors.md", "docs/logs.md"
	// The head of an item ends at a colon. It has names, and texts of errors, each before the names
	// of its errors in parentheses.
	head, quoted := regexp.MustCompile("(?m)^- `[^`]*`(?:[^`:\n]|`[^`]*`)*"), regexp.MustCompile("`([^`]*)`( \\()?")
	listed := map[string]string{} // the page
	pages := map[string]string{}
	for _, page := range []string{errorsPage, logsPage} {
		text, err := os.ReadFile(filepath.FromSlash(page))
		if err != nil {
			t.Fatal(err)
		}
		pages[page] = string(text)
		for _, item := range head.FindAllString(string(text), -1) {
			for _, name := range quoted.FindAllStringSubmatch(item, -1) {
				if listed[name[1]] != "" {
					t.Errorf("%s lists %q, which is listed before", page, name[1])
				}
				if page == logsPage || name[2] == "" {
					listed[name[1]] = page
				}
			}
		}
	}
	met := whatOperatorsMeet(t)
	for name, at := range met {
		page := errorsPage
		if strings.Contains(name, ": ") {
			page = logsPage
		}
		if listed[name] != page {
			t.Errorf("%s has no item for %q of %s", page, name, at.where)
		}
		// A fixed text stands before the name, for those who have nothing else.
		if at.text != "" && !regexp.MustCompile("`"+regexp.QuoteMeta(at.text)+"` \\([^)]*`"+regexp.QuoteMeta(name)+"`").MatchString(pages[errorsPage]) {
			t.Errorf("%s has no item that leads from the text %q to %s", errorsPage, at.text, name)
		}
	}
	for name, page := range listed {
		if met[name].where == "" {
			t.Errorf("%s lists %q, which is not in the source", page, name)
		}
	}
	if len(met) < 80 {
		t.Errorf("%d errors and log lines are in the source; want more, or the search has missed some", len(met))
	}
}

// A caller that handles a closed generator handles all that can be closed, by one name, and an
// operator reads which of them it is.
func TestErrorsAfterCloseMatchOneErrorAndSayWhatIsClosed(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("docs/errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: core.StaticWorker(1023)})
	if err != nil {
		t.Fatal(err)
	}
	if err := gen.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, closed := gen.Next(t.Context())
	for name, err := range map[string]error{
		"core.ErrClosed": closed, "lease.ErrClosed": lease.ErrClosed, "segment.ErrClosed": segment.ErrClosed, "serial.ErrClosed": serial.ErrClosed,
	} {
		if !errors.Is(err, types.ErrClosed) || !errors.Is(err, core.ErrClosed) {
			t.Errorf("%s, %q, does not match types.ErrClosed", name, err)
		}
		if item := "`" + err.Error() + "` (`" + name + "`)"; !strings.Contains(string(page), item) {
			t.Errorf("docs/errors.md does not have %s", item)
		}
	}
}

// A met is where an exported error or a log line is in the source, and the text of an error that
// errors.New makes.
type met struct{ where, text string }

// whatOperatorsMeet returns the exported errors and the log lines, each with its place.
func whatOperatorsMeet(t *testing.T) map[string]met {
	all := map[string]met{}
	for _, folder := range []string{"core", "gormplugin", "sqlxhelper", "types"} {
		err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (strings.HasSuffix(name, "test") || entry.Name() == "testdata" || entry.Name() == "model"):
				return filepath.SkipDir // suites of tests
			case filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if name := metAt(file.Name.Name, n); name != "" {
					all[name] = met{files.Position(n.Pos()).String(), textOf(n)}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, at := range all {
		shown := strings.Replace(name, "leasestore.", "lease.", 1) // where users have the errors of stores
		if shown == name {
			continue
		}
		if all[shown].where == "" {
			t.Errorf("%s of %s has no name in package lease", name, at.where)
		}
		all[shown] = met{all[shown].where, at.text}
		delete(all, name)
	}
	return all
}

// textOf returns the text of a declared error that errors.New makes, or "".
func textOf(n ast.Node) string {
	spec, ok := n.(*ast.ValueSpec)
	if !ok || len(spec.Values) != 1 {
		return ""
	}
	call, ok := spec.Values[0].(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return ""
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(literal.Value) // the parser has accepted it
	return text
}

// metAt returns what a node declares or logs, or nothing.
func metAt(pkg string, n ast.Node) string {
	switch n := n.(type) {
	case *ast.ValueSpec:
		if name := n.Names[0].Name; strings.HasPrefix(name, "Err") {
			return pkg + "." + name
		}
	case *ast.TypeSpec:
		if name := n.Name.Name; strings.HasSuffix(name, "Error") && ast.IsExported(name) {
			return "*" + pkg + "." + name
		}
	case *ast.CallExpr:
		return logLine(n)
	}
	return ""
}

var logMethod = regexp.MustCompile(`^(Log|(Debug|Info|Warn|Error)(Context)?)$`)

// logLine returns the message that a call logs, up to the end of its first clause: a
// colon behind that of the package, a semicolon or a full stop.
func logLine(call *ast.CallExpr) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !logMethod.MatchString(method.Sel.Name) {
		return ""
	}
	for _, argument := range call.Args {
		for {
			sum, ok := argument.(*ast.BinaryExpr)
			if !ok {
				break
			}
			argument = sum.X
		}
		literal, ok := argument.(*ast.BasicLit)
		if !ok {
			continue
		}
		message, _ := strconv.Unquote(literal.Value) // the parser has accepted it
		pkg, rest, _ := strings.Cut(message, ": ")
		return pkg + ": " + ending.ReplaceAllString(rest, "")
	}
	return ""
}

var ending = regexp.MustCompile(`([:;.] .*|:)$`)

// Two pages say what key a row takes that is inserted by hand, and the answer is one: no number that
// a person makes up, but a key of a worker number that is set aside.
func TestRowsByHandTakeAKeyLikeAnyOther(t *testing.T) {
	const answer = "a key like any other"
	for page, heading := range map[string]string{"gorm.md": "## A row by hand\n", "operations.md": "## Insert a row by hand\n"} {
		text, err := os.ReadFile(filepath.Join("docs", page))
		if err != nil {
			t.Fatal(err)
		}
		_, section, found := strings.Cut(string(text), heading)
		section, _, _ = strings.Cut(section, "\n## ")
		if !found || !strings.Contains(section, answer) {
			t.Errorf("docs/%s, %q: %q; want %q", page, strings.TrimSpace(heading), section, answer)
		}
		if made := regexp.MustCompile(`such as [0-9]|small number`).FindString(section); made != "" {
			t.Errorf("docs/%s, %q: it names %q for a key; want %q", page, strings.TrimSpace(heading), made, answer)
		}
	}
}

// The first run stores the layout, so that a page which shows the default first leads an existing
// program into lease.ErrLayout.
func TestPagesSayBeforeTheFirstRunWhichLayoutAnExistingProgramTakes(t *testing.T) {
	for page, heading := range map[string]string{"README.md": "\n## sqlx\n", "docs/existing.md": "\n## Three ways\n"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, section, found := strings.Cut(string(text), heading)
		section, _, _ = strings.Cut(section, "snowkey.Open(")
		if !found || !strings.Contains(section, "core.JavaScript()") || !strings.Contains(section, "first run") {
			t.Errorf("%s,%q before the first snowkey.Open = %q; want core.JavaScript() and the first run in it", page, strings.TrimSpace(heading), section)
		}
	}
}
