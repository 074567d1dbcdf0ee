package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// everything is git's name for the tree without files: since then, all files have changed.
const everything = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// A tree is a checkout.
type tree struct{ dir string }

func (t tree) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", t.dir, "-c", "safe.directory=*"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// base returns the commit where the change that is judged begins: SNOWKEY_BASE, which GitHub's
// workflow sets, or where HEAD left origin/main. On main itself it is the commit before the last.
// Without any of these, as in a tree that is no clone, everything counts as changed.
func (t tree) base(ctx context.Context) string {
	if named := os.Getenv("SNOWKEY_BASE"); named != "" {
		if base, err := t.git(ctx, "merge-base", "HEAD", named); err == nil {
			return base
		}
	}
	head, err := t.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return everything
	}
	if base, err := t.git(ctx, "merge-base", "HEAD", "origin/main"); err == nil && base != head {
		return base
	}
	if base, err := t.git(ctx, "rev-parse", "--verify", "--quiet", "HEAD^"); err == nil {
		return base
	}
	return everything
}

// changed returns the files that differ from those of a commit, committed or not, and those that
// are gone. Where there is no git it returns all files.
func (t tree) changed(ctx context.Context, base string) ([]string, error) {
	if base == everything {
		var files []string
		err := filepath.WalkDir(t.dir, func(name string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				if err == nil && d.Name() == ".git" {
					return filepath.SkipDir
				}
				return err
			}
			relative, err := filepath.Rel(t.dir, name)
			files = append(files, filepath.ToSlash(relative))
			return err
		})
		return files, err
	}
	differ, err := t.git(ctx, "diff", "--name-only", "--no-renames", base)
	if err != nil {
		return nil, err
	}
	fresh, err := t.git(ctx, "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	files := strings.Fields(differ + "\n" + fresh) // no name in this tree has a space
	slices.Sort(files)
	return slices.Compact(files), nil
}

// untidy returns the folders of the modules that files of Go, a go.mod or a go.sum belong to. No
// other change can make a module untidy.
func (t tree) untidy(files []string) []string {
	var modules []string
	for _, f := range files {
		if path.Ext(f) != ".go" && path.Base(f) != "go.mod" && path.Base(f) != "go.sum" {
			continue
		}
		if m := t.module(f); m != "" {
			modules = append(modules, m)
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// module returns the folder of the module that a file belongs to.
func (t tree) module(file string) string {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(t.dir, dir, "go.mod")); err == nil {
			return dir
		}
		if dir == "." {
			return ""
		}
	}
}
