// Package node runs the JavaScript of a test with node, and with packages of npm.
//
// Without node or npm a test is skipped, and failed in CI, as servertest does it for servers.
// The package imports only the standard library.
package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// Project returns a temporary copy of the folder in which a script finds the packages of
// package-lock.json. They are downloaded once, into snowkey/node of the user's cache. The lock
// file names no registry: omit-lockfile-registry-resolved is set in the .npmrc beside it.
func Project(t testing.TB, folder string) string {
	t.Helper()
	modules := install(t, folder)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Run runs a script in the folder, and returns what it prints. The script may be of a package,
// such as node_modules/typescript/bin/tsc. If it fails, so does the test.
func Run(t testing.TB, folder, script string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t, "node"), append([]string{script}, args...)...)
	command.Dir = folder
	var complaint bytes.Buffer
	command.Stderr = &complaint
	out, err := command.Output()
	if err != nil {
		t.Fatalf("node %s: %v\n%s%s", script, err, out, &complaint)
	}
	return string(out)
}

// Make runs a compiler that writes into out, a folder within folder. What it has written for the
// same files before is taken from the user's cache: tsc takes five seconds of a processor.
func Make(t testing.TB, folder, out, script string, args ...string) {
	t.Helper()
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q%q", script, args)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() { // node_modules is a link; its lock file counts
			return err
		}
		text, err := os.ReadFile(path)
		_, _ = fmt.Fprintf(sum, "%q%q", path[len(folder):], text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cache := cache(t)
	kept := filepath.Join(cache, fmt.Sprintf("%x", sum.Sum(nil))[:16])
	made := filepath.Join(folder, out)
	if os.CopyFS(made, os.DirFS(kept)) == nil {
		return
	}
	Run(t, folder, script, args...)
	unfinished, err := os.MkdirTemp(cache, "unfinished") //nolint:usetesting // as in install
	if err == nil {
		defer func() { _ = os.RemoveAll(unfinished) }()
		err = os.CopyFS(unfinished, os.DirFS(made))
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = os.Rename(unfinished, kept) // unless another test has been faster
}

// program returns the path of a program of node. Without one it ends the test.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		servertest.Missing(t, fmt.Sprintf("node: %v; install Node.js 18 or later with npm", err))
	}
	return path
}

// cache returns the folder of what tests keep.
func cache(t testing.TB) string {
	t.Helper()
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(user, "snowkey", "node")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// install returns the folder node_modules for the lock file.
func install(t testing.TB, folder string) string {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache := cache(t)
	home := filepath.Join(cache, fmt.Sprintf("%x", sha256.Sum256(lock))[:16])
	modules := filepath.Join(home, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules
	}
	npm := program(t, "npm")
	// The folder has its name when it is complete, because the tests of other packages look
	// for it at the same time.
	unfinished, err := os.MkdirTemp(cache, "unfinished") //nolint:usetesting // it is renamed, so it has to be on the cache's file system
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(unfinished) }()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(unfinished, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := clean(t.Context(), npm, unfinished); err != nil {
		t.Fatalf("npm ci for %s: %v\n%s", folder, err, out)
	}
	if err := os.Rename(unfinished, home); err != nil {
		if _, err := os.Stat(modules); err != nil { // not another test's either
			t.Fatal(err)
		}
	}
	return modules
}

// clean installs what the lock file of the folder says. No package may run a script.
func clean(ctx context.Context, npm, folder string) ([]byte, error) {
	command := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
	command.Dir = folder
	return command.CombinedOutput()
}
