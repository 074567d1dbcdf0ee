package keycheck_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
)

func TestEveryRuleReportsItsMistakeAndNothingElse(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), keycheck.Analyzer, "./a", "./keys")
}

func TestKeysOfModelsOfOtherPackagesNeedATag(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), keycheck.Analyzer, "./start", "./api")
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

func TestPlacesThatCutKeysComeFirst(t *testing.T) {
	for _, result := range analysistest.Run(t, analysistest.TestData(), keycheck.Analyzer, "./a") {
		cuts := func(d analysis.Diagnostic) bool { return d.Category == keycheck.Narrow }
		if n := slices.IndexFunc(result.Diagnostics, func(d analysis.Diagnostic) bool { return !cuts(d) }); n < 1 || slices.ContainsFunc(result.Diagnostics[n:], cuts) {
			t.Errorf("the first of %d diagnostics that does not cut a key is number %d, before one that does", len(result.Diagnostics), n)
		}
	}
}

func TestFixRemovesAutoIncrement(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), keycheck.Analyzer, "./autoincrement")
}
