package keycheck_test

import (
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
)

func TestEveryRuleReportsItsMistakeAndNothingElse(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), keycheck.Analyzer, "./a", "./keys")
}

func TestDiagnosticsNameNoPageOfAModuleThatIsNotPublished(t *testing.T) {
	for _, result := range analysistest.Run(t, analysistest.TestData(), keycheck.Analyzer, "./keys") {
		for _, d := range result.Diagnostics {
			if strings.Contains(d.URL, "://") {
				t.Errorf("%s has the URL %s; want no address", d.Message, d.URL)
			}
		}
	}
	if a := keycheck.Analyzer; a.URL != "" || strings.Contains(a.Doc, "http") {
		t.Errorf("the analyzer has the URL %q and help %q; want no address", a.URL, a.Doc)
	}
}

func TestFixRemovesAutoIncrement(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), keycheck.Analyzer, "./autoincrement")
}
