package servers

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/gormplugin"
)

// An upsert meets a row that another tenant has, and that the role does not see.
func TestGormPluginNamesRowLevelSecurityWhereItHidesTheStoredRow(t *testing.T) {
	db := withPlugin(t, opener(t, gormTargets[1].dialector(t))(&gorm.Config{Logger: logger.Discard}))
	must(t, db.Create(&box{Name: "hidden", Note: "theirs"}).Error)
	pool, err := db.DB()
	must(t, err)
	role := newRole(t, pool, "GRANT INSERT, SELECT ON boxes, things TO $role", "ALTER TABLE boxes ENABLE ROW LEVEL SECURITY", "CREATE POLICY own ON boxes USING (note = 'ours')")
	b := box{Name: "hidden", Note: "ours", Things: []thing{{Name: "a child"}}}
	must(t, db.Connection(func(tx *gorm.DB) error {
		tx = tx.Session(&gorm.Session{})
		must(t, tx.Exec("SET ROLE "+role).Error)
		err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&b).Error
		var why *gormplugin.UnresolvedError
		if !errors.As(err, &why) || why.Reason != gormplugin.ReasonHidden || !strings.Contains(err.Error(), "row level security hides the row") {
			t.Errorf("Create() = %v; want ErrUnresolved that names row level security", err)
		}
		return tx.Exec("RESET ROLE").Error
	}))
	var boxes, things int64
	must(t, db.Model(&box{}).Count(&boxes).Error)
	must(t, db.Model(&thing{}).Count(&things).Error)
	if boxes != 1 || things != 0 || b.ID != 0 {
		t.Errorf("stored %d boxes and %d things, key in memory %d; want 1, 0 and 0", boxes, things, b.ID)
	}
}

// What docs/gorm.md says of a role that may not read.
func TestGormPluginNeedsSelectForStoredRowsAlone(t *testing.T) {
	nothing := clause.OnConflict{DoNothing: true}
	create := func(db *gorm.DB, name string, clauses ...clause.Expression) (box, error) {
		b := box{Name: name}
		err := db.Clauses(clauses...).Create(&b).Error
		return b, err
	}
	refused := func(t *testing.T, db *gorm.DB, why, name string) {
		t.Helper()
		_, err := create(db, name, nothing)
		if err == nil || !strings.Contains(err.Error(), why) || !strings.HasPrefix(err.Error(), "gormplugin: read back the keys of box") {
			t.Errorf("upsert of %s without SELECT = %v; want that of the read, %q", name, err, why)
		}
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		db := withPlugin(t, opener(t, gormTargets[1].dialector(t))(&gorm.Config{Logger: logger.Discard}))
		stored, err := create(db, "stored")
		must(t, err)
		pool, err := db.DB()
		must(t, err)
		role := newRole(t, pool, "GRANT INSERT ON boxes, things TO $role")
		as := func(run func(db *gorm.DB)) {
			t.Helper()
			must(t, db.Connection(func(tx *gorm.DB) error {
				tx = tx.Session(&gorm.Session{})
				must(t, tx.Exec("SET ROLE "+role).Error)
				run(tx)
				return tx.Exec("RESET ROLE").Error
			}))
		}
		as(func(db *gorm.DB) {
			_, err := create(db, "plain")
			must(t, err)
			_, err = create(db, "new", nothing)
			must(t, err)
			refused(t, db, "permission denied", "stored")
		})
		must(t, db.Exec("GRANT SELECT (id, name) ON boxes TO "+role).Error)
		as(func(db *gorm.DB) {
			if b, err := create(db, "stored", nothing); err != nil || b.ID != stored.ID {
				t.Errorf("upsert with SELECT of the key and the unique column = %d, %v; want %d", b.ID, err, stored.ID)
			}
		})
	})
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		p := w.place(t)
		open := func(p place) *gorm.DB {
			return opener(t, func() gorm.Dialector { return mysql.Open(p.dsn) })(&gorm.Config{Logger: logger.Discard})
		}
		db, plugin := open(p), newPlugin()
		must(t, db.Use(plugin))
		must(t, db.AutoMigrate(&box{}, &thing{}))
		stored, err := create(db, "stored")
		must(t, err)
		pool, err := db.DB()
		must(t, err)
		as, user := p.user(t, pool, "GRANT INSERT, UPDATE, SELECT (id) ON boxes TO $role")
		limited := open(as)
		must(t, limited.Use(plugin))
		_, err = create(limited, "plain")
		must(t, err)
		_, err = create(limited, "new", nothing)
		must(t, err)
		refused(t, limited, "denied", "stored")
		must(t, db.Exec("GRANT SELECT (id, name) ON boxes TO "+user).Error)
		if b, err := create(limited, "stored", nothing); err != nil || b.ID != stored.ID {
			t.Errorf("upsert with SELECT of the key and the unique column = %d, %v; want %d", b.ID, err, stored.ID)
		}
	})
}
