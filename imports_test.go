package snowkey_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "github.com/snowkey/snowkey"

// What the packages of other modules bring along.
var (
	gorm      = []string{"gorm.io/gorm", "github.com/jinzhu/inflection", "github.com/jinzhu/now", "golang.org/x/text"}
	sqlx      = []string{"github.com/jmoiron/sqlx"}
	goRedis   = []string{"github.com/redis/go-redis/v9", "github.com/cespare/xxhash/v2", "github.com/dgryski/go-rendezvous"}
	zooKeeper = []string{"github.com/go-zookeeper/zk"}
	pgx       = []string{"github.com/jackc/pgx/v5", "github.com/jackc/pgpassfile", "github.com/jackc/pgservicefile", "golang.org/x/text"}
)

// A rule says what a package may depend on, however indirectly, besides the
// standard library. Test files are free.
type rule struct {
	packages []string // of this repository, by path below the root
	modules  []string // of others
	anything bool     // no limit but the one on internal packages
}

// rules has one entry per public package. A package without one fails the test:
// what it may import is decided when it is made, not found out by a user whose
// build has grown. Arrows point up the list only.
//
// Packages of examples and internal have no entry: no user imports them. A public
// package may depend on an internal one that its rule names.
var rules = map[string]rule{
	"types":                {},
	"core":                 {packages: []string{"types"}},
	"core/lease":           {packages: []string{"types", "core"}},
	"core/lease/leasetest": {packages: []string{"types", "core", "core/lease"}},
	"core/lease/sqllease":  {packages: []string{"types", "core", "core/lease", "internal/filesystem"}},
	"core/lease/filelease": {packages: []string{"types", "core", "core/lease", "internal/filesystem"}},
	// Modules of their own, so that their clients reach nobody else.
	"core/lease/redislease": {packages: []string{"types", "core", "core/lease"}, modules: goRedis},
	"core/lease/zklease":    {packages: []string{"types", "core", "core/lease"}, modules: zooKeeper},
	"core/segment":          {packages: []string{"types"}},
	"core/serial":           {packages: []string{"types", "core"}},
	// Neither knows core: any source of keys serves.
	"gormplugin": {packages: []string{"types"}, modules: gorm},
	"sqlxhelper": {packages: []string{"types"}, modules: sqlx},
	// A module of its own for the same reason as the leases'.
	"sqlxhelper/pgxcopy": {packages: []string{"types", "sqlxhelper"}, modules: slices.Concat(sqlx, pgx)},
}

// private reports whether a package is for this repository alone.
func private(path string) bool {
	return slices.Contains(strings.Split(path, "/"), "internal")
}

// ruleFor returns the rule for the package at a path below the root.
func ruleFor(path string) (r rule, ok bool) {
	if private(path) || path == "examples" || strings.HasPrefix(path, "examples/") {
		return rule{anything: true, packages: []string{"internal/filesystem"}}, true
	}
	r, ok = rules[path]
	return r, ok
}

// A pkg is what `go list -deps -json` tells of a package.
type pkg struct {
	ImportPath string
	Standard   bool
	DepOnly    bool // not of the listed module, only depended on
	Module     *struct{ Path string }
	GoFiles    []string // neither test files nor those that use cgo
	CgoFiles   []string
	Deps       []string // all non-test imports, direct and indirect
}

// below returns the path of a package or module below the root, if it is of this
// repository.
func below(importPath string) (string, bool) {
	if importPath == root {
		return ".", true
	}
	return strings.CutPrefix(importPath, root+"/")
}

