package main

import (
	"context"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core/keysql"
)

// clocks compares this machine's clock with that of the database, and asks the kernel about it. A
// lease is refused if the clocks of its process and its store are more than five seconds apart.
func (e *examination) clocks(ctx context.Context) error {
	if why := unsynchronised(); why != "" {
		if err := e.find(note, "clock", why, "Start NTP, such as chrony. This is about the machine that doctor runs on."); err != nil {
			return err
		}
	}
	if e.d == nil || e.d.dialect == keysql.SQLite { // which has the clock of its process
		return nil
	}
	query := "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
	if e.d.dialect == keysql.MySQL {
		query = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"
	}
	// The answer of the shortest trip says most.
	var apart, within time.Duration
	for i := range 5 {
		var theirs int64
		before := time.Now()
		if err := e.d.QueryRowContext(ctx, query).Scan(&theirs); err != nil {
			return e.d.hide(err)
		}
		half := time.Since(before) / 2
		if i == 0 || half < within {
			apart, within = time.UnixMicro(theirs).Sub(before.Add(half)), half
		}
	}
	e.now = time.Now().Add(apart)
	if s, apart := judge(apart, within); s > note {
		word := "ahead of"
		if apart < 0 {
			word, apart = "behind", -apart
		}
		return e.find(s, "clock", fmt.Sprintf("the clock of %s is %v %s that of this machine", e.d, apart.Round(time.Millisecond), word),
			"Correct the one that is wrong, by NTP. A process whose clock is more than 5 s from that of its store gets no lease.")
	}
	return nil
}

// judge returns how bad it is that clocks are apart, as far as that is certain.
func judge(apart, within time.Duration) (severity, time.Duration) {
	if apart < 0 {
		s, certain := judge(-apart, within)
		return s, -certain
	}
	certain := max(0, apart-within)
	switch {
	case certain > 5*time.Second:
		return sick, certain
	case certain > time.Second:
		return warning, certain
	}
	return note, certain
}
