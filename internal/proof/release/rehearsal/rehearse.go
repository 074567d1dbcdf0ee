package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	modname "golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"
)

// A rehearsal is a release of a copy of the tree to a module proxy.
type rehearsal struct {
	temp    string // a folder for all that is made
	tree    string // the copy
	modules []module
	env     []string // what a user's go command is told
}

// rehearse releases a copy of the tree to a module proxy, uses every published module from it, and
// removes everything. It says what it does.
func rehearse(ctx context.Context) (err error) {
	if err := checkNames("."); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "snowkey-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()

	r := &rehearsal{temp: temp, tree: filepath.Join(temp, "tree")}
	const copyTree = `mkdir "$0" && tar --exclude=./.git -cf - . | tar -xf - -C "$0"`
	if _, err := command(ctx, ".", nil, "sh", "-c", copyTree, r.tree); err != nil {
		return err
	}
	if err := raise(r.tree, rehearsed); err != nil {
		return err
	}
	if r.modules, err = modules(r.tree); err != nil {
		return err
	}
	proxy := filepath.Join(temp, "proxy")
	for _, m := range r.modules {
		if m.published() {
			if err := publish(proxy, r.tree, m); err != nil {
				return fmt.Errorf("module %s: %w", m.path(), err)
			}
		}
	}
	if r.env, err = environment(ctx, temp, proxy); err != nil {
		return err
	}
	for _, m := range r.modules {
		// The go command refuses a module whose go.mod does not add up.
		if _, err := command(ctx, filepath.Join(r.tree, m.folder), []string{"GOWORK=off"}, "go", "list", "./..."); err != nil {
			return err
		}
	}
	for _, m := range r.modules {
		if m.published() {
			fmt.Printf("%s %s:", m.path(), rehearsed)
			if err := r.consume(ctx, m); err != nil {
				fmt.Println()
				return err
			}
		}
	}
	return nil
}

// publish adds a module of the tree to the folder of a module proxy.
func publish(proxy, tree string, m module) (err error) {
	folder := filepath.Join(proxy, filepath.FromSlash(m.path()), "@v")
	text, err := m.file.Format()
	if err != nil {
		return err
	}
	for suffix, text := range map[string]string{
		"list":              rehearsed + "\n",
		rehearsed + ".info": `{"Version":"` + rehearsed + `"}`,
		rehearsed + ".mod":  string(text),
	} {
		if err := writeFile(filepath.Join(folder, suffix), text); err != nil {
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
	sources := []string{"file://" + proxy, "file://" + filepath.Join(cache, "cache", "download"), next}
	return []string{
		"GOWORK=off",
		"GOFLAGS=-mod=mod -modcacherw -trimpath",
		"GOMODCACHE=" + filepath.Join(temp, "cache"),
		"GOPROXY=" + strings.Join(sources, ","),
		"GOPRIVATE=", "GONOPROXY=none", "GONOSUMDB=" + root,
	}, nil
}

// consume builds a published module as a user would, and runs a program with it: with the
// lowest versions of what it requires, then with the newest.
func (r *rehearsal) consume(ctx context.Context, m module) error {
	program := []byte("package main\n\nfunc main() {}\n")
	if m.folder == "." {
		var err error
		if program, err = os.ReadFile(filepath.Join(r.tree, "internal", "proof", "release", "rehearsal", "testdata", "consumer.go")); err != nil {
			return err
		}
	}
	folder, err := os.MkdirTemp(r.temp, "consumer-")
	if err != nil {
		return err
	}
	// The sums of other modules need not be requested again.
	sums, err := os.ReadFile(filepath.Join(r.tree, m.folder, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = errors.Join(
		writeFile(filepath.Join(folder, "go.mod"), "module example.com/user\n\ngo 1.25.0\n\nrequire "+m.path()+" "+rehearsed+"\n"),
		writeFile(filepath.Join(folder, "go.sum"), string(sums)),
		writeFile(filepath.Join(folder, "main.go"), string(program)))
	if err != nil {
		return err
	}
	if err := r.build(ctx, folder, m); err != nil {
		return err
	}
	fmt.Printf("%s %s: the same with", m.path(), rehearsed)
	get := []string{"get"}
	for _, version := range newest {
		if name, number, _ := strings.Cut(version, "@"); m.requires(name) {
			get = append(get, version)
			fmt.Printf(" %s %s;", path.Base(strings.TrimSuffix(name, "/"+semver.Major(number))), number)
		}
	}
	if _, err := command(ctx, folder, r.env, "go", get...); err != nil {
		return err
	}
	return r.build(ctx, folder, m)
}

func writeFile(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// newest are the newest versions, for the go line of our go.mod files, with which consumers
// are built. The lowest are those that go.mod files ask for. The driver of SQLite stays:
// it is for tests, and its C takes a minute.
var newest = []string{
	"github.com/DATA-DOG/go-sqlmock@v1.5.2",
	"github.com/go-sql-driver/mysql@v1.10.1",
	"github.com/go-zookeeper/zk@v1.0.4",
	"github.com/golangci/plugin-module-register@v0.1.2",
	"github.com/jackc/pgx/v5@v5.12.0",
	"github.com/jmoiron/sqlx@v1.4.0",
	"github.com/mattn/go-sqlite3@v1.14.22",
	"github.com/redis/go-redis/v9@v9.22.0",
	"go.etcd.io/etcd/api/v3@v3.6.14",
	"go.etcd.io/etcd/client/v3@v3.6.14",
	"go.opentelemetry.io/otel@v1.46.0",
	"go.opentelemetry.io/otel/metric@v1.46.0",
	"go.uber.org/zap@v1.28.0",
	"golang.org/x/tools@v0.49.0",
	"gorm.io/driver/mysql@v1.6.0",
	"gorm.io/driver/postgres@v1.6.3",
	"gorm.io/driver/sqlite@v1.6.0",
	"gorm.io/gorm@v1.31.2",
	"modernc.org/sqlite@v1.44.0",
}

// requires reports whether the module has a direct requirement of that name.
func (m module) requires(name string) bool {
	return slices.ContainsFunc(m.file.Require, func(r *modfile.Require) bool { return !r.Indirect && r.Mod.Path == name })
}

// build makes the program of a consumer import every public package of the module, runs it, and
// builds the commands of the module.
func (r *rehearsal) build(ctx context.Context, folder string, m module) error {
	listed, err := command(ctx, folder, r.env, "go", "list", "-f", "{{if .GoFiles}}{{.Name}} {{.ImportPath}}{{end}}", m.path()+"/...")
	if err != nil {
		return err
	}
	imports, commands, count := "package main\n", []string{"build"}, 0
	for line := range strings.Lines(listed) {
		switch name, importPath, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case importPath == "" || strings.Contains(importPath+"/", "/internal/") || strings.HasPrefix(importPath, root+"/examples/"):
		case name == "main":
			commands = append(commands, importPath)
		default:
			imports += fmt.Sprintf("import _ %q\n", importPath)
			count++
		}
	}
	if err := writeFile(filepath.Join(folder, "packages.go"), imports); err != nil {
		return err
	}
	printed, err := command(ctx, folder, r.env, "go", "run", ".")
	if err == nil && len(commands) > 1 {
		_, err = command(ctx, folder, r.env, "go", commands...)
	}
	if err != nil {
		return err
	}
	fmt.Printf(" %d packages, %d commands; %s\n", count, len(commands)-1, strings.TrimSpace(printed))
	return nil
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