// strangers returns what is wrong with the dependencies of p; known has each
// of them.
func strangers(p pkg, known map[string]pkg) []string {
	self, _ := below(p.ImportPath)
	r, ok := ruleFor(self)
	if !ok {
		return []string{p.ImportPath + " has no entry in rules: add a rule"}
	}
	var bad []string
	for _, dep := range p.Deps {
		d, ok := known[dep]
		switch path, ours := below(dep); {
		case !ok:
			bad = append(bad, p.ImportPath+" depends on "+dep+", which go list does not describe")
		case d.Standard:
		case ours && private(path) && !private(self) && !slices.Contains(r.packages, path):
			bad = append(bad, p.ImportPath+" depends on the internal package "+dep)
		case r.anything || ours && slices.Contains(r.packages, path):
		case !ours && d.Module != nil && slices.Contains(r.modules, d.Module.Path):
		default:
			bad = append(bad, p.ImportPath+" depends on "+dep)
		}
	}
	return bad
}

func TestPackagesImportOnlyWhatTheirRuleAllows(t *testing.T) {
	seen := 0
	for _, dir := range workspace(t).dirs() {
		if dir != "." && private(dir) {
			continue // nothing in it can be imported by a user
		}
		listed := packagesOf(t, dir)
		known := map[string]pkg{}
		for _, p := range listed {
			known[p.ImportPath] = p
		}
		for _, p := range listed {
			if p.DepOnly || len(p.GoFiles)+len(p.CgoFiles) == 0 { // the latter holds tests alone, as this folder
				continue
			}
			seen++
			for _, s := range strangers(p, known) {
				t.Error(s)
			}
		}
	}
	if seen == 0 {
		t.Error("go list ./... = no package; want at least types")
	}
}

func TestRulesFindStrangers(t *testing.T) {
	module := func(path string) *struct{ Path string } { return &struct{ Path string }{path} }
	known := map[string]pkg{
		"fmt":                         {Standard: true},
		root + "/types":               {Module: module(root)},
		root + "/core":                {Module: module(root)},
		root + "/internal/x":          {Module: module(root)},
		root + "/core/internal/x":     {Module: module(root)},
		root + "/internal/filesystem": {Module: module(root)},
		"gorm.io/gorm/clause":         {Module: module("gorm.io/gorm")},
		"gorm.io/gormish":             {Module: module("gorm.io/gormish")},
		"github.com/jmoiron/sqlx":     {Module: module("github.com/jmoiron/sqlx")},
		"github.com/mattn/sqlite":     {Module: module("github.com/mattn/sqlite")},
		root + "ish/types":            {Module: module(root + "ish")},
		"orphan":                      {}, // neither of a module nor of the standard library
	}
	for _, test := range []struct {
		importer, dep string
		allowed       bool
	}{
		{"types", "fmt", true},
		{"types", root + "/core", false},
		{"types", "gorm.io/gorm/clause", false},
		{"core", root + "/types", true},
		{"core", root + "ish/types", false},
		{"core", "github.com/jmoiron/sqlx", false},
		{"gormplugin", root + "/types", true},
		{"gormplugin", "gorm.io/gorm/clause", true},
		{"gormplugin", "gorm.io/gormish", false},
		{"gormplugin", root + "/core", false},
		{"gormplugin", "github.com/jmoiron/sqlx", false},
		{"sqlxhelper", "github.com/jmoiron/sqlx", true},
		{"sqlxhelper", "gorm.io/gorm/clause", false},
		{"sqlxhelper", root + "/core", false},
		{"core/serial", root + "/core", true},
		{"core/segment", root + "/core", false},
		{"core", root + "/internal/x", false},
		{"core", root + "/core/internal/x", false},
		{"core/lease/filelease", root + "/internal/filesystem", true},
		{"core/lease/filelease", root + "/internal/x", false},
		{"core", root + "/internal/filesystem", false},
		{"examples/orders", "github.com/mattn/sqlite", true},
		{"examples/orders", root + "/core", true},
		{"examples/orders", root + "/internal/x", false},
		{"examples/orders", root + "/core/internal/x", false},
		{"internal/servertest", root + "/internal/x", true},
		{"core/internal/y", root + "/core/internal/x", true},
		{"gormplugin", "orphan", false},
		{"core", "github.com/unlisted", false},
		{"examples/orders", "github.com/unlisted", false},
		{"utils", "fmt", false}, // no rule
		{".", "fmt", false},
		{"examplesish", "fmt", false},
	} {
		got := strangers(pkg{ImportPath: path.Join(root, test.importer), Deps: []string{test.dep}}, known)
		if allowed := len(got) == 0; allowed != test.allowed {
			t.Errorf("strangers(%s importing %s) = %q; want allowed to be %v", test.importer, test.dep, got, test.allowed)
		}
	}
	got := strangers(pkg{ImportPath: root + "/utils"}, known)
	if len(got) != 1 || !strings.Contains(got[0], "add a rule") {
		t.Errorf("strangers(utils) = %q; want one that says %q", got, "add a rule")
	}
}

