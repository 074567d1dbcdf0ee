package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMain makes the test binary the command too, so that no test builds one.
func TestMain(m *testing.M) {
	if os.Getenv("SNOWKEYVET_IS_THE_COMMAND") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// command lets the test binary be snowkeyvet in what the test starts, and returns its path.
func command(t *testing.T) string {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("SNOWKEYVET_IS_THE_COMMAND", "1")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestCommandIsAToolOfGoVet(t *testing.T) {
	vet := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+command(t), "./autoincrement")
	vet.Dir = filepath.Join("keycheck", "testdata")
	out, err := vet.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "field ID is a types.Snowflake, which gormplugin assigns") {
		t.Errorf("go vet -vettool = %v, %s; want a failure that names the field ID", err, out)
	}
}

func TestMoveWithoutFixChangesNothingAndWithFixPrintsWhatIsLeft(t *testing.T) {
	tool, dir := command(t), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("move/testdata")); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "shop")
	name := filepath.Join(dir, "model", "model.go")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), tool, append(args, "./...")...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("snowkeyvet %q = %v\n%s", args, err, out)
		}
		return string(out)
	}
	out := run("-move")
	if after, _ := os.ReadFile(name); string(after) != string(before) || !strings.Contains(out, "gorm.Model becomes gormplugin.Model") {
		t.Errorf("snowkeyvet -move printed %s and wrote %s; want what would change, and the file as it was", out, after)
	}
	out = run("-move", "-fix")
	if after, _ := os.ReadFile(name); string(after) == string(before) || strings.Contains(out, ": move: ") || !strings.Contains(out, "install the plugin after gorm.Open") {
		t.Errorf("snowkeyvet -move -fix printed %s and wrote %s; want a changed file, and only what is left", out, after)
	}
}

func TestMoveOfAProgramWithoutModelsExitsWith2(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), command(t), "-move", ".")
	cmd.Dir = "models"
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "no struct of these packages is a model") {
		t.Errorf("snowkeyvet -move = %v, %s; want the exit status 2 and the reason", err, out)
	}
}

func TestCommentHasTheCommandOfREADMEThatAddsTheModule(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	comment, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("go mod edit -require=[^`]+").Find(readme)
	if command == nil || !bytes.Contains(comment, command) || bytes.Contains(comment, []byte("go get github.com")) {
		t.Errorf("main.go lacks README's command %q, or has go get, which fails beside replace", command)
	}
}

func TestHelpNamesMove(t *testing.T) {
	for _, arg := range []string{"-h", "--help"} {
		out, _ := exec.CommandContext(t.Context(), command(t), arg).CombinedOutput()
		if !strings.Contains(string(out), "snowkeyvet -move") {
			t.Errorf("snowkeyvet %s = %s; want a line about -move", arg, out)
		}
	}
}
