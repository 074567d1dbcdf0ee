package golangci_test

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"

	_ "github.com/snowkey/snowkey/cmd/snowkeyvet/golangci"
	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
)

func TestPluginIsRegisteredWithTheAnalyzer(t *testing.T) {
	build, err := register.GetPlugin("snowkeyvet")
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := build(nil)
	if err != nil {
		t.Fatal(err)
	}
	analyzers, err := plugin.BuildAnalyzers()
	if err != nil || len(analyzers) != 1 || analyzers[0] != keycheck.Analyzer || plugin.GetLoadMode() != register.LoadModeTypesInfo {
		t.Errorf("BuildAnalyzers() = %v, %v with load mode %q; want the Analyzer, with types", analyzers, err, plugin.GetLoadMode())
	}
}