// A goMod is what `go mod edit -json` tells of a go.mod.
type goMod struct {
	Module    struct{ Path string }
	Go        string
	Toolchain string
	Require   []struct {
		Path     string
		Indirect bool
	}
	Exclude []struct{ Path string }
	Replace []replacement
}

type replacement struct {
	Old, New struct{ Path string }
}

// A user's build takes the highest version that anybody requires, so each line
// here is a floor for every user. Drivers of servers belong in nested modules.
func TestRootRequiresExactlyTheseModules(t *testing.T) {
	mod := modOf(t, ".")
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	slices.Sort(direct)
	want := []string{
		"github.com/DATA-DOG/go-sqlmock",
		"github.com/jmoiron/sqlx",
		"github.com/mattn/go-sqlite3",
		"gorm.io/driver/sqlite",
		"gorm.io/gorm",
	}
	if !slices.Equal(direct, want) {
		t.Errorf("direct requirements of the root = %q; want %q", direct, want)
	}
}

// The go line is the oldest Go that a user may have; a toolchain line would make
// a newer one download itself. Replace and exclude lines work for us and not for
// users, so they would hide from us what users get.
func TestRootBuildsForUsersAsForUs(t *testing.T) {
	mod := modOf(t, ".")
	if mod.Module.Path != root || mod.Go != "1.25.0" || mod.Toolchain != "" {
		t.Errorf("go.mod has module %q, go %q, toolchain %q; want %q, %q, none",
			mod.Module.Path, mod.Go, mod.Toolchain, root, "1.25.0")
	}
	if len(mod.Replace) != 0 || len(mod.Exclude) != 0 {
		t.Errorf("go.mod has %d replace and %d exclude lines; want none", len(mod.Replace), len(mod.Exclude))
	}
}

// unreplaced returns what mod, in the folder dir, requires of this repository
// without a relative replace line that leads there. in has the folder of each
// module of the repository.
func unreplaced(mod goMod, dir string, in map[string]string) []string {
	var bad []string
	for _, r := range mod.Require {
		target, ours := in[r.Path]
		if _, below := below(r.Path); !ours && !below {
			continue
		}
		replaced := slices.ContainsFunc(mod.Replace, func(l replacement) bool {
			return l.Old.Path == r.Path && ours &&
				!path.IsAbs(l.New.Path) && path.Join(dir, l.New.Path) == target
		})
		if !replaced {
			bad = append(bad, dir+"/go.mod requires "+r.Path+" without a relative replace line to its folder")
		}
	}
	return bad
}

