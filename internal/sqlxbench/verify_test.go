package main

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// damaged runs the NamedExec of a load on SQLite after damage was done to the rows
// that it stores.
func damaged(t *testing.T, kind string, damage func(orders []order, items []item) (keptOrders []order, keptItems []item)) error {
	t.Helper()
	store := map[string]func(context.Context, *job) (load, error){lines: namedLines, graph: namedGraph}[kind]
	p := placeFor(t, targets[0])
	v := variant{load: kind, name: "damaged", prepare: func(ctx context.Context, j *job) (load, error) {
		other := *j
		other.orders, other.items = damage(newOrders(fewRows.orders), newItems(fewRows.lines))
		if kind == lines {
			other.orders = nil
		}
		return store(ctx, &other)
	}}
	_, err := p.run(t.Context(), v, fewRows)
	return err
}

func TestOneWrongValueIsFound(t *testing.T) {
	keep := func(o []order, i []item) ([]order, []item) { return o, i }
	for _, kind := range []string{lines, graph} {
		if err := damaged(t, kind, keep); err != nil {
			t.Errorf("%s, undamaged = %v; want no error", kind, err)
		}
	}
	for name, test := range map[string]struct {
		load   string
		damage func([]order, []item) ([]order, []item)
		want   string
	}{
		"MissingRow":  {lines, func(o []order, i []item) ([]order, []item) { return o, i[1:] }, "order_items has 3316 rows, want 3317"},
		"Text":        {lines, func(o []order, i []item) ([]order, []item) { i[7].SKU += " "; return o, i }, `SKU:SKU-000007  Q`},
		"Parent":      {lines, func(o []order, i []item) ([]order, []item) { i[7].OrderID++; return o, i }, "order_items has the row"},
		"Quantity":    {lines, func(o []order, i []item) ([]order, []item) { i[3316].Quantity++; return o, i }, "order_items has the row"},
		"Price":       {lines, func(o []order, i []item) ([]order, []item) { i[0].Price = 1; return o, i }, "order_items has the row"},
		"Microsecond": {lines, func(o []order, i []item) ([]order, []item) { i[9].CreatedAt = i[10].CreatedAt; return o, i }, "order_items has the row"},
		"Key":         {lines, func(o []order, i []item) ([]order, []item) { i[3316].ID++; return o, i }, "order_items has the row"},
		"Order":       {graph, func(o []order, i []item) ([]order, []item) { o[5].Total++; return o, i }, "orders has the row"},
		"MissingItem": {graph, func(o []order, i []item) ([]order, []item) { o[5].Items = o[5].Items[1:]; return o, i }, "order_items has 1184 rows, want 1185"},
	} {
		if err := damaged(t, test.load, test.damage); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: run = %v; want an error with %q", name, err, test.want)
		}
	}
}

// A variant that assigns keys says itself which rows it has stored. That is not
// taken on trust.
func TestWhatAVariantSaysItStoredIsComparedWithTheJob(t *testing.T) {
	orders, items := newOrders(3), newItems(15)
	for name, damage := range map[string]func(o []order, i []item) ([]order, []item){
		"MissingOrder": func(o []order, i []item) ([]order, []item) { return o[:2], i },
		"MissingItem":  func(o []order, i []item) ([]order, []item) { return o, i[:14] },
		"NoKey":        func(o []order, i []item) ([]order, []item) { i[3].ID = 0; return o, i },
		"NoOrderKey": func(o []order, i []item) ([]order, []item) {
			o[2].ID = 0
			for k := range o[2].Items {
				i[2*itemsPerOrder+k].OrderID = 0
			}
			return o, i
		},
		"Value":       func(o []order, i []item) ([]order, []item) { i[3].Price++; return o, i },
		"OrderValue":  func(o []order, i []item) ([]order, []item) { o[1].Number = ""; return o, i },
		"OtherParent": func(o []order, i []item) ([]order, []item) { i[5].OrderID = o[0].ID; return o, i },
	} {
		gotOrders, gotItems := damage(newOrders(3), newItems(15))
		if err := sameButKeys(gotOrders, orders, gotItems, items); err == nil {
			t.Errorf("%s: sameButKeys = nil; want an error", name)
		}
	}
	moved, movedItems := newOrders(3), newItems(15)
	for i := range moved {
		moved[i].ID += 100
	}
	for i := range movedItems {
		movedItems[i].ID += 1000
		movedItems[i].OrderID += 100
	}
	if err := sameButKeys(moved, orders, movedItems, items); err != nil {
		t.Errorf("sameButKeys(other keys) = %v; want no error", err)
	}
}

func TestErrorOfAVariantNamesIt(t *testing.T) {
	p := placeFor(t, targets[0])
	mine := errors.New("mine")
	v := variant{load: lines, name: "failing", prepare: func(context.Context, *job) (load, error) {
		return load{run: func() error { return mine }}, nil
	}}
	_, err := p.run(t.Context(), v, fewRows)
	if !errors.Is(err, mine) || !strings.HasPrefix(err.Error(), "SQLite, lines, failing: ") {
		t.Errorf("run = %v; want %v with the name of the variant before it", err, mine)
	}
}
