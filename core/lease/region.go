package lease

import (
	"context"
	"slices"
	"strconv"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/region"
)

// A Region names the region of a process; see package region.
//
// Region is experimental.
type Region = region.Region

// A RegionError says why a region may not use the datacenter number that it has, or gets none.
type RegionError = region.Error

// ErrRegion is matched by every [*RegionError].
var ErrRegion = region.ErrRefused

// resolveRegion validates Config.Region and copies it.
func (c *Config) resolveRegion() error {
	if c.Region == nil {
		return nil
	}
	if err := c.Region.Validate(c.Namespace, c.Layout); err != nil {
		return err
	}
	if c.Datacenter != 0 {
		return invalid("Config.Datacenter", strconv.FormatInt(c.Datacenter, 10), "0 with Config.Region, whose Datacenters restricts the numbers")
	}
	r := *c.Region
	r.Datacenters = slices.Clone(r.Datacenters)
	c.Region = &r
	return nil
}

// resolveRows is resolve for a call about the rows of one datacenter, which refuses a region.
func (c Config) resolveRows(store Store) (Config, leasestore.Claim, error) {
	c, claim, err := c.resolve(store.LosesWrites())
	if err == nil && c.Region != nil {
		err = invalid("Config.Region", strconv.Quote(c.Region.Name), "none, but the number in Config.Datacenter")
	}
	return c, claim, err
}

// withRegion prepares the region of Config.Region, if any.
func (l *Lease) withRegion() (err error) {
	c := &l.config
	if c.Region == nil {
		return nil
	}
	_, random := luck()
	l.status.Datacenter = -1
	l.region, err = region.New(region.Config{
		Region:  c.Region,
		Own:     l.store,
		Leases:  l.protocol.settings.Space,
		Layout:  Fingerprint(c.Layout),
		Numbers: 1 << c.Layout.DatacenterBits,
		Skew:    l.protocol.settings.Skew,
		Now:     c.now,
		Logger:  c.Logger,
		Token:   token,
		Random:  random,
	})
	return err
}

// keepRegion looks after the number of the region until ctx ends, and returns what waits for its end.
func (l *Lease) keepRegion(ctx context.Context) (wait func()) {
	if l.region == nil {
		return func() {}
	}
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		l.region.Keep(ctx)
	}()
	return func() { <-kept }
}

// checkRegion returns why a request must not be sent. A claim is given the number of the region.
func (l *Lease) checkRegion(ctx context.Context, a action) error {
	switch {
	case l.region == nil:
		return nil
	case a.claim == nil && l.region.Refused():
		return a.renewal.Lost(regionLost)
	case a.claim == nil:
		return nil
	}
	number, err := l.region.Join(ctx)
	if err != nil {
		return err
	}
	if l.status.Datacenter < 0 { // the first time, before anything else knows of the lease
		l.mu.Lock()
		l.status.Datacenter, l.config.Datacenter = number, number
		l.mu.Unlock()
		l.config.Logger = l.config.Logger.With("datacenter", number)
		l.protocol.settings.Space.Datacenter = number
	}
	a.claim.Space.Datacenter, a.claim.Now = number, leasestore.MillisOf(l.config.now())
	return nil
}

// regionLost is why a lease ends whose region is refused.
const regionLost leasestore.Reason = "its region may not use the datacenter number any more"
