//go:build cgo

package keycheck_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/snowkey/snowkey/cmd/snowkeyvet/keycheck"
)

func TestFilesThatCallCAreNotTakenForGenerated(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), keycheck.Analyzer, "./thumb")
}
