package redislease

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/errtext"
)

// A Client runs scripts, as a *redis.Client does, with or without Sentinel, a
// *redis.ClusterClient, a *redis.Ring and a redis.UniversalClient. New refuses a Ring of
// several servers.
type Client interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
}

// Config has the settings of a [Store]. The zero value is usable.
type Config struct {
	// Prefix begins every key: prefix:{namespace}, and with more behind it. It has
	// 1..64 of the characters a-z A-Z 0-9 . _ - : /. Defaults to "snowkey".
	Prefix string

	// Logger gets a warning, once per Store, if the eviction policy of the server cannot be
	// read. Defaults to slog.Default().
	Logger *slog.Logger
}

// A Store keeps rows in Redis. It is a [leasestore.Store], a [leasestore.Lister], a
// [leasestore.Fencer] and a [leasestore.History]. Use [New]; the zero value is not usable. It is safe for concurrent use
// and must not be copied.
//
// Besides the errors of [leasestore.Store] it returns errors that match [ErrEvicts],
// [ErrReadOnly] or [ErrDamaged], and a *core.ValueError for a value that no row can hold. After
// these nothing was written.
type Store struct{ *leasestore.RegisterStore }

var _ leasestore.Catalog = (*Store)(nil) // beside what a RegisterStore is

// A register keeps rows in Redis.
type register struct {
	client Client
	prefix string
	logger *slog.Logger
	warned atomic.Bool // logged that the policy cannot be read
}

// New returns a Store on the servers of client. It sends nothing. It returns a *core.ValueError
// if client is nil, a pipeline or a Ring of several servers, or if a setting is out of range.
// It does not notice a pipeline or a Ring inside a wrapper; for metrics use a hook of go-redis,
// which hides nothing. The client remains the caller's, to be closed after the last lease.
func New(client Client, config Config) (*Store, error) {
	// A nil pointer would panic in a goroutine, where no caller can recover.
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, invalid("client", "nil", "a *redis.Client, *redis.ClusterClient or *redis.Ring")
	}
	if _, ok := client.(redis.Pipeliner); ok {
		return nil, invalid("client", "a pipeline, which answers later", "a *redis.Client, *redis.ClusterClient or *redis.Ring")
	}
	if ring, ok := client.(*redis.Ring); ok && len(ring.Options().Addrs) > 1 {
		// A process moves a namespace to another server when its own does not answer it. Other
		// processes stay, and both servers give the workers away.
		return nil, invalid("client", fmt.Sprintf("a *redis.Ring of %d servers", len(ring.Options().Addrs)),
			"one server, a failover client or a *redis.ClusterClient")
	}
	r := &register{client: client, prefix: cmp.Or(config.Prefix, "snowkey"), logger: cmp.Or(config.Logger, slog.Default())}
	if !plainPrefix.MatchString(r.prefix) {
		return nil, invalid("Config.Prefix", strconv.Quote(errtext.Cut(r.prefix)), "1..64 of a-z A-Z 0-9 . _ - : /")
	}
	return &Store{leasestore.FromRegister(r)}, nil
}

// LosesWrites returns true, because Redis may forget a write that it has acknowledged.
func (r *register) LosesWrites() bool { return true }

// probes is how many random rows a claim reads before it reads all. With a quarter of the rows
// free, one claim in 10,000 needs all.
const probes = 32

// Read reads rows in one script.
func (r *register) Read(ctx context.Context, s leasestore.Space, workers []int64) (leasestore.View, error) {
	args := []any{s.Datacenter, "all"}
	if workers != nil {
		args[1] = "only"
		for _, worker := range workers {
			args = append(args, worker)
		}
	}
	v, _, foreign, err := r.look(ctx, "read", readScript, s, args)
	if err == nil && workers == nil && v.Made && len(v.Rows) == 0 && v.Damaged == nil {
		err = foreign
	}
	return v, err
}

// Find reads a few random rows in one script, and all rows if none of these is free. The random
// numbers are made here, because Lua's generator starts every script with the same seed.
func (r *register) Find(ctx context.Context, s leasestore.Space, h leasestore.Hint) (leasestore.View, error) {
	random := h.Random()
	args := []any{s.Datacenter, h.Owner, int64(h.Held), int64(h.Released), s.Workers, random.Int64N(1 << 40)}
	some := h.Some(s, probes)
	args = append(args, len(some))
	for _, worker := range append(some, h.Only...) {
		args = append(args, worker)
	}
	v, policy, foreign, err := r.look(ctx, "find", findScript, s, args)
	switch {
	case err != nil:
		return leasestore.View{}, err
	case policy != "?" && policy != "noeviction" && !strings.HasPrefix(policy, "volatile-"):
		return leasestore.View{}, leasestore.Permanent(fmt.Errorf("redislease: find: %w: its maxmemory-policy is %q: want noeviction or volatile-…", ErrEvicts, policy))
	case foreign != nil:
		return leasestore.View{}, foreign
	case policy == "?" && !r.warned.Swap(true):
		r.logger.WarnContext(ctx, "redislease: INFO does not tell the maxmemory-policy of the server:"+
			" make sure that it is noeviction or begins with volatile-, or rows will vanish when memory is full")
	}
	return v, nil
}

