package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	modname "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// rehearse releases a copy of the tree to a module proxy and uses every published
// module from there. It says on out what it does.
func rehearse(ctx context.Context, tree string, out io.Writer) (err error) {
	if err := checkNames(tree); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "snowkey-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()

	copied := filepath.Join(temp, "tree")
	if err := copyTree(copied, tree); err != nil {
		return err
	}
	if err := raise(copied, rehearsed); err != nil {
		return err
	}
	all, err := modules(copied)
	if err != nil {
		return err
	}
	proxy := filepath.Join(temp, "proxy")
	for _, m := range all {
		// The go command refuses a module whose go.mod does not add up.
		if _, err := command(ctx, filepath.Join(copied, m.folder), []string{"GOWORK=off"}, "go", "list", "./..."); err != nil {
			return err
		}
		if m.published() {
			if err := publish(proxy, copied, m); err != nil {
				return fmt.Errorf("module %s: %w", m.path(), err)
			}
		}
	}
	env, err := environment(ctx, temp, proxy)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.published() {
			_, _ = fmt.Fprintf(out, "%s %s: ", m.path(), rehearsed)
			if err := consume(ctx, temp, copied, m, env, out); err != nil {
				_, _ = fmt.Fprintln(out)
				return err
			}
		}
		if m.folder == "." {
			if err := runDocuments(ctx, temp, copied, m, env, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyTree copies all but the history.
func copyTree(to, from string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.Name() == ".git":
		case e.IsDir():
			if err := os.CopyFS(target, os.DirFS(source)); err != nil {
				return err
			}
		default:
			text, err := os.ReadFile(source)
			if err != nil {
				return err
			}
			if err := os.WriteFile(target, text, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// publish adds a module of the tree to the folder of a module proxy.
func publish(proxy, tree string, m module) (err error) {
	folder := filepath.Join(proxy, filepath.FromSlash(m.path()), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	for suffix, text := range map[string]string{
		"list":              rehearsed + "\n",
		rehearsed + ".info": `{"Version":"` + rehearsed + `"}`,
		rehearsed + ".mod":  string(text),
	} {
		if err := os.WriteFile(filepath.Join(folder, suffix), []byte(text), 0o644); err != nil {
			return err
		}
	}
	file, err := os.Create(filepath.Join(folder, rehearsed+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return zip.CreateFromDir(file, modname.Version{Path: m.path(), Version: rehearsed}, filepath.Join(tree, m.folder))
}

// environment returns what a user's go command is told. The module cache is new, or
// the zips of an earlier rehearsal would be used again. -trimpath lets the build
// cache serve all the same.
func environment(ctx context.Context, temp, proxy string) ([]string, error) {
	out, err := command(ctx, temp, nil, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	cache, next, _ := strings.Cut(strings.TrimSpace(out), "\n")
	sources := []string{fileURL(proxy), fileURL(filepath.Join(cache, "cache", "download")), next}
	return []string{
		"GOWORK=off",
		"GOFLAGS=-mod=mod -modcacherw -trimpath",
		"GOMODCACHE=" + filepath.Join(temp, "cache"),
		"GOPROXY=" + strings.Join(sources, ","),
		"GOPRIVATE=", "GONOPROXY=none", "GONOSUMDB=" + root,
	}, nil
}

func fileURL(name string) string {
	return (&url.URL{Scheme: "file", Path: path.Join("/", filepath.ToSlash(name))}).String()
}

// consumer is the program that uses the module.
func (m module) consumer() string { return "testdata/consumers/" + path.Base(m.path()) + ".go" }

// userModule makes a module of a user that requires m and holds one program.
func userModule(temp, tree string, m module, program []byte) (folder string, err error) {
	folder, err = os.MkdirTemp(temp, "consumer-")
	if err != nil {
		return "", err
	}
	// The sums of other people's modules are those of the tree. They need not be
	// asked for again.
	sums, err := os.ReadFile(filepath.Join(tree, m.folder, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for name, text := range map[string]string{
		"go.mod":  "module example.com/consumer\n\ngo 1.25.0\n\nrequire " + m.path() + " " + rehearsed + "\n",
		"go.sum":  string(sums),
		"main.go": string(program),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// consume builds the public packages of a published module as a user would, and runs a
// program with them.
func consume(ctx context.Context, temp, tree string, m module, env []string, out io.Writer) error {
	program, err := os.ReadFile(filepath.Join(tree, "internal", "release", filepath.FromSlash(m.consumer())))
	if err != nil {
		return err
	}
	folder, err := userModule(temp, tree, m, program)
	if err != nil {
		return err
	}
	printed, err := command(ctx, folder, env, "go", "run", ".")
	if err != nil {
		return err
	}
	listed, err := command(ctx, folder, env, "go", "list", "-f", `{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}`, m.path()+"/...")
	if err != nil {
		return err
	}
	build := []string{"build"}
	for importPath := range strings.FieldsSeq(listed) {
		if !strings.Contains(importPath, "/internal/") {
			build = append(build, importPath)
		}
	}
	if _, err := command(ctx, folder, env, "go", build...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d packages; %s", len(build)-1, printed)
	return err
}

// command returns what a command prints. Its error has what the command says.
func command(ctx context.Context, folder string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}
