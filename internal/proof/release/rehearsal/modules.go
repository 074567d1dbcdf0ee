package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/zip"
)

// root is the path of the root module. The nested modules are below it.
const root = "github.com/snowkey/snowkey"

// ours reports whether a module is one of this repository.
func ours(modulePath string) bool {
	return modulePath == root || strings.HasPrefix(modulePath, root+"/")
}

// A module is a module of this repository.
type module struct {
	folder string // below the tree, with slashes; "." is the root module
	file   *modfile.File
}

func (m module) path() string { return m.file.Module.Mod.Path }

// published reports whether users can require the module.
func (m module) published() bool {
	folder := "/" + m.folder + "/"
	return !strings.Contains(folder, "/internal/") && !strings.Contains(folder, "/examples/")
}

// modules returns the modules of the tree in the order of its go.work.
func modules(tree string) ([]module, error) {
	name := filepath.Join(tree, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork(name, text, nil)
	if err != nil {
		return nil, err
	}
	var all []module
	for _, use := range work.Use {
		m := module{folder: path.Clean(use.Path)}
		name := filepath.Join(tree, m.folder, "go.mod")
		if text, err = os.ReadFile(name); err != nil {
			return nil, err
		}
		if m.file, err = modfile.Parse(name, text, nil); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// checkNames returns an error that lists the files that no module zip may contain.
// These are names that Windows reserves or cannot write, and names that differ only in
// case. Modules that are not published count too, because their files are in every
// clone.
func checkNames(tree string) error {
	all, err := modules(tree)
	if err != nil {
		return err
	}
	var bad []error
	for _, m := range all {
		if _, err := zip.CheckDir(filepath.Join(tree, m.folder)); err != nil {
			bad = append(bad, fmt.Errorf("module %s: %w", m.path(), err))
		}
	}
	return errors.Join(bad...)
}

// raise makes the modules of the tree require this version of each other.
func raise(tree, version string) error {
	all, err := modules(tree)
	if err != nil {
		return err
	}
	for _, m := range all {
		for _, r := range m.file.Require {
			if ours(r.Mod.Path) {
				if err := m.file.AddRequire(r.Mod.Path, version); err != nil {
					return err
				}
			}
		}
		text, err := m.file.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(tree, m.folder, "go.mod"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
