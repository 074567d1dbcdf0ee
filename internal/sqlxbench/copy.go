package main

import (
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
)

// copyOptions returns what makes a Helper use COPY with pgx, from as many rows on
// as it does by default.
func copyOptions() []sqlxhelper.Option {
	return []sqlxhelper.Option{sqlxhelper.WithCopy(pgxcopy.Copier{}, 0)}
}
