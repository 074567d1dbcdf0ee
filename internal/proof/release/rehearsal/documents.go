package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/snowkey/snowkey/internal/proof/release/markdown"
)

// The code that README.md and the pages of docs show is checked, each block by its
// language:
//
//   - go, which begins with "package main": a program. The next block is of text and has
//     its exact output.
//   - go, any other: a fragment. It is compiled with the page's setting, a comment that
//     begins with "<!-- setting". A second setting is for the blocks after it.
//   - sh: the commands name folders, tests and steps that exist. cmd/snowkey runs those of the
//     pages for people without Go.
//   - sql: a test names the page, and runs what it shows.
//   - json: it can be read. yaml: a test of internal/proof/lab/compat does more.
//   - text: not checked.

// A program is one that a document shows, with the output that it shows for it.
type program struct {
	text, output string
	line         int // of the document
}

// A document is a page with the programs and fragments to be built from it.
type document struct {
	page     string // its path
	programs []program
	groups   []group
}

// name is the page's, and that of a folder for it.
func (d document) name() string { return strings.TrimSuffix(filepath.Base(d.page), ".md") }

// readDocument sorts the blocks of a page, and checks those that are not Go.
func readDocument(tree, page, text string) (document, error) {
	d := document{page: page}
	blocks, err := markdown.Blocks(text)
	if err != nil {
		return d, fmt.Errorf("%s: %w", page, err)
	}
	var bad []error
	for i, b := range blocks {
		if err := d.add(tree, b, blocks[i+1:]); err != nil {
			bad = append(bad, fmt.Errorf("%s:%d: %w", page, b.Line, err))
		}
	}
	if len(d.groups) > 0 && d.groups[0].setting == nil {
		bad = append(bad, fmt.Errorf("%s:%d: a fragment without a setting: want a comment that begins with <!-- setting", page, d.groups[0].fragments[0].Line))
	}
	return d, errors.Join(bad...)
}

// add puts a block where it belongs, or checks it. What follows the block is for the
// output of a program.
func (d *document) add(tree string, b markdown.Block, following []markdown.Block) error {
	for _, test := range b.RunBy {
		if err := checkTest(tree, test); err != nil {
			return err
		}
	}
	switch b.Language {
	case "setting":
		if len(d.groups) != 1 || d.groups[0].setting != nil { // what stands before the first setting is in it
			d.groups = append(d.groups, group{})
		}
		d.groups[len(d.groups)-1].setting = &b
		return nil
	case "go":
		if !strings.HasPrefix(b.Text, "package main\n") {
			if d.groups == nil {
				d.groups = []group{{}}
			}
			last := &d.groups[len(d.groups)-1]
			last.fragments = append(last.fragments, b)
			return nil
		}
		if len(following) == 0 || following[0].Language != "text" {
			return errors.New("the program shows no output: want a block of text after it")
		}
		d.programs = append(d.programs, program{b.Text, following[0].Text, b.Line})
		return nil
	case "json":
		var value any
		for d := json.NewDecoder(strings.NewReader(b.Text)); d.More(); {
			if err := d.Decode(&value); err != nil {
				return err
			}
		}
		return nil
	case "sh":
		return checkShell(tree, b.Text)
	case "sql":
		if b.RunBy == nil {
			return errors.New("a block of sql: want a comment <!-- run by TestName --> before it, or for the page")
		}
		return nil
	case "text", "yaml":
		return nil
	}
	if b.Comment {
		return nil
	}
	return fmt.Errorf("a block of %q: want go, json, sh, sql, text or yaml", b.Language)
}

// checkTest returns an error unless there is a test, or a benchmark, of a name.
func checkTest(tree, name string) error {
	_, err := command(context.Background(), tree, nil, "grep", "-rqE", "--include=*_test.go", "^func "+name+`\((t|b) `, ".")
	if err != nil {
		return fmt.Errorf("there is no %s, which is to run this: %w", name, err)
	}
	return nil
}

var comments = regexp.MustCompile(`(?m)(^|\s)#.*$|\\\n`) // and where a command goes on in the next line

