package keycheck_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
)

func TestEveryRuleReportsItsMistakeAndNothingElse(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), keycheck.Analyzer, "./a", "./keys")
}

func TestFixRemovesAutoIncrement(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), keycheck.Analyzer, "./autoincrement")
}
