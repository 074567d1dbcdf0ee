package copies

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A maria is a server of MariaDB or MySQL, and how MariaDB's programs reach it.
type maria struct {
	*testing.T
	dsn     *mysql.Config
	options string // a file
}

func newMaria(t *testing.T, dsn string) maria {
	t.Helper()
	if _, err := exec.LookPath("mariadb-dump"); err != nil {
		servertest.Missing(t, "no mariadb-dump: install Debian's package mariadb-client")
	}
	config, err := mysql.ParseDSN(dsn)
	must(t, err)
	lines := []string{"[client]", "user=" + config.User, `password="` + config.Passwd + `"`}
	if config.Net == "unix" {
		lines = append(lines, "socket="+config.Addr)
	} else {
		host, port, err := net.SplitHostPort(config.Addr)
		must(t, err)
		lines = append(lines, "protocol=tcp", "host="+host, "port="+port)
	}
	m := maria{t, config, filepath.Join(t.TempDir(), "options")}
	must(t, os.WriteFile(m.options, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return m
}

// shop makes an empty database.
func (m maria) shop() shop {
	m.Helper()
	name := "copies_" + strings.ToLower(rand.Text())
	admin := open(m, "mysql", m.dsn.FormatDSN())
	statements(m, admin, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	m.Cleanup(func() {
		db, err := sql.Open("mysql", m.dsn.FormatDSN())
		if err == nil {
			_, err = db.ExecContext(context.WithoutCancel(m.Context()), "DROP DATABASE "+name)
			_ = db.Close()
		}
		if err != nil {
			m.Errorf("DROP DATABASE %s = %v", name, err)
		}
	})
	config := m.dsn.Clone()
	config.DBName, config.ParseTime = name, true
	return shop{T: m.T, db: open(m, "mysql", config.FormatDSN()), dialect: sqlstore.MySQL, name: name}
}

// run runs one of MariaDB's programs. Its input is the file, unless that is empty.
func (m maria) run(input, name string, args ...string) {
	m.Helper()
	if err := m.try(input, name, args...); err != nil {
		m.Fatal(err)
	}
}

func (m maria) try(input, name string, args ...string) error {
	m.Helper()
	c := exec.CommandContext(m.Context(), name, append([]string{"--defaults-file=" + m.options}, args...)...)
	if input != "" {
		f, err := os.Open(input)
		must(m, err)
		defer func() { _ = f.Close() }()
		c.Stdin = f
	}
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out[max(0, len(out)-1000):])
	}
	return nil
}

// What mariadb-dump writes, which Debian also calls mysqldump, is the same database again.
func TestMariadbDumpKeepsEveryKeyAndConstraint(t *testing.T) {
	t.Parallel()
	for server, dsn := range map[string]func(testing.TB) string{"MariaDB": servertest.MariaDB, "MySQL": servertest.MySQL} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			m := newMaria(t, dsn(t))
			original := m.shop()
			original.ungenerated = server == "MySQL" // see the next test
			original.fill()
			for name, options := range map[string][]string{
				"Default":  nil,
				"HexBlob":  {"--hex-blob", "--single-transaction"},
				"RowByRow": {"--skip-extended-insert", "--complete-insert", "--no-autocommit"},
			} {
				t.Run(name, func(t *testing.T) {
					m, original := m, original
					m.T, original.T = t, t
					file := filepath.Join(t.TempDir(), "dump")
					m.run("", "mariadb-dump", append(options, "--result-file="+file, original.name)...)
					restored := m.shop()
					m.run(file, "mariadb", restored.name)
					original.checkCopy(restored)
				})
			}
		})
	}
}

// MariaDB's program writes values for generated columns, which its own server ignores.
func TestMySQLRefusesWhatMariadbDumpWritesForAGeneratedColumn(t *testing.T) {
	t.Parallel()
	m := newMaria(t, servertest.MySQL(t))
	original, restored := m.shop(), m.shop()
	original.fill()
	file := filepath.Join(t.TempDir(), "dump")
	m.run("", "mariadb-dump", "--result-file="+file, original.name)
	if err := m.try(file, "mariadb", restored.name); err == nil || !strings.Contains(err.Error(), "ERROR 3105") {
		t.Errorf("restoring = %v; want ERROR 3105", err)
	}
}

// The binary log has every key, as it is applied again.
func TestTheBinaryLogKeepsEveryKeyAndConstraint(t *testing.T) {
	t.Parallel()
	dsn, data := servertest.StartMariaDB(t, "--log-bin=log", "--binlog-format=ROW", "--server-id=1")
	m := newMaria(t, dsn)
	original, restored := m.shop(), m.shop()
	statements(t, original.db, "FLUSH BINARY LOGS") // what follows is in the second file
	original.fill()
	again := filepath.Join(t.TempDir(), "again")
	m.run("", "mariadb-binlog", "--rewrite-db="+original.name+"->"+restored.name, "--result-file="+again, filepath.Join(data, "log.000002"))
	text, err := os.ReadFile(again) // where statements name their database, which the program does not rewrite
	must(t, err)
	must(t, os.WriteFile(again, []byte(strings.ReplaceAll(string(text), original.name, restored.name)), 0o600))
	m.run(again, "mariadb")
	original.checkCopy(restored)
}