// look runs a script that reads. It returns the view, the policy of the server if the script
// asks for it, and the error for a key that does not make sense.
func (r *register) look(ctx context.Context, what string, which script, s leasestore.Space, args []any) (v leasestore.View, policy string, foreign, err error) {
	fail := func(err error) (leasestore.View, string, error, error) {
		return leasestore.View{}, "", nil, fmt.Errorf("redislease: %s: %w", what, err)
	}
	reply, err := r.run(ctx, which, r.keys(s), &stamp{}, args)
	if err != nil {
		return fail(err)
	}
	if len(reply) != 7 || reply[6] != r.keys(s)[1] {
		return fail(errReply)
	}
	now, ok1 := reply[0].(int64)
	layout, ok2 := reply[1].(string)
	made, ok3 := reply[2].(int64)
	key, ok4 := reply[3].(string)
	policy, ok5 := reply[4].(string)
	found, ok6 := reply[5].([]any)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || !ok6 || len(found)%2 != 0 {
		return fail(errReply)
	}
	v = leasestore.View{Layout: layout, Made: made == 1, Now: leasestore.Millis(now)}
	for i := 0; i < len(found); i += 2 {
		name, ok1 := found[i].(string)
		text, ok2 := found[i+1].(string)
		if !ok1 || !ok2 {
			return fail(errReply)
		}
		worker, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			v.Damaged = fmt.Errorf("redislease: %s: %w: a row is called %q: want the number of a worker", what, ErrDamaged, errtext.Cut(name))
			continue
		}
		row, err := parseRow(worker, text)
		if err != nil {
			v.Damaged = fmt.Errorf("redislease: %s: %w", what, err)
			continue
		}
		v.Rows = append(v.Rows, leasestore.Seen{Row: row, Tag: text})
	}
	slices.SortFunc(v.Rows, func(a, b leasestore.Seen) int { return cmp.Compare(a.Row.Worker, b.Row.Worker) })
	if key != "" {
		foreign = foreignKey(what, key)
	}
	return v, policy, foreign, nil
}

func foreignKey(what, key string) error {
	return leasestore.Permanent(fmt.Errorf("redislease: %s: %w: key %q exists without the others of its namespace", what, ErrDamaged, key))
}

// Make makes the rows in one script, and makes them again if the server has forgotten them.
func (r *register) Make(ctx context.Context, s leasestore.Space) error {
	reply, err := r.run(ctx, makeScript, r.keys(s), &stamp{}, []any{s.Datacenter, s.Layout, s.Workers})
	if err != nil {
		return fmt.Errorf("redislease: make: %w", err)
	}
	if len(reply) != 1 {
		return fmt.Errorf("redislease: make: %w", errReply)
	}
	if key, ok := reply[0].(string); !ok || key != "" {
		return foreignKey("make", fmt.Sprint(reply[0]))
	}
	return nil
}

// Swap compares the whole text of the row in one script. A command that go-redis has sent again
// may be refused although the first one was performed and its effect undone since, so its
// outcome is unknown.
func (r *register) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	text, err := formatRow(to, from.Row.Until)
	if err != nil {
		return false, err
	}
	var sent stamp
	keys, args := r.keys(s), []any{s.Layout, to.Worker, from.Tag, text, &sent}
	if from.Record != "" {
		keys, args = r.historyKeys(s, to.Worker), append(args, from.Record, leasestore.HistoryLength)
	}
	reply, err := r.run(ctx, swapScript, keys, &sent, args)
	if err != nil {
		return false, fmt.Errorf("redislease: swap: %w", err)
	}
	if len(reply) != 3 || reply[0] != int64(0) && reply[0] != int64(1) || reply[1] != strconv.FormatInt(to.Worker, 10) || reply[2] != text {
		return false, fmt.Errorf("redislease: swap: %w", errReply)
	}
	if n := sent.count.Load(); reply[0] == int64(0) && n > 1 {
		return false, fmt.Errorf("redislease: swap: sent %d times for want of a reply, and refused at last, so it may have been done", n)
	}
	return reply[0] == int64(1), nil
}

// Spaces implements [leasestore.Catalog]. It scans all keys of the servers, a thousand at a time, and
// needs a client of go-redis itself.
func (s *Store) Spaces(ctx context.Context) ([]leasestore.Space, error) {
	r := s.Register().(*register)
	var mu sync.Mutex
	found := map[leasestore.Space]bool{} // SCAN may show a key twice
	scan := func(ctx context.Context, c redis.Cmdable) error {
		keys := c.Scan(ctx, 0, r.prefix+":{*}", 1000).Iterator()
		for keys.Next(ctx) {
			name := strings.TrimSuffix(strings.TrimPrefix(keys.Val(), r.prefix+":{"), "}")
			if (leasestore.Space{Namespace: name, Workers: 1}).Validate() != nil {
				continue
			}
			settings, err := c.HGetAll(ctx, keys.Val()).Result()
			if err != nil {
				return err
			}
			for field, text := range settings {
				if datacenter, ok := strings.CutPrefix(field, "rows:"); ok {
					at := leasestore.Space{Namespace: name, Layout: settings["layout"]}
					if _, err := fmt.Sscan(datacenter+" "+text, &at.Datacenter, &at.Workers); err != nil {
						return fmt.Errorf("%w: %q has %q: %q", ErrDamaged, keys.Val(), errtext.Cut(field), errtext.Cut(text))
					}
					mu.Lock()
					found[at] = true
					mu.Unlock()
				}
			}
		}
		return keys.Err()
	}
	var err error
	switch c := r.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	case redis.Cmdable:
		err = scan(ctx, c)
	default:
		return nil, invalid("client", fmt.Sprintf("a %T", c), "a client with Scan, such as a *redis.Client")
	}
	if err != nil {
		return nil, fmt.Errorf("redislease: list: %w", err)
	}
	return slices.Collect(maps.Keys(found)), nil
}

// keys returns the names of all keys that an operation on a space touches. The namespace in
// braces selects the server of a cluster. Because the layout is shared by all datacenters of a
// namespace, they are on one server.
func (r *register) keys(s leasestore.Space) []string {
	settings := r.prefix + ":{" + s.Namespace + "}"
	return []string{settings, settings + ":" + strconv.FormatInt(s.Datacenter, 10)}
}
