package etcdlease

import (
	"cmp"
	"context"
	"crypto/tls"
	"regexp"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/errtext"
)

// Config has the settings of a [Store]. The zero value suits servers without TLS.
type Config struct {
	// Prefix begins every key: prefix/namespace/… It has 1..64 of the characters a-z A-Z 0-9 .
	// _ - : / and does not end in a slash. The prefix of one store must not lie below that of
	// another. Defaults to "snowkey".
	Prefix string

	// TLS is the configuration of the client's own [clientv3.Config], used to ask the servers
	// for the time. If it is nil, endpoints without a scheme are asked by plain HTTP.
	TLS *tls.Config

	// Clock returns the time that counts for all processes of a namespace, and gives up when
	// ctx ends. Defaults to the servers' clock as their HTTP answers report it. Set it where
	// the endpoints do not serve HTTP. A function that calls time.Now is sufficient if the
	// clocks of all processes are kept in agreement by other means: IDs are unique in any case,
	// but a process whose clock is ahead takes numbers that others hold.
	Clock func(ctx context.Context) (time.Time, error)
}

// New returns a Store on the servers of client. It sends nothing. The client remains the
// caller's, to be closed after the last lease.
//
// It returns a [*core.ValueError] if client is nil or Config.Prefix is invalid.
func New(client *clientv3.Client, config Config) (*Store, error) {
	if client == nil {
		return nil, invalid("client", "nil", "a client, as clientv3.New returns")
	}
	config.Prefix = cmp.Or(config.Prefix, "snowkey")
	if !plainPrefix.MatchString(config.Prefix) {
		return nil, invalid("Config.Prefix", strconv.Quote(errtext.Cut(config.Prefix)), "1..64 of a-z A-Z 0-9 . _ - : /, the last of them no /")
	}
	if config.Clock == nil {
		config.Clock = serverClock(client.Endpoints, config.TLS)
	}
	return &Store{leasestore.FromRegister(&register{kv: client.KV, prefix: config.Prefix, clock: config.Clock})}, nil
}

// plainPrefix is the form of a prefix.
var plainPrefix = regexp.MustCompile(`^[a-zA-Z0-9._:/-]{0,63}[a-zA-Z0-9._:-]$`)

func invalid(name, value, want string) error {
	return &core.ValueError{Package: "etcdlease", Name: name, Value: value, Want: want, Err: leasestore.ErrPermanent}
}
