package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"
)

// tree is the repository.
var tree = filepath.Join("..", "..", "..", "..")

func TestNoFileNameIsIllegalInAModuleZipOrOnWindows(t *testing.T) {
	if err := checkNames(tree); err != nil {
		t.Errorf("checkNames(the tree) = %v; want nil", err)
	}
}

func TestIllegalFileNamesAreFoundInEveryModule(t *testing.T) {
	for _, name := range []string{"nul", "AUX.txt", "con.go", "Prn", "com1", "LPT9.csv", "a:b", "a.", "a b.", "what?", "Go.mod", "LICENSE.TXT"} {
		for _, folder := range []string{".", "internal/x"} {
			dir := workspace(t)
			write(t, filepath.Join(dir, folder, "license.txt"), "")
			write(t, filepath.Join(dir, folder, name), "")
			err := checkNames(dir)
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("checkNames(with %s/%s) = %v; want an error that names it", folder, name, err)
			}
		}
	}
	if err := checkNames(workspace(t)); err != nil {
		t.Errorf("checkNames(without) = %v; want nil", err)
	}
}

func TestOnlyModulesThatUsersCanImportArePublished(t *testing.T) {
	for folder, want := range map[string]bool{
		".": true, "core/lease/redislease": true, "sqlxhelper/pgxcopy": true,
		"internal/proof/lab/bench": false, "core/internal/x": false, "examples/replicas": false, "internals": true,
	} {
		if got := (module{folder: folder}).published(); got != want {
			t.Errorf("published(%s) = %v; want %v", folder, got, want)
		}
	}
}

func TestRaiseChangesWhatTheModulesRequireOfEachOtherAndNothingElse(t *testing.T) {
	dir := workspace(t)
	must(t, raise(dir, "v1.2.3"))
	name := filepath.Join(dir, "internal", "x", "go.mod")
	got, err := os.ReadFile(name)
	must(t, err)
	if want := strings.ReplaceAll(nested, "v0.0.0-00010101000000-000000000000", "v1.2.3"); string(got) != want {
		t.Errorf("go.mod after raise = %s; want %s", got, want)
	}
	if got, err = os.ReadFile(filepath.Join(dir, "go.mod")); err != nil || string(got) != rootFile {
		t.Errorf("go.mod of the root after raise = %s, %v; want it unchanged", got, err)
	}
}

// A module that go.work does not list is not tested. `go test work` and the checks take
// their modules from there.
func TestTheWorkspaceListsEveryModule(t *testing.T) {
	all, err := modules(tree)
	must(t, err)
	var listed, found []string
	for _, m := range all {
		listed = append(listed, m.folder)
		if want := path.Join(root, m.folder); m.path() != want {
			t.Errorf("%s/go.mod has module %s; want %s", m.folder, m.path(), want)
		}
	}
	err = filepath.WalkDir(tree, func(name string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.Name() == "go.mod":
			folder, err := filepath.Rel(tree, filepath.Dir(name))
			found = append(found, filepath.ToSlash(folder))
			return err
		}
		return nil
	})
	must(t, err)
	slices.Sort(listed)
	slices.Sort(found)
	if !slices.Equal(listed, found) {
		t.Errorf("go.work lists %q; want every folder that has a go.mod: %q", listed, found)
	}
}

// Without the lines, GOWORK=off would fetch a published version. The checks would then
// not be of the tree.
func TestModulesReplaceWhatTheyRequireOfUs(t *testing.T) {
	all, err := modules(tree)
	must(t, err)
	for _, m := range all {
		lines := map[string]string{}
		for _, r := range m.file.Replace {
			lines[r.Old.Path] = path.Join(root, m.folder, r.New.Path)
		}
		for _, r := range m.file.Require {
			if ours(r.Mod.Path) && lines[r.Mod.Path] != r.Mod.Path {
				t.Errorf("%s/go.mod requires %s without a relative replace line to its folder", m.folder, r.Mod.Path)
			}
		}
	}
}

func TestConsumersKnowTheNewestVersionOfEveryRequirement(t *testing.T) {
	all, err := modules(tree)
	must(t, err)
	versions := map[string]string{}
	for _, version := range newest {
		name, number, _ := strings.Cut(version, "@")
		versions[name] = number
	}
	for _, m := range all {
		for _, r := range m.file.Require {
			if m.published() && !r.Indirect && !ours(r.Mod.Path) && semver.Compare(versions[r.Mod.Path], r.Mod.Version) < 0 {
				t.Errorf("newest has %q of %s; want %s of %s/go.mod or later", versions[r.Mod.Path], r.Mod.Path, r.Mod.Version, m.folder)
			}
		}
	}
}

const (
	rootFile = `module github.com/snowkey/snowkey

go 1.25.0

require gorm.io/gorm v1.30.2
`
	nested = `module github.com/snowkey/snowkey/internal/x

go 1.25.0

replace github.com/snowkey/snowkey => ../..

require (
	github.com/snowkey/snowkey v0.0.0-00010101000000-000000000000
	github.com/snowkey/snowkey/sqlxhelper/pgxcopy v0.0.0-00010101000000-000000000000 // indirect
	github.com/snowkeyish/snowkey v0.0.1
)
`
)

// workspace returns a folder with a root module and a nested one.
func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.work"), "go 1.25.0\n\nuse (\n\t.\n\t./internal/x\n)\n")
	write(t, filepath.Join(dir, "go.mod"), rootFile)
	write(t, filepath.Join(dir, "internal", "x", "go.mod"), nested)
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
