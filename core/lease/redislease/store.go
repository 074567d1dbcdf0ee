package redislease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease"
)

// A Client runs scripts. *redis.Client, also one for failover, *redis.ClusterClient,
// *redis.Ring and redis.UniversalClient are Clients. New refuses a Ring of more than
// one server.
type Client interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
}

// Config has the settings of a [Store]. The zero value will do.
type Config struct {
	// Prefix begins each key: prefix:{namespace} and prefix:{namespace}:datacenter.
	// 1..64 of a-z A-Z 0-9 . _ - : /. Defaults to "snowkey".
	Prefix string

	// Logger gets a warning when the eviction policy of the server cannot be read,
	// once per Store. Defaults to slog.Default().
	Logger *slog.Logger
}

// A Store keeps rows in Redis. It is a [lease.Store], a [lease.Lister] and a
// [lease.Fencer]. Use [New]; the zero value is not usable. It is safe for concurrent
// use and must not be copied.
type Store struct {
	client Client
	prefix string
	logger *slog.Logger
	warned atomic.Bool // that the policy cannot be read
}

var (
	_ lease.Store  = (*Store)(nil)
	_ lease.Lister = (*Store)(nil)
	_ lease.Fencer = (*Store)(nil)
)

// New returns a Store on the servers of client. It sends nothing. It returns a
// *lease.ValueError if client is nil, a pipeline or a Ring of several servers, or if a
// setting is out of its range. It cannot see a pipeline or a Ring in a wrapper; a hook of
// go-redis serves for metrics and hides nothing. The client remains the caller's, to close
// after the last lease.
func New(client Client, config Config) (*Store, error) {
	// A nil pointer would panic in a goroutine, where nobody can recover it.
	if v := reflect.ValueOf(client); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, invalid("client", "nil", "a *redis.Client, *redis.ClusterClient or *redis.Ring")
	}
	if _, ok := client.(redis.Pipeliner); ok {
		return nil, invalid("client", "a pipeline, which answers later", "a *redis.Client, *redis.ClusterClient or *redis.Ring")
	}
	if ring, ok := client.(*redis.Ring); ok && len(ring.Options().Addrs) > 1 {
		// Each process takes a namespace to another server when its own does not
		// answer that process. Others stay, and both give the workers away.
		return nil, invalid("client", fmt.Sprintf("a *redis.Ring of %d servers", len(ring.Options().Addrs)),
			"one server, a failover client or a *redis.ClusterClient")
	}
	s := &Store{client: client, prefix: config.Prefix, logger: config.Logger}
	if s.prefix == "" {
		s.prefix = "snowkey"
	}
	if !plainPrefix(s.prefix) {
		return nil, invalid("Config.Prefix", strconv.Quote(cut(s.prefix)), "1..64 of a-z A-Z 0-9 . _ - : /")
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	return s, nil
}

// LosesWrites returns true: Redis may forget what it has acknowledged.
func (s *Store) LosesWrites() bool { return true }

// Claim takes a free row at random, in one script. If the namespace is new, or the
// server has forgotten it, Claim makes the rows before. It passes over rows that are
// damaged, and names one if no other is free.
//
// Besides the errors of [lease.Store] it returns one that matches [ErrEvicts],
// [ErrReadOnly] or [ErrDamaged], having written nothing, or a *lease.ValueError.
func (s *Store) Claim(ctx context.Context, c lease.Claim) (lease.Reply, error) {
	sent := &stamp{read: time.Now()}
	if err := check("Claim", c.Space, []token{{"Owner", c.Owner}, {"Nonce", c.Nonce}},
		number{"Window", int64(c.Window)}, number{"Now", int64(c.Now)}, number{"Skew", int64(c.Skew)}, number{"Guard", int64(c.Guard)},
	); err != nil {
		return lease.Reply{}, err
	}
	// This says nothing of the clocks, which the script compares. But a claim that no
	// row will do for must not make any.
	if err := c.Check(c.Now); err != nil {
		return lease.Reply{}, err
	}
	r, err := s.ask(ctx, "claim", claimScript, c.Space, sent, claimArgs(&c, sent))
	if err != nil {
		return lease.Reply{}, err
	}
	verdict := r.text()
	if verdict != "done" {
		return lease.Reply{}, r.noClaim(verdict, &c, sent)
	}
	reply := r.reply()
	policy := r.text()
	if reply.Row.Owner != c.Owner || reply.Row.Nonce != c.Nonce {
		r.fail()
	}
	if r.err != nil {
		return lease.Reply{}, r.failed()
	}
	if policy == "" && !s.warned.Swap(true) {
		s.logger.WarnContext(ctx, "redislease: INFO does not tell the maxmemory-policy of the server:"+
			" make sure that it is noeviction or begins with volatile-, or rows will vanish when memory is full")
	}
	return reply, nil
}