// Without the lines, GOWORK=off would fetch a published version of the root, and
// the checks would be of something else than the tree.
func TestNestedModulesReplaceWhatTheyRequireOfUs(t *testing.T) {
	mods, in := map[string]goMod{}, map[string]string{}
	for _, dir := range workspace(t).dirs() {
		mod := modOf(t, dir)
		mods[dir], in[mod.Module.Path] = mod, dir
		if want := path.Join(root, dir); mod.Module.Path != want {
			t.Errorf("%s/go.mod has module %q; want %q", dir, mod.Module.Path, want)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(mods)) {
		for _, bad := range unreplaced(mods[dir], dir, in) {
			t.Error(bad)
		}
	}
}

func TestReplaceRuleWantsARelativePathToTheModule(t *testing.T) {
	in := map[string]string{root: ".", root + "/a": "a", root + "/b/c": "b/c"}
	for _, test := range []struct {
		require, replace, with string
		want                   bool
	}{
		{root, root, "../..", true},
		{root, root, "../../", true},
		{root, root, "..", false},
		{root, root, "../../..", false},
		{root, root, "/../..", false},
		{root, root, "github.com/fork/snowkey", false},
		{root, root + "/a", "../..", false},
		{root + "/a", root + "/a", "../../a", true},
		{root + "/gone", root + "/gone", "../../gone", false},
		{"gorm.io/gorm", root, "../..", true},
	} {
		var mod goMod
		text := `{"Require":[{"Path":"` + test.require + `"}],"Replace":[{"Old":{"Path":"` + test.replace +
			`"},"New":{"Path":"` + test.with + `"}}]}`
		if err := json.Unmarshal([]byte(text), &mod); err != nil {
			t.Fatal(err)
		}
		if got := unreplaced(mod, "b/c", in); (len(got) == 0) != test.want {
			t.Errorf("unreplaced(require %s, replace %s => %s) = %q; want fine to be %v",
				test.require, test.replace, test.with, got, test.want)
		}
	}
}

// A module that go.work does not list is tested by nobody: `go test work` and
// the checks take their modules from there.
func TestWorkspaceListsEveryModule(t *testing.T) {
	found, err := moduleFolders(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	if listed := workspace(t).dirs(); !slices.Equal(listed, found) {
		t.Errorf("go.work lists %q; want every folder that has a go.mod: %q", listed, found)
	}
}

// moduleFolders returns the folders that have a go.mod, sorted, where the go
// command would find them: not in testdata, and not below a name that begins
// with a dot or an underscore.
func moduleFolders(tree fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if entry.IsDir() && name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata") {
			return fs.SkipDir
		}
		if base == "go.mod" {
			found = append(found, path.Dir(name))
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

func TestModulesAreFoundWhereTheGoCommandLooks(t *testing.T) {
	tree := fstest.MapFS{}
	for _, name := range []string{
		"go.mod", "a/go.mod", "b/c/go.mod", "d/go.modish",
		".x/go.mod", "_x/go.mod", "e/testdata/go.mod", "e/testdata/f/go.mod",
	} {
		tree[name] = &fstest.MapFile{}
	}
	want := []string{".", "a", "b/c"}
	if got, err := moduleFolders(tree); err != nil || !slices.Equal(got, want) {
		t.Errorf("moduleFolders(%v) = %q, %v; want %q", slices.Sorted(maps.Keys(tree)), got, err, want)
	}
}

// A goWork is what `go work edit -json` tells of go.work.
type goWork struct {
	Use []struct{ DiskPath string }
}

// dirs returns the folders of the modules, relative to the root, sorted.
func (w goWork) dirs() []string {
	var dirs []string
	for _, use := range w.Use {
		dirs = append(dirs, path.Clean(use.DiskPath))
	}
	slices.Sort(dirs)
	return dirs
}

// goOutput runs the go command in dir, outside the workspace.
func goOutput(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s in %s = %v; want no error\n%s", strings.Join(args, " "), dir, err, stderr.String())
	}
	return out
}

func modOf(t *testing.T, dir string) (mod goMod) {
	t.Helper()
	if err := json.Unmarshal(goOutput(t, dir, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	return mod
}

func workspace(t *testing.T) (work goWork) {
	t.Helper()
	if err := json.Unmarshal(goOutput(t, ".", "work", "edit", "-json", "go.work"), &work); err != nil {
		t.Fatal(err)
	}
	return work
}

// packagesOf returns the packages of the module in dir and all that they depend
// on.
func packagesOf(t *testing.T, dir string) (all []pkg) {
	t.Helper()
	out := goOutput(t, dir, "list", "-deps", "-json=ImportPath,Standard,DepOnly,Module,GoFiles,CgoFiles,Deps", "./...")
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
