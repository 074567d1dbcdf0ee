package leasetest

import "github.com/snowkey/snowkey/core/lease/leasestore"

// claimForGoodLasts: the datacenter number of a region is a row that is claimed with the window
// Retired, renewed, and released by whoever has read it.
func claimForGoodLasts(s *suite) {
	s.space.Workers = 2
	c := s.newClaim()
	c.Only, c.Window, c.Holder = []int64{1}, leasestore.Retired, "3 eu-west-1"
	s.a.must(c)
	row := s.row(1)
	if !row.Retired() || row.Owner != c.Owner || row.Nonce != c.Nonce || row.Holder != c.Holder || row.Until < leasestore.Retired+s.now()-minute {
		s.Fatalf("row after a claim with the window Retired = %+v; want the claim's owner, nonce and holder, and Until to be Retired and the time", row)
	}
	again := s.newClaim()
	again.Only, again.Window = c.Only, leasestore.Retired
	s.b.full("Claim of a row that is claimed for good", again, 0)
	again.Owner, again.Nonce = c.Owner, c.Nonce
	if _, err := s.b.store.Claim(s.Context(), again); err == nil {
		s.Error("Claim with the owner of a row that is claimed for good = nil error; want one")
	}
	version := row.Until + 1
	renewal := leasestore.Renewal{
		Space: s.space, Worker: 1, Epoch: row.Epoch, Owner: row.Owner, Known: []string{row.Nonce}, Nonce: token(), Until: version,
	}
	s.b.must(renewal)
	if got := s.row(1); got.Until != version || got.Nonce != renewal.Nonce || got.Owner != c.Owner || got.Holder != c.Holder {
		s.Errorf("row after its renewal = %+v; want Until %d, the renewal's nonce, and the claim's owner and holder", got, version)
	}
	if _, err := s.a.store.Renew(s.Context(), renewal); err == nil {
		s.Error("Renew with a nonce that the row no longer has = nil error; want one")
	}
	s.a.must(leasestore.Release{
		Space: s.space, Worker: 1, Epoch: row.Epoch, Owner: row.Owner, Known: []string{renewal.Nonce}, Nonce: token(),
	})
	if got := s.row(1); got.Until != 0 || got.Owner != "" || got.Holder != "" {
		s.Errorf("row after its release = %+v; want it free", got)
	}
	s.b.must(again)
}
