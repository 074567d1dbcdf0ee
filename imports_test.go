package snowkey_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const root = "github.com/snowkey/snowkey"

// Which package may import which is a rule of the linter, in .golangci.yml. Here is what
// it cannot see: what go.mod asks for, and what comes along with an import.

// A user's build takes the highest version that anybody requires, so each line here is a
// floor for every user. Drivers of servers belong in nested modules. The go line is the
// oldest Go that a user may have, and a toolchain line would make it download a newer
// one. Users' builds ignore replace and exclude lines, so we would test something else.
func TestTheRootModuleAsksForNoMoreThanThis(t *testing.T) {
	var mod struct {
		Go, Toolchain string
		Require       []struct {
			Path, Version string
			Indirect      bool
		}
		Exclude, Replace []any
	}
	if err := json.Unmarshal([]byte(goOutput(t, "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	slices.Sort(direct)
	want := []string{
		"github.com/DATA-DOG/go-sqlmock",
		"github.com/jmoiron/sqlx",
		"github.com/mattn/go-sqlite3",
		"gorm.io/driver/sqlite",
		"gorm.io/gorm",
	}
	if !slices.Equal(direct, want) {
		t.Errorf("direct requirements of the root = %q; want %q", direct, want)
	}
	if mod.Go != "1.25.0" || mod.Toolchain != "" || len(mod.Replace)+len(mod.Exclude) > 0 {
		t.Errorf("go.mod has go %s, toolchain %q, %d replace and %d exclude lines; want go 1.25.0 and none",
			mod.Go, mod.Toolchain, len(mod.Replace), len(mod.Exclude))
	}
}

// A driver that a package imports by way of another one is linked just the same.
func TestPackagesBringAlongOnlyTheseModules(t *testing.T) {
	for pattern, want := range map[string][]string{
		".":                {root},
		"./types/...":      {root},
		"./core/...":       {root},
		"./gormplugin/...": {"github.com/jinzhu/inflection", "github.com/jinzhu/now", root, "golang.org/x/text", "gorm.io/gorm"},
		"./sqlxhelper/...": {"github.com/jmoiron/sqlx", root},
	} {
		got := strings.Fields(goOutput(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pattern))
		slices.Sort(got)
		slices.Sort(want) // where root is depends on its name
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("modules behind %s = %q; want %q", pattern, got, want)
		}
	}
}

// Keys of coretest repeat, so no program may have them. It also imports testing, as internal/proof does.
func TestNoPackageBringsAlongTheTestsOfUsers(t *testing.T) {
	const forTests = root + "/core/coretest"
	for line := range strings.Lines(goOutput(t, "list", "-f", "{{.ImportPath}} {{join .Deps \" \"}}", "./...")) {
		list := strings.Fields(line)
		if slices.Contains(list[1:], forTests) && !strings.HasPrefix(list[0], root+"/internal/proof/") {
			t.Errorf("%s imports %s, perhaps by way of others; want it in tests only", list[0], forTests)
		}
	}
}

// goOutput runs the go command outside the workspace, as a user does.
func goOutput(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s = %v; want no error", strings.Join(args, " "), err)
	}
	return string(out)
}
