package region

import (
	"fmt"
	"slices"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A reservation is the home, parsed: the number that the region has, or means to take.
type reservation struct {
	leasestore.Row
	number int64
	name   string
}

// reservationOf parses a home in a layout with so many numbers.
func reservationOf(row leasestore.Row, numbers int64) (h reservation, err error) {
	h.Row = row
	if row.Owner == "" {
		return h, nil
	}
	_, err = fmt.Sscanf(row.Holder, "%d %s", &h.number, &h.name)
	if err != nil || h.holder() != row.Holder || h.number < 0 || h.number >= numbers {
		return h, fmt.Errorf("lease: the home of the region has the holder %q: want a number in 0..%d and a name", row.Holder, numbers-1)
	}
	return h, nil
}

func (h *reservation) holder() string { return fmt.Sprintf("%d %s", h.number, h.name) }

// pending reports whether the home has no number yet, or one that may still be another region's.
func (h *reservation) pending() bool { return h.Owner == "" || h.Nonce == h.Owner }

// A step is what to do about a home and the rows of the numbers.
type step int

const (
	settled    step = iota // nothing: the home has its number, and both rows have the same mark
	reserve                // claim the home, for a number
	take                   // claim the number's row with the owner and mark of the home
	markHome               // give the home a new mark
	markNumber             // copy it to the number's row
	release                // release the home: another region has the number that it reserves
)

// decide says what comes next, from rows that were there at one moment. The number is the home's,
// or the one to reserve. free reports whether the common store can give a row to a claim.
func (r *Region) decide(h reservation, rows []leasestore.Row, free func(leasestore.Row) bool) (do step, number int64, err error) {
	if h.Owner == "" {
		return r.choose(rows, free)
	}
	if err := r.matches(h); err != nil {
		return 0, 0, err
	}
	row := rows[h.number]
	ours := row.Owner == h.Owner
	switch {
	case ours && row.Nonce == h.Nonce && h.pending():
		do = markHome
	case ours && row.Nonce == h.Nonce:
		do = settled
	case ours && row.Until < h.Until:
		do = markNumber
	case ours:
		err = r.refused(h.number, "its own store does not know the mark of the common store: it is a copy of the region's store, or it was restored")
	case h.pending() && !free(row):
		do = release
	case h.pending() || row == leasestore.Row{Worker: h.number}: // the common store has lost it
		do = take
	case row.Owner == "":
		err = r.refused(h.number, "an operator has freed the number")
	default:
		err = r.refused(h.number, fmt.Sprintf("the common store has given the number to %q", row.Holder))
	}
	return do, h.number, err
}

// matches returns an error if the region's own store is another region's, by its home.
func (r *Region) matches(h reservation) error {
	switch {
	case h.name != r.Name:
		return r.refused(h.number, fmt.Sprintf("its own store is that of region %q: want that name, or, if the store is a copy, a home that was freed", h.name))
	case !r.permits(h.number):
		return r.refused(h.number, fmt.Sprintf("Config.Region.Datacenters is %d", r.Datacenters))
	}
	return nil
}

func (r *Region) permits(number int64) bool {
	return r.Datacenters == nil || slices.Contains(r.Datacenters, number)
}

// choose reserves the first number that was never used, or else the first that is free.
func (r *Region) choose(rows []leasestore.Row, free func(leasestore.Row) bool) (do step, number int64, err error) {
	number = -1
	for _, row := range rows {
		switch {
		case row.Owner != "" && row.Holder == r.Name:
			return 0, 0, r.refused(row.Worker, "a region of that name has it already, with another store of its own: want another name, or, if that store is gone, a number that was freed")
		case !r.permits(row.Worker) || !free(row):
		case number < 0 || row.Epoch == 0 && rows[number].Epoch > 0:
			number = row.Worker
		}
	}
	if number < 0 {
		return 0, 0, r.refused(number, "every number that it may have is taken")
	}
	return reserve, number, nil
}

func (r *Region) refused(number int64, problem string) error {
	return &Error{Region: r.Name, Datacenter: number, Problem: problem}
}
