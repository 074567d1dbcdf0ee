package etcdlease

import (
	"context"
	"crypto/tls"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// Config has the settings of a [Store]. The zero value will do for servers without TLS.
type Config struct {
	// Prefix begins each key: prefix/namespace/… It is 1..64 of a-z A-Z 0-9 . _ - : /, and
	// does not end in /. No store may have a prefix below that of another. Defaults to
	// "snowkey".
	Prefix string

	// TLS is the TLS of the client's own [clientv3.Config]. The servers are asked for the
	// time with it. Nil: endpoints that name no scheme are asked by plain HTTP.
	TLS *tls.Config

	// Clock returns the time that counts for all processes of a namespace. It must give
	// up when ctx ends. Defaults to the clock of the servers, as they show it by HTTP.
	// Set it where the endpoints do not serve HTTP. A function that calls time.Now will do,
	// if you make sure in another way that the clocks of all processes agree. IDs are
	// unique in any case, but a process whose clock is ahead takes numbers that are held.
	Clock func(ctx context.Context) (time.Time, error)
}

// New returns a Store on the servers of client. It sends nothing. The client remains the
// caller's, to close after the last lease.
//
// It returns a [*core.ValueError] if client is nil or if Config.Prefix is not one.
func New(client *clientv3.Client, config Config) (*Store, error) {
	if client == nil {
		return nil, invalid("client", "nil", "a client, as clientv3.New returns")
	}
	if config.Prefix == "" {
		config.Prefix = "snowkey"
	}
	if !plainPrefix(config.Prefix) {
		return nil, invalid("Config.Prefix", strconv.Quote(cut(config.Prefix)), "1..64 of a-z A-Z 0-9 . _ - : /, the last of them no /")
	}
	if config.Clock == nil {
		config.Clock = serverClock(client.Endpoints, config.TLS)
	}
	return &Store{leasestore.Over(&register{kv: client.KV, prefix: config.Prefix, clock: config.Clock})}, nil
}

func plainPrefix(prefix string) bool {
	for _, c := range []byte(prefix) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("._-:/", c) < 0 {
			return false
		}
	}
	return len(prefix) <= 64 && !strings.HasSuffix(prefix, "/")
}

func invalid(name, value, want string) error {
	return &core.ValueError{Package: "etcdlease", Name: name, Value: value, Want: want, Err: leasestore.ErrPermanent}
}

func cut(text string) string {
	const enough = 64
	if len(text) > enough {
		return strings.ToValidUTF8(text[:enough], "") + "…"
	}
	return text
}
