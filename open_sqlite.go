package snowkey

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// onSQLite keeps the lease in a SQLite file beside the database's.
func (c *Config) onSQLite(ctx context.Context, db *sql.DB) (*core.Generator, error) {
	path, err := sqlrow.File(ctx, db, "main")
	switch {
	case errors.Is(err, sqlrow.ErrNotDurable):
		return nil, elsewhere("a SQLite database of which the driver does not say where it is", err)
	case err != nil:
		return nil, hint(ctx, db, err)
	case path == "":
		return c.inMemory()
	}
	if info, err := os.Lstat(path); err != nil {
		return nil, elsewhere(fmt.Sprintf("a SQLite database in %q, which is not here", path), err)
	} else if !info.Mode().IsRegular() {
		return nil, elsewhere(fmt.Sprintf("a SQLite database in %q, which is not here", path), errors.New("it is no regular file"))
	}
	// FUSE is refused for the leases, if they are there too.
	if err := sqlrow.CheckFile(path, true); err != nil {
		return nil, err
	}
	file, err := c.leaseFile(path)
	if err != nil {
		return nil, err
	}
	gen, err := c.inFile(ctx, db.Driver(), file)
	if err != nil {
		return nil, fmt.Errorf("leases in the SQLite file %s: %w", file, err)
	}
	return gen, nil
}

// elsewhere refuses a database that no lock of this machine can guard.
func elsewhere(what string, why error) error {
	return &core.ValueError{
		Package: "snowkey", Name: "db", Value: fmt.Sprintf("%s: %v", what, why),
		Want: "a file of this machine at its path, or a database in memory that SQLite says has no file. " +
			"For one that a server keeps (rqlite, libSQL, dqlite) acquire a lease from another store, see docs/workers.md; " +
			"for one that a driver keeps in memory use core.New with core.StaticWorker; if the file was moved, restart the program",
	}
}

// leaseFile returns the path of the file of leases for a database. Leases elsewhere would repeat
// the keys of those beside the database, which may be of an older version.
func (c *Config) leaseFile(path string) (string, error) {
	file := path + "-leases"
	beside, err := os.Lstat(file)
	if err == nil && beside.IsDir() {
		return "", fmt.Errorf("the folder %s has leases of an older version of snowkey, whose keys the new file of this name would repeat: "+
			"stop all programs that use the database, wait 5 s, and remove the folder", file)
	}
	if c.LeaseFile == "" {
		return file, nil
	}
	other, failed := filepath.Abs(c.LeaseFile)
	if failed != nil {
		return "", failed
	}
	if err == nil {
		if info, err := os.Lstat(other); err != nil || !os.SameFile(beside, info) {
			return "", &core.ValueError{
				Package: "snowkey", Name: "Config.LeaseFile", Value: strconv.Quote(c.LeaseFile),
				Want: fmt.Sprintf("%s, which has leases of this database: leases in another file repeat their keys. To move them, stop all programs that use the database, and move the file", file),
			}
		}
	}
	return other, nil
}

// inFile keeps the lease in a SQLite file that a driver opens, in a pool that the lease owns. The
// program's own pool would not do: SQLite has one writer at a time in each file, and the program's
// transactions may be long.
func (c *Config) inFile(ctx context.Context, d driver.Driver, file string) (gen *core.Generator, err error) {
	pool, err := openFile(ctx, d, file)
	if err != nil {
		return nil, fmt.Errorf("%w: Config.LeaseFile names another place for them; "+
			"if the driver %T cannot open a file as file:/path, acquire the lease by hand, see docs/workers.md", err, d)
	}
	if gen, err = c.onTables(ctx, pool, shortWindow); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	gen.Worker().(*lease.Lease).Own(pool)
	return gen, nil
}

// openFile opens a SQLite file, which is made if need be. It makes sure that this file is the one
// that the driver has opened, because drivers have names of their own for databases, and some lead
// to a server.
func openFile(ctx context.Context, d driver.Driver, file string) (*sql.DB, error) {
	if d == nil {
		return nil, errors.New("the pool does not name its driver")
	}
	var c driver.Connector = named{fileURI(file), d}
	if from, ok := d.(driver.DriverContext); ok {
		var err error
		if c, err = from.OpenConnector(fileURI(file)); err != nil {
			return nil, err
		}
	}
	pool := sql.OpenDB(c)
	pool.SetMaxIdleConns(1) // which renewals use again
	path, err := sqlrow.File(ctx, pool, "main")
	if err == nil {
		err = sameFile(path, file)
	}
	if err != nil {
		_ = pool.Close()
		return nil, wait.Cause(ctx, err)
	}
	return pool, nil
}

// sameFile returns an error unless both paths lead to one file.
func sameFile(opened, wanted string) error {
	a, err := os.Lstat(opened)
	if err != nil {
		return fmt.Errorf("the driver has opened %q: %w", opened, err)
	}
	if b, err := os.Stat(wanted); err != nil || !os.SameFile(a, b) {
		return fmt.Errorf("the driver has opened %q", opened)
	}
	return nil
}

// fileURI returns the name of a file as SQLite and its drivers read it: everything that a URI, or a
// driver that looks for its options, would take for something else is escaped, so that SQLite gets
// the path unchanged. On Windows too, where C:\shop.db is file:C:%5Cshop.db.
func fileURI(path string) string {
	escaped := strings.ReplaceAll(url.PathEscape(path), "%2F", "/")
	if strings.HasPrefix(path, "/") {
		return "file://" + escaped // with an authority, which is empty, because //a/b would name a
	}
	return "file:" + escaped
}

// A named is a connector of a driver that has none.
type named struct {
	name   string
	driver driver.Driver
}

func (n named) Connect(context.Context) (driver.Conn, error) { return n.driver.Open(n.name) }
func (n named) Driver() driver.Driver                        { return n.driver }

// inMemory makes a generator for a database that no other process can have.
func (c *Config) inMemory() (gen *core.Generator, err error) {
	if c.Region != nil {
		return nil, &core.ValueError{Package: "snowkey", Name: "Config.Region", Value: strconv.Quote(c.Region.Name), Want: "nil for a database in memory, which is no region's"}
	}
	for n := range int64(1) << c.Layout.WorkerBits {
		gen, err = core.New(core.Config{Layout: c.Layout, Worker: core.StaticWorker(n)})
		if !errors.Is(err, core.ErrWorkerInUse) {
			break
		}
	}
	return gen, err
}
