// Package functions counts the functions that a call runs through. Who looks for a fault in a
// plain call reads the functions between it and the driver.
package functions

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"strings"
	"testing"
)

var count = flag.Bool("functions.count", false, "count the functions of a plain call: some ten seconds")

const module = "github.com/snowkey/snowkey/"

// AtMost fails t if the call of the program in the folder ./testdata/name runs through more than
// most functions of the package under test, of, and of internal/base. The program ends with
// [Write].
func AtMost(t *testing.T, most int, of, name string) {
	t.Helper()
	if !*count {
		t.Skip("-functions.count builds a program with counters")
	}
	dir := t.TempDir()
	program, profile := filepath.Join(dir, name+".exe"), filepath.Join(dir, "profile")
	output := func(command string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), command, args...)
		cmd.Env = append(os.Environ(), "GOCOVERDIR="+t.TempDir()) // of the end of the program
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s = %v\n%s", command, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	// Counters can be written only by a program whose own package has some.
	packages := []string{module + of + "/testdata/" + name, module + of, module + "internal/base/..."}
	output("go", "build", "-cover", "-covermode=atomic", "-coverpkg="+strings.Join(packages, ","), "-o", program, "./testdata/"+name)
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
		t.Errorf("%s runs through %d functions, want at most %d, and half as many or some are not counted: %s", name, len(run), most, strings.Join(run, " "))
	}
}

// Write calls f twice, and writes what the second call runs through, when all that is kept between
// calls is there, into the folder that the program was given.
func Write(f func() error) error {
	for range 2 {
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		if err := f(); err != nil {
			return err
		}
	}
	dir := os.Args[1]
	if err := coverage.WriteMetaDir(dir); err != nil {
		return err
	}
	return coverage.WriteCountersDir(dir)
}