// noClaim returns the error of a claim that was not done, for the reason verdict.
func (r *reader) noClaim(verdict string, c *lease.Claim, sent *stamp) error {
	var refusal error // that nothing was claimed
	switch verdict {
	case "held":
		worker := r.number()
		if r.err == nil {
			r.err = fmt.Errorf("this claim was done before, of worker %d: claim with a fresh token", worker)
		}
	case "none":
		e := &lease.NoFreeWorkerError{Namespace: c.Space.Namespace, Datacenter: c.Space.Datacenter, Rows: int(r.number())}
		earliest, now := lease.Millis(r.number()), lease.Millis(r.number())
		e.Ahead = r.numbers()
		if e.Rows > 0 {
			e.Earliest = earliest.Time()
			e.Wait = max(0, earliest-now).Duration()
		}
		refusal = e
	case "layout":
		refusal = &lease.LayoutError{Namespace: c.Space.Namespace, Stored: r.text(), Own: c.Space.Layout}
	case "skew":
		now, waited := lease.Millis(r.number()), lease.Millis(r.number())
		late := *c
		late.Now += waited
		if refusal = late.Check(now); refusal == nil {
			r.fail()
		}
	case "evicts":
		if policy := r.text(); r.err == nil {
			return lease.Permanent(fmt.Errorf("redislease: claim: %w: its maxmemory-policy is %q: want noeviction or volatile-…", ErrEvicts, policy))
		}
	default:
		return r.other(verdict)
	}
	if refusal != nil && r.err == nil {
		return sent.refused("claim", refusal)
	}
	return r.failed()
}

// damaged is the reason of a lease whose row is not one.
const damaged lease.Reason = "its row holds what package redislease does not write"

// Renew raises the limit of a row, in one script. Besides the errors of [lease.Store]
// it returns one that matches [ErrReadOnly] or [ErrDamaged], having written nothing, or
// a *lease.ValueError. A row that is damaged is lost as well: the lease takes another.
func (s *Store) Renew(ctx context.Context, r lease.Renewal) (lease.Reply, error) {
	sent := &stamp{read: time.Now()}
	if err := check("Renewal", r.Space, []token{{"Nonce", r.Nonce}},
		number{"Worker", r.Worker}, number{"Epoch", r.Epoch}, number{"Next", int64(r.Next)}, number{"Until", int64(r.Until)},
		number{"Window", int64(r.Window)}, number{"Now", int64(r.Now)}, number{"Skew", int64(r.Skew)}, number{"Guard", int64(r.Guard)},
	); err != nil {
		return lease.Reply{}, err
	}
	args := []any{
		r.Worker, r.Epoch, r.Owner, r.Nonce, int64(r.Next), int64(r.Until), int64(r.Window),
		int64(r.Now), int64(r.Skew), int64(r.Guard), int64(maxAhead), sent,
	}
	answer, err := s.ask(ctx, "renew", renewScript, r.Space, sent, appendTexts(args, r.Known))
	if err != nil {
		return lease.Reply{}, err
	}
	verdict := answer.text()
	if reason, lost := reasons[verdict]; lost {
		return lease.Reply{}, sent.refused("renew", r.Lost(reason))
	}
	if verdict != "done" {
		err := answer.other(verdict)
		if verdict == "damaged" && errors.Is(err, ErrDamaged) {
			err = sent.refused("renew", fmt.Errorf("%w: %w", r.Lost(damaged), err))
		}
		return lease.Reply{}, err
	}
	reply := answer.reply()
	if row := reply.Row; row.Worker != r.Worker || row.Epoch != r.Epoch || row.Owner != r.Owner || row.Nonce != r.Nonce {
		answer.fail()
	}
	if answer.err != nil {
		return lease.Reply{}, answer.failed()
	}
	return reply, nil
}

// Release gives a row back, in one script. Besides the errors of [lease.Store] it
// returns one that matches [ErrReadOnly] or [ErrDamaged], having written nothing, or a
// *lease.ValueError.
func (s *Store) Release(ctx context.Context, r lease.Release) error {
	sent := &stamp{read: time.Now()}
	if err := check("Release", r.Space, []token{{"Nonce", r.Nonce}},
		number{"Worker", r.Worker}, number{"Epoch", r.Epoch}, number{"End", int64(r.End)},
	); err != nil {
		return err
	}
	args := []any{r.Worker, r.Epoch, r.Owner, r.Nonce, int64(r.End), sent}
	answer, err := s.ask(ctx, "release", releaseScript, r.Space, sent, appendTexts(args, r.Known))
	if err != nil {
		return err
	}
	verdict := answer.text()
	if verdict == "done" {
		return nil
	}
	if reason, lost := reasons[verdict]; lost {
		return sent.refused("release", r.Lost(reason))
	}
	return answer.other(verdict)
}

