package snowkey_test

import (
	"cmp"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	stabilityMark = regexp.MustCompile(`(?m)^This package is (stable|experimental)\.$`)
	stabilityRow  = regexp.MustCompile(`(?m)^\| (stable|experimental) \| (.*) \|$`)
	packageInRow  = regexp.MustCompile("(?:^|[ ,])`([a-z0-9/]+)`")
)

// What the README lists and what the comments of the packages say are the same.
func TestEachPackageSaysWhetherItIsStable(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, row := range stabilityRow.FindAllStringSubmatch(string(readme), -1) {
		packages, _, _ := strings.Cut(row[2], ";") // what follows is about parts of packages
		for _, name := range packageInRow.FindAllStringSubmatch(packages, -1) {
			listed[name[1]] = row[1]
		}
	}
	found := map[string]bool{}
	for name, doc := range packageComments(t) {
		marks := stabilityMark.FindAllStringSubmatch(doc, -1)
		name = cmp.Or(strings.TrimPrefix(name, "."), "snowkey")
		found[name] = true
		switch {
		case len(marks) != 1:
			t.Errorf("the comment of package %s says %q; want one of \"This package is stable.\" and \"This package is experimental.\"", name, marks)
		case listed[name] != marks[0][1]:
			t.Errorf("README lists %s as %q, and its comment says %s", name, listed[name], marks[0][1])
		}
	}
	for name := range listed {
		if !found[name] {
			t.Errorf("README lists %s, which is no package that programs import", name)
		}
	}
}

// packageComments returns the comments of the packages that programs import, by their folders.
func packageComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := path.Base(name); slices.Contains([]string{"internal", "testdata", "cmd", "examples", "docs", "model"}, base) || len(base) > 1 && base[0] == '.' {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		comments[path.Dir(name)] += f.Doc.Text()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return comments
}
