package keycheck

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/models"
)

// Findings are diagnostics, at most one of a category at a position.
type Findings struct {
	fset      *token.FileSet
	generated map[string]bool // files that a program has written
	seen      map[place]bool
	all       []analysis.Diagnostic
}

type place struct {
	pos      token.Pos
	category string
}

// NewFindings returns no diagnostics of files yet.
func NewFindings(fset *token.FileSet, files ...*ast.File) *Findings {
	f := &Findings{fset: fset, generated: map[string]bool{}, seen: map[place]bool{}}
	for _, file := range files {
		f.generated[fset.Position(file.Package).Filename] = models.Generated(file)
	}
	return f
}

// Add adds a diagnostic, unless there is one.
func (f *Findings) Add(d analysis.Diagnostic) {
	if at := (place{d.Pos, d.Category}); !f.seen[at] {
		f.seen[at] = true
		f.all = append(f.all, d)
	}
}

// All returns the diagnostics, one of each generated file. First come the places that cut keys,
// because each is a wrong result everywhere, and then all others in the order of the source.
func (f *Findings) All() []analysis.Diagnostic {
	slices.SortFunc(f.all, func(a, b analysis.Diagnostic) int {
		x, y := f.fset.Position(a.Pos), f.fset.Position(b.Pos)
		return cmp.Or(order(a)-order(b), strings.Compare(x.Filename, y.Filename), x.Offset-y.Offset, strings.Compare(a.Message, b.Message))
	})
	places := map[string]int{}
	for _, d := range f.all {
		places[f.fset.Position(d.Pos).Filename]++
	}
	var all []analysis.Diagnostic
	for _, d := range f.all {
		if name := f.fset.Position(d.Pos).Filename; f.generated[name] {
			if places[name] == 0 {
				continue
			}
			d.SuggestedFixes = nil
			d.Message += fmt.Sprintf(" (the first of %d places in a generated file: mend what it is generated from)", places[name])
			places[name] = 0
		}
		all = append(all, d)
	}
	return all
}

func order(d analysis.Diagnostic) int {
	if d.Category == Narrow {
		return 0
	}
	return 1
}
