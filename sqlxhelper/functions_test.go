package sqlxhelper_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var functionsCount = flag.Bool("functions.count", false, "count the functions of a plain call: some ten seconds")

// Who looks for a fault in a plain call reads the functions between it and the driver.
func TestInsertManyOfTwoRowsRunsThroughFewFunctions(t *testing.T) {
	if !*functionsCount {
		t.Skip("-functions.count builds a program with counters")
	}
	const most, module = 50, "github.com/snowkey/snowkey/"
	dir := t.TempDir()
	program, profile := filepath.Join(dir, "twoflat.exe"), filepath.Join(dir, "profile")
	output := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir()) // of the end of the program
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s = %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	packages := []string{module + "sqlxhelper/testdata/twoflat", module + "sqlxhelper", module + "internal/base/..."}
	output("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+strings.Join(packages, ","), "-o", program, "./testdata/twoflat")
	output(program, dir)
	output("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile)
	var run []string
	for line := range strings.Lines(output("go", "tool", "cover", "-func="+profile)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[2] != "0.0%" && strings.HasPrefix(line, module) && !strings.Contains(line, "/testdata/") {
			run = append(run, fields[1])
		}
	}
	if len(run) > most || len(run) < most/2 {
		t.Errorf("InsertMany() runs through %d functions, want at most %d, and half as many or some are not counted: %s", len(run), most, strings.Join(run, " "))
	}
}