// Fence ends all leases of a space and raises its limits, in one script. Besides the
// errors of [lease.Store] it returns one that matches [ErrReadOnly] or [ErrDamaged],
// or a *lease.ValueError.
func (s *Store) Fence(ctx context.Context, f lease.Fencing) error {
	sent := &stamp{read: time.Now()}
	if err := check("Fencing", f.Space, []token{{"Nonce", f.Nonce}}, number{"Until", int64(f.Until)}); err != nil {
		return err
	}
	args := []any{f.Space.Layout, f.Space.Workers, f.Space.Datacenter, f.Nonce, int64(f.Until), sent}
	answer, err := s.ask(ctx, "fence", fenceScript, f.Space, sent, args)
	if err != nil {
		return err
	}
	switch verdict := answer.text(); verdict {
	case "done":
		return nil
	case "layout":
		stored := answer.text()
		if answer.err == nil {
			return &lease.LayoutError{Namespace: f.Space.Namespace, Stored: stored, Own: f.Space.Layout}
		}
	default:
		return answer.other(verdict)
	}
	return answer.failed()
}

// reasons has the words of renew.lua and release.lua.
var reasons = map[string]lease.Reason{
	"taken":  lease.TakenOver,
	"copied": lease.Copied,
	"gone":   lease.Gone,
	"lapsed": lease.Lapsed,
}

// Rows lists the rows of a space, none if it was never claimed in. A replica may
// answer, with rows that are not the newest. It returns an error that matches
// [ErrDamaged] for a row that this package has not written.
func (s *Store) Rows(ctx context.Context, space lease.Space) ([]lease.Row, lease.Millis, error) {
	if err := space.Check(); err != nil {
		return nil, 0, err
	}
	r, err := s.ask(ctx, "rows", rowsScript, space, &stamp{}, nil)
	if err != nil {
		return nil, 0, err
	}
	now := lease.Millis(r.number())
	r.fields, _ = r.next().([]any)
	rows := make([]lease.Row, 0, len(r.fields)/2)
	for len(r.fields) > 0 && r.err == nil {
		name, text := r.text(), r.text()
		worker, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			r.err = fmt.Errorf("%w: a row is called %q: want the number of a worker", ErrDamaged, cut(name))
		}
		row, _, err := parseRow(worker, text)
		if err != nil && r.err == nil {
			r.err = err
		}
		rows = append(rows, row)
	}
	if r.err != nil {
		return nil, 0, r.failed()
	}
	slices.SortFunc(rows, func(a, b lease.Row) int { return int(a.Worker - b.Worker) })
	return rows, now, nil
}

// keys returns the names of all keys that an operation on a space touches. A cluster
// chooses the server by the namespace in braces. The layout is one for all datacenters
// of a namespace, so they share a server.
func (s *Store) keys(space lease.Space) []string {
	settings := s.prefix + ":{" + space.Namespace + "}"
	return []string{settings, settings + ":" + strconv.FormatInt(space.Datacenter, 10)}
}

// maxAhead is how far a limit may be beyond clock and window: see [lease.Renewal].
const maxAhead = lease.Millis(time.Hour / time.Millisecond)

// probes is how many random rows a claim looks at before it looks at all. With a
// quarter of the rows free, one claim in 10,000 needs all.
const probes = 32

// claimArgs returns the arguments of claim.lua. The random numbers are made here,
// because Lua's generator begins each script alike. They are made from the claim's
// token: one that is sent again, by whomever, looks at the same rows, and finds itself.
func claimArgs(c *lease.Claim, sent *stamp) []any {
	random := c.Random()
	args := []any{
		c.Space.Layout, c.Space.Workers, c.Space.Datacenter, c.Owner, c.Nonce,
		int64(c.Window), int64(c.Now), int64(c.Skew), int64(c.Guard), int64(maxAhead),
		sent, random.Int64N(1 << 40), c.Holder, 0,
	}
	count := len(args) - 1 // where the number of probes goes
	if c.Only == nil {
		for range probes {
			args = append(args, random.Int64N(c.Space.Workers))
		}
		args[count] = probes
		return append(args, "all")
	}
	only := slices.DeleteFunc(slices.Clone(c.Only), func(worker int64) bool {
		return worker < 0 || worker >= c.Space.Workers
	})
	slices.Sort(only)
	only = slices.Compact(only)
	if len(only) > probes {
		for range probes {
			args = append(args, only[random.IntN(len(only))])
		}
		args[count] = probes
	}
	args = append(args, "only")
	for _, worker := range only {
		args = append(args, worker)
	}
	return args
}

func appendTexts(args []any, texts []string) []any {
	for _, text := range texts {
		args = append(args, text)
	}
	return args
}

func cut(text string) string {
	const enough = 64
	if len(text) > enough {
		return strings.ToValidUTF8(text[:enough], "") + "…"
	}
	return text
}