// checkShell returns an error unless the folders, tests and steps that commands of a block name exist in
// the tree. Programs that are not the tree's are not looked for.
func checkShell(tree, text string) error {
	steps, err := os.ReadFile(filepath.Join(tree, "internal", "proof", "release", "gate", "steps.go"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(comments.ReplaceAllString(text, " ")) {
		program, before := "", ""
		for word := range strings.FieldsSeq(line) {
			switch {
			case word == "go" || strings.HasPrefix(word, ".ci/"):
				program = word
			case before == "-run" || before == "-bench":
				test, _, _ := strings.Cut(strings.Trim(word, "^$'"), "/")
				err = checkTest(tree, strings.TrimSuffix(test, "$"))
			case program == "go" && strings.HasPrefix(word, "./"):
				_, err = os.Stat(filepath.Join(tree, strings.TrimSuffix(word, "...")))
			case program != "" && program != "go" && word[0] != '-' && !bytes.Contains(steps, []byte(`name: "`+word+`",`)):
				err = errors.New("there is no step " + word)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
			}
			before = word
		}
	}
	return nil
}

// write puts the programs and fragments of a document into folders of a user's module,
// each with a package.
func (d document) write(folder string) error {
	var bad []error
	for i, p := range d.programs {
		text := fmt.Sprintf("//line %s:%d\n%s", d.page, p.line, p.text)
		bad = append(bad, writeFile(filepath.Join(folder, "programs", d.programName(i), "main.go"), text))
	}
	for i, g := range d.groups {
		if g.setting == nil || g.fragments == nil {
			continue
		}
		files, err := g.files(d.page)
		bad = append(bad, err)
		for name, text := range files {
			bad = append(bad, writeFile(filepath.Join(folder, "fragments", fmt.Sprintf("%s_%d", d.name(), i+1), name), text))
		}
	}
	return errors.Join(bad...)
}

func (d document) programName(i int) string { return fmt.Sprintf("%s_%d", d.name(), i+1) }

// documents checks the code of all pages in a module of a user. Its workspace has the published modules, and
// those that require the drivers and libraries that the tests of the tree use.
func documents(ctx context.Context) (err error) {
	tree, err := filepath.Abs(".") // its pages are named in errors
	if err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(tree, "docs", "*.md"))
	if err != nil {
		return err
	}
	modules, err := modules(tree)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "snowkey-documents-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	folder, work := filepath.Join(temp, "user"), "go 1.25.0\n\nuse ./user\n"
	for _, m := range modules {
		if m.published() || m.folder == "internal/proof/servers/suites" || m.folder == "internal/proof/lab" {
			work += fmt.Sprintf("use %q\n", filepath.Join(tree, m.folder))
		}
	}
	err = errors.Join(
		writeFile(filepath.Join(temp, "go.work"), work),
		writeFile(filepath.Join(folder, "go.mod"), "module example.com/user\n\ngo 1.25.0\n"))
	if err != nil {
		return err
	}
	var all []document
	var bad []error
	for _, page := range append(pages, filepath.Join(tree, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		d, err := readDocument(tree, page, string(text))
		bad = append(bad, err, d.write(folder))
		all = append(all, d)
	}
	if err := errors.Join(bad...); err != nil {
		return err
	}
	env := []string{"GOWORK=" + filepath.Join(temp, "go.work"), "GOFLAGS=-trimpath"} // the build cache serves then
	// A fragment may end in a return. Its variables are used after that.
	if _, err := command(ctx, folder, env, "go", "vet", "-unreachable=false", "./..."); err != nil {
		return err
	}
	programs := filepath.Join(temp, "programs") + string(filepath.Separator)
	if _, err := command(ctx, folder, env, "go", "build", "-o", programs, "./programs/..."); err != nil {
		return err
	}
	for _, d := range all {
		if err := d.run(ctx, programs); err != nil {
			return err
		}
	}
	return nil
}

// run runs the programs of a document, each in a folder of its own, and compares what
// they print with what the document shows. It says what is done.
func (d document) run(ctx context.Context, programs string) error {
	for i, p := range d.programs {
		folder, err := os.MkdirTemp(programs, "run-")
		if err != nil {
			return err
		}
		// The program prints to standard output, and logs to the other.
		printed, err := command(ctx, folder, nil, filepath.Join(programs, d.programName(i)))
		if err == nil && printed != p.output {
			err = fmt.Errorf("it prints %s; want %s", printed, p.output)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", d.page, p.line, err)
		}
	}
	fragments := 0
	for _, g := range d.groups {
		fragments += len(g.fragments)
	}
	if fragments+len(d.programs) > 0 {
		fmt.Printf("%s: %d programs print what it shows, %d fragments compile\n", filepath.Base(d.page), len(d.programs), fragments)
	}
	return nil
}
