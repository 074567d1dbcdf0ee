package pgxcopy_test //nolint:testableexamples // it needs a server

import (
	"context"
	"log"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

type Reading struct {
	types.Model
	Sensor string  `db:"sensor"`
	Value  float64 `db:"value"`
}

// Loads of many rows go by COPY, in the same transaction as all else.
func Example() {
	var generator sqlxhelper.Source // core.New makes one
	var readings []Reading          // 100,000 of them

	db, err := sqlx.Connect("pgx", "postgres://localhost/plant")
	if err != nil {
		log.Fatal(err)
	}
	h := sqlxhelper.New(generator, sqlxhelper.WithCopy(pgxcopy.Copier{}, 0))
	err = sqlxhelper.InTx(context.Background(), db, nil, func(tx *sqlx.Tx) error {
		if _, err := tx.Exec("DELETE FROM readings WHERE sensor = $1", "boiler"); err != nil {
			return err
		}
		return h.InsertMany(context.Background(), tx, "readings", readings)
	})
	if err != nil {
		log.Fatal(err)
	}
}
