package copies

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A postgres is a server of the test's own.
type postgres struct {
	*testing.T
	url      string
	programs string
}

func newPostgres(t *testing.T, settings ...string) postgres {
	t.Helper()
	url, programs := servertest.StartPostgreSQL(t, settings...)
	return postgres{t, url, programs}
}

// in returns the URL of a database.
func (p postgres) in(database string) string {
	return strings.Replace(p.url, "/postgres?", "/"+database+"?", 1)
}

// shop makes an empty database.
func (p postgres) shop(name string) shop {
	p.Helper()
	p.run("createdb", "--maintenance-db="+p.url, "--template=template0", name)
	return shop{T: p.T, db: open(p, "pgx", p.in(name)), dialect: sqlstore.PostgreSQL, name: name}
}

// run runs a program of the server's version to its end.
func (p postgres) run(name string, args ...string) {
	p.Helper()
	if out, err := command(p, filepath.Join(p.programs, name), args...); err != nil {
		p.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// command returns what a program printed.
func command(t testing.TB, name string, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	return string(out), err
}

// What pg_dump writes, in each of its formats, is the same database again.
func TestPgDumpKeepsEveryKeyAndConstraint(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	original := p.shop("original")
	original.fill()
	for name, format := range map[string]struct {
		dump    []string
		restore []string
	}{
		"Copy":          {[]string{"--format=plain"}, nil},
		"Inserts":       {[]string{"--inserts", "--rows-per-insert=100"}, nil},
		"ColumnInserts": {[]string{"--column-inserts"}, nil},
		"Custom":        {[]string{"--format=custom"}, []string{"--exit-on-error"}},
		"Tar":           {[]string{"--format=tar"}, []string{"--exit-on-error"}},
		"Directory":     {[]string{"--format=directory", "--jobs=2"}, []string{"--exit-on-error", "--jobs=2"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, original := p, original
			p.T, original.T = t, t
			file := filepath.Join(t.TempDir(), "dump")
			p.run("pg_dump", append(format.dump, "--file="+file, p.in("original"))...)
			restored := p.shop("restored" + strings.ToLower(name))
			if format.restore == nil {
				p.run("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-f", file, p.in(restored.name))
			} else {
				p.run("pg_restore", append(format.restore, "--dbname="+p.in(restored.name), file)...)
			}
			original.checkCopy(restored)
		})
	}
}
