package zklease

import (
	"errors"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func TestDamagedSettingsAreToldAndNeverMadeAnew(t *testing.T) {
	sp := leasestore.Space{Namespace: "shop", Datacenter: 3, Workers: 2, Layout: "l"}
	makeRows := func(conn *canned, sp leasestore.Space) error {
		return newStore(t, conn, Config{}).Register().Make(t.Context(), sp)
	}
	conn, _, _ := holding(sp, 1)
	if err := makeRows(conn, sp); err != nil {
		t.Errorf("Make of a complete space = %v; want nil", err)
	}
	other := sp
	other.Layout = "another"
	if err := makeRows(conn, other); !errors.Is(err, leasestore.ErrLayout) {
		t.Errorf("Make with another layout = %v; want a *lease.LayoutError", err)
	}

	conn.nodes["/snowkey/shop/3"] = []byte("v1 workers=2 state=complete ")
	if err := makeRows(conn, sp); !errors.Is(err, ErrDamaged) {
		t.Errorf("Make in a damaged datacenter = %v; want ErrDamaged", err)
	}
	v, err := newStore(t, conn, Config{}).Register().Read(t.Context(), sp, []int64{0})
	if err != nil || v.Made || !errors.Is(v.Damaged, ErrDamaged) || len(v.Rows) != 1 {
		t.Errorf("Read in a damaged datacenter = %+v, %v; want the row of a holder, and ErrDamaged beside it", v, err)
	}

	conn.nodes["/snowkey/shop"] = []byte("v2")
	if err := makeRows(conn, sp); !errors.Is(err, ErrDamaged) {
		t.Errorf("Make in a damaged namespace = %v; want ErrDamaged", err)
	}
	if v, err := newStore(t, conn, Config{}).Register().Read(t.Context(), sp, []int64{0}); !errors.Is(err, ErrDamaged) {
		t.Errorf("Read in a damaged namespace = %+v, %v; want ErrDamaged", v, err)
	}
}
