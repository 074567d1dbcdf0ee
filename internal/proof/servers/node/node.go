// Package node runs the JavaScript of a test with node, and with packages of npm.
//
// Without node or npm a test is skipped, and failed in CI, as servertest does it for servers.
// The package imports only the standard library.
package node

import (
	"bytes"
	"crypto/sha256"
	"fmt"
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

// program returns the path of a program of node. Without one it ends the test.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		servertest.Missing(t, fmt.Sprintf("node: %v; install Node.js 18 or later with npm", err))
	}
	return path
}

// install returns the folder node_modules for the lock file. No package may run a script.
func install(t testing.TB, folder string) string {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(folder, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(user, "snowkey", "node")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
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
	if err := os.CopyFS(unfinished, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	ci := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
	ci.Dir = unfinished
	if out, err := ci.CombinedOutput(); err != nil {
		t.Fatalf("npm ci for %s: %v\n%s", folder, err, out)
	}
	if err := os.Rename(unfinished, home); err != nil {
		if _, err := os.Stat(modules); err != nil { // not another test's either
			t.Fatal(err)
		}
	}
	return modules
}
