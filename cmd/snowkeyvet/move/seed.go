package move

import (
	"go/types"
	"strings"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/models"
)

// seed marks the keys of the program's models, and the fields that refer to them.
func (p *Program) seed() {
	var sources []models.Package
	for _, pkg := range p.packages {
		sources = append(sources, models.Package{Info: pkg.TypesInfo, Files: pkg.Syntax})
	}
	p.models = models.Find(sources...)
	for _, m := range p.models.All {
		if m.Key != nil {
			p.mark(m.Key)
		}
	}
	for _, m := range p.models.All {
		p.models.References(m, p.counted, p.mark)
	}
}

// counted reports whether the database counts the keys of m.
func (p *Program) counted(m *models.Model) bool { return m.Key != nil && p.column(m.Key).isKey() }

// column returns the integer that a column, or what it points to, is.
func (p *Program) column(c *models.Column) *slot {
	s := p.object(c.Field)
	if _, pointer := c.Field.Type().(*types.Pointer); pointer && s != nil {
		s = s.elem
	}
	if s == nil {
		return nil
	}
	return s.slot
}

func (p *Program) mark(c *models.Column) {
	if s := p.column(c); s != nil && !s.fixed {
		s.root().key = true
		p.columns[strings.ToLower(c.Column)] = true
	}
}
