// Package golangci makes keycheck a module plugin of golangci-lint, named snowkeyvet. It is
// imported by the golangci-lint that `golangci-lint custom` builds.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
)

func init() {
	register.Plugin("snowkeyvet", func(any) (register.LinterPlugin, error) { return plugin{}, nil })
}

type plugin struct{}

func (plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return []*analysis.Analyzer{keycheck.Analyzer}, nil
}

func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
