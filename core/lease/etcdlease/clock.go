package etcdlease

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// now returns the store's clock.
func (r *register) now(ctx context.Context) (leasestore.Millis, error) {
	now, err := r.clock(ctx)
	if err != nil {
		return 0, fmt.Errorf("etcdlease: ask for the time: %w", wait.Cause(ctx, err))
	}
	return leasestore.MillisOf(now), nil
}

// errNoHTTP ends the error of a clock for which no server has answered.
var errNoHTTP = errors.New("set Config.TLS to that of the client; if the endpoints do not serve HTTP, set Config.Clock")

// serverClock returns a clock that asks the servers.
//
// No request of etcd's own protocol is answered with the time, but the servers answer HTTP on
// the same port, and each answer has a Date in whole seconds. The clock is therefore the
// process's own, moved into the second that a server reports: two processes whose clocks are
// wrong by an hour agree to within a second, and a process whose clock is right is not moved at
// all.
//
// Rejected: the process's own clock alone, because a clock that is a year ahead would go
// unnoticed and its process would take every number that others hold; the times in the rows,
// because one wrong clock would block all other processes; and the time to live of an etcd
// lease, because it restarts when another server becomes the leader.
//
// All servers are asked at once, and the first answer counts. Each has its own clock, just as
// successive leaders of ZooKeeper do.
func serverClock(endpoints func() []string, config *tls.Config) func(ctx context.Context) (time.Time, error) {
	client := &http.Client{
		// Connections are not kept alive, because the store has no Close that would end them.
		Transport:     &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) (time.Time, error) {
		ctx, cancel := context.WithCancel(ctx) // of the slower requests
		defer cancel()
		all := endpoints()
		type answer struct {
			now time.Time
			err error
		}
		answers := make(chan answer, len(all))
		for _, endpoint := range all {
			go func() {
				now, err := askServer(ctx, client, versionURL(endpoint, config != nil))
				answers <- answer{now, err}
			}()
		}
		err := errNoHTTP
		for range all {
			a := <-answers
			if a.err == nil {
				return a.now, nil
			}
			err = fmt.Errorf("%w; %w", a.err, err)
		}
		return time.Time{}, err
	}
}

// versionURL returns the page to request from an endpoint, one that every user may read.
func versionURL(endpoint string, secure bool) string {
	if !strings.Contains(endpoint, "://") {
		scheme := "http"
		if secure {
			scheme = "https"
		}
		endpoint = scheme + "://" + endpoint
	}
	return strings.TrimRight(endpoint, "/") + "/version"
}

// askServer returns the time of this process, moved into the second that a server reports. An
// answer that refuses the request reports the time as well.
func askServer(ctx context.Context, client *http.Client, url string) (time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return time.Time{}, err
	}
	asked := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return time.Time{}, err
	}
	_ = response.Body.Close() // nothing was read from it
	shown, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is answered without a date", url)
	}
	now := time.Now()
	return within(now, shown, shown.Add(time.Second-time.Millisecond+now.Sub(asked))), nil
}

// within returns the moment from earliest to latest that is nearest to t.
func within(t, earliest, latest time.Time) time.Time {
	switch {
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	}
	return t
}
