package pgtext

import (
	"database/sql/driver"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/types"
)

func TestUnnestNamesTheTypesThatItsGuardChecks(t *testing.T) {
	table := &Table{OID: 7, Name: "public.t", Columns: map[string]Column{"id": {"bigint", Int8, 20}, "at": {"date", Date, 1082}}}
	var b strings.Builder
	table.WriteUnnest(&b, `"t"`, []string{"id", "at"}, func(i int) { b.WriteString([]string{"$4", "$5"}[i]) })
	if want := ` SELECT unnest($4::bigint[]), unnest($5::date[]) WHERE ` + table.Guard(`"t"`, []string{"id", "at"}); b.String() != want {
		t.Errorf("WriteUnnest = %s; want %s", b.String(), want)
	}
}

type (
	asText     string // by Value
	failing    struct{}
	byAddress  int64 // only its pointer is a driver.Valuer
	underlying string
)

func (v asText) Value() (driver.Value, error) { return string(v), nil }

func (failing) Value() (driver.Value, error) { return nil, errors.New("no value") }

func (v *byAddress) Value() (driver.Value, error) { return int64(*v), nil }

func TestEncoderWritesValuesOfAnyTypesInTurn(t *testing.T) {
	n, address := int64(7), byAddress(8)
	at := time.Date(2024, 2, 29, 12, 34, 56, 0, time.UTC)
	const refused = "refused"
	for typ, values := range map[Type][][2]any{
		Int8: {
			{int64(5), "5"}, {nil, "NULL"}, {5, "5"}, {uint8(6), "6"}, {&n, "7"}, {(*int64)(nil), "NULL"}, {types.Snowflake(9), "9"}, {types.NullSnowflake{}, "NULL"},
			{(*types.Snowflake)(nil), "NULL"}, {&address, "8"}, {byAddress(8), refused}, {asText("5"), refused}, {failing{}, refused}, {"5", `"5"`}, {uint64(1 << 63), refused}, {int64(5), "5"}, {nil, "NULL"},
		},
		Text:  {{"a,b", `"a,b"`}, {underlying("c"), `"c"`}, {asText("d"), `"d"`}, {[]byte("e"), refused}, {json.RawMessage("{}"), refused}, {5, refused}, {netip.Addr{}, refused}},
		UUID:  {{asText("6BA7B810-9DAD-11D1-80B4-00C04FD430C8"), `"6BA7B810-9DAD-11D1-80B4-00C04FD430C8"`}, {asText("{6BA7B810}"), refused}, {"{6BA7B810}", `"{6BA7B810}"`}},
		Date:  {{at, `"2024-02-29"`}, {&at, `"2024-02-29"`}, {at.In(time.FixedZone("", 3600)), refused}},
		Bytea: {{[]byte{1}, `"\\x01"`}, {[]byte(nil), "NULL"}, {"a", refused}},
	} {
		e := Encoder{Type: typ, Format: Array}
		for i, v := range values {
			b, ok := e.Append([]byte("{"), v[0])
			if !ok && v[1] != refused || ok && string(b) != "{"+v[1].(string) {
				t.Errorf("type %d, value %d: Append(%T %v) = %s, %v; want %v", typ, i, v[0], v[0], b, ok, v[1])
			}
		}
	}
}
