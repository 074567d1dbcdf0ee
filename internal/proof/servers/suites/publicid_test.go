package servers

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

type shownOrder struct{}

var shownOrders, _ = publicid.New(publicid.Config{Prefix: "order", Keys: [][]byte{[]byte("a test's 16 byte")}})

func (shownOrder) PublicIDs() *publicid.Codec { return shownOrders }

// pgx writes a fmt.Stringer into a column of text, and looks below the type of a value. Without
// database/sql it asks for Value and Scan too.
func TestPgxHasNoColumnForAPublicID(t *testing.T) {
	const want = "publicid: ID[shownOrder] is never a column"
	id := publicid.Of(types.ID[shownOrder](5))
	m := pgtype.NewMap()
	for _, oid := range []uint32{0, pgtype.TextOID, pgtype.VarcharOID, pgtype.Int8OID, pgtype.NumericOID, pgtype.JSONBOID, pgtype.UUIDOID, pgtype.ByteaOID} {
		for _, format := range []int16{pgtype.TextFormatCode, pgtype.BinaryFormatCode} {
			for _, v := range []any{id, &id} {
				if b, err := m.Encode(oid, format, v, nil); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Encode(OID %d, format %d, %T) = %q, %v; want the error that an ID is never a column", oid, format, v, b, err)
				}
			}
		}
	}
	got := id
	for oid, value := range map[uint32]string{pgtype.TextOID: id.String(), pgtype.VarcharOID: "5", pgtype.Int8OID: "5", pgtype.NumericOID: "5"} {
		if err := m.Scan(oid, pgtype.TextFormatCode, []byte(value), &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Scan(OID %d, %s) = %v; want the error that an ID is never a column", oid, value, err)
		}
	}
	if got != id {
		t.Errorf("Scan left %d; want 5, as before", got.Key())
	}
}
