package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// repository makes a clone with two commits: files as they were, and files as they are. An empty
// text removes a file.
func repository(t *testing.T, before, after map[string]string) tree {
	t.Helper()
	for _, name := range []string{"SNOWKEY_BASE", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, "")
		must(t, os.Unsetenv(name))
	}
	repo := tree{dir: t.TempDir()}
	git(t, repo, "init", "-q", "-b", "main")
	for _, files := range []map[string]string{before, after} {
		write(t, repo, files)
		git(t, repo, "add", "-A")
		git(t, repo, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "test")
	}
	return repo
}

func git(t *testing.T, repo tree, args ...string) string {
	t.Helper()
	out, err := repo.git(t.Context(), args...)
	must(t, err)
	return out
}

func write(t *testing.T, repo tree, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(repo.dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o777))
		if text == "" {
			must(t, os.Remove(file))
			continue
		}
		must(t, os.WriteFile(file, []byte(text), 0o666))
	}
}

func TestAChangeIsWhatDiffersFromItsBase(t *testing.T) {
	repo := repository(t,
		map[string]string{"same": "1", "edited": "1", "removed": "1", "moved/from": "a long text that git knows again"},
		map[string]string{"edited": "2", "removed": "", "moved/from": "", "moved/to": "a long text that git knows again"})
	write(t, repo, map[string]string{"same": "2", "untracked": "1"})
	got, err := repo.changed(t.Context(), "HEAD^")
	if want := []string{"edited", "moved/from", "moved/to", "removed", "same", "untracked"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("changed = %q, %v; want %q", got, err, want)
	}
	got, err = repo.changed(t.Context(), "HEAD")
	if want := []string{"same", "untracked"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("changed since HEAD = %q, %v; want %q", got, err, want)
	}
}

func TestAChangeBeginsWhereItLeftMain(t *testing.T) {
	ctx := context.Background()
	repo := repository(t, map[string]string{"a": "1"}, map[string]string{"a": "2"})
	head, before := git(t, repo, "rev-parse", "HEAD"), git(t, repo, "rev-parse", "HEAD^")
	if got := repo.base(ctx); got != before {
		t.Errorf("base on main = %s; want the commit before the last, %s", got, before)
	}
	git(t, repo, "update-ref", "refs/remotes/origin/main", head)
	if got := repo.base(ctx); got != before {
		t.Errorf("base on a pushed main = %s; want the commit before the last, %s", got, before)
	}
	for _, text := range []string{"3", "4"} {
		write(t, repo, map[string]string{"a": text})
		git(t, repo, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-am", "test")
	}
	if got := repo.base(ctx); got != head {
		t.Errorf("base two commits after origin/main = %s; want origin/main, %s", got, head)
	}
	t.Setenv("SNOWKEY_BASE", before)
	if got := repo.base(ctx); got != before {
		t.Errorf("base with SNOWKEY_BASE = %s; want that commit, %s", got, before)
	}
	if got := (tree{dir: t.TempDir()}).base(ctx); got != everything {
		t.Errorf("base where there is no clone = %s; want %s", got, everything)
	}
}

func TestAModuleIsTidiedAgainIfItsRequirementsOrFilesOfGoChange(t *testing.T) {
	repo := tree{dir: t.TempDir()}
	write(t, repo, map[string]string{"go.mod": "module m", "edited/go.mod": "module e", "sums/go.mod": "module s", "same/go.mod": "module t"})
	got := repo.untidy([]string{"edited/x/p.go", "edited/y/removed.go", "same/doc.md", "sums/go.sum"})
	if want := []string{"edited", "sums"}; !slices.Equal(got, want) {
		t.Errorf("untidy = %q; want %q", got, want)
	}
	if got, want := repo.untidy([]string{"new.go"}), []string{"."}; !slices.Equal(got, want) {
		t.Errorf("untidy with a file of the root = %q; want %q", got, want)
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
