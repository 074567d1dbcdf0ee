package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

// A leasePlace is where a test of its own keeps leases.
type leasePlace struct {
	url, table string
	names      func(t *testing.T) []string // of the tables, files or keys that are there
}

// leasePlaces are the kinds of stores, each with a function that makes an empty place.
var leasePlaces = map[string]func(*testing.T) leasePlace{
	"Redis": func(t *testing.T) leasePlace {
		client := redis.NewClient(&redis.Options{Addr: servertest.Redis(t)})
		prefix := "test-" + rand.Text()
		names := func(t *testing.T) []string { // sorted, because KEYS has an order of the moment
			return slices.Sorted(slices.Values(client.Keys(context.Background(), prefix+"*").Val()))
		}
		t.Cleanup(func() {
			for _, key := range names(t) {
				client.Del(context.Background(), key)
			}
			_ = client.Close()
		})
		return leasePlace{"redis://" + servertest.Redis(t), prefix, names}
	},
	"etcd": func(t *testing.T) leasePlace {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{servertest.Etcd(t)}, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		prefix := "test-" + rand.Text()
		t.Cleanup(func() {
			_, _ = client.Delete(context.Background(), prefix, clientv3.WithPrefix())
			_ = client.Close()
		})
		return leasePlace{"etcd://" + servertest.Etcd(t), prefix, func(t *testing.T) (names []string) {
			found, err := client.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
			if err != nil {
				t.Fatal(err)
			}
			for _, kv := range found.Kvs {
				names = append(names, string(kv.Key))
			}
			return names
		}}
	},
	"ZooKeeper": func(t *testing.T) leasePlace {
		conn, _, err := zk.Connect([]string{servertest.ZooKeeper(t)}, time.Minute, zk.WithLogger(quiet{}))
		if err != nil {
			t.Fatal(err)
		}
		prefix := "/test-" + rand.Text()
		var names func(path string) []string
		names = func(path string) (all []string) {
			children, _, err := conn.Children(path)
			for _, child := range children {
				all = append(all, names(path+"/"+child)...)
			}
			if err == nil {
				all = append(all, path)
			}
			return all
		}
		t.Cleanup(func() {
			for _, path := range names(prefix) {
				_ = conn.Delete(path, -1)
			}
			conn.Close()
		})
		return leasePlace{"zookeeper://" + servertest.ZooKeeper(t), prefix, func(*testing.T) []string { return names(prefix) }}
	},
}

func init() {
	for kind, make := range databases {
		leasePlaces[kind] = func(t *testing.T) leasePlace {
			d := make(t)
			return leasePlace{d.url, "staff_leases", func(t *testing.T) []string {
				catalog := map[string]string{
					"SQLite":     "SELECT coalesce(group_concat(name), '') FROM sqlite_master",
					"PostgreSQL": "SELECT coalesce(string_agg(table_name, ','), '') FROM information_schema.tables WHERE table_schema = 'public'",
				}
				tables := d.text(t, cmp.Or(catalog[kind], "SELECT coalesce(group_concat(table_name), '') FROM information_schema.tables WHERE table_schema = database()"))
				return strings.FieldsFunc(tables, func(r rune) bool { return r == ',' })
			}}
		}
	}
}

// open returns the store as a program opens it.
func (p leasePlace) open(t *testing.T) *leases {
	t.Helper()
	o := &options{db: p.url, table: p.table}
	at, err := o.locate()
	if err != nil {
		t.Fatal(err)
	}
	l := &leases{location: at, close: func() error { return nil }}
	if err := l.connect(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.close() })
	if s, ok := l.leaseStore.(*sqllease.Store); ok {
		if err := s.CreateTables(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// on runs snowkey workers with the place in the environment.
func (p leasePlace) on(t *testing.T, line, stdin string) (stdout, stderr string, code int) {
	t.Helper()
	if p.table != "" {
		line = "-table " + p.table + " " + line
	}
	return snowkey(t, "export "+dbVariable+"='"+p.url+"'\nsnowkey workers "+line, stdin)
}

func onLeases(t *testing.T, test func(t *testing.T, p leasePlace)) {
	t.Helper()
	for kind, make := range leasePlaces {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, make(t))
		})
	}
}

// eight is a layout of eight workers.
var eight = core.Layout{Epoch: core.Default().Epoch, Unit: time.Millisecond, TimeBits: 41, DatacenterBits: 2, WorkerBits: 3, SequenceBits: 17}

// acquire returns a lease that renews its row as long as the test lasts.
func acquire(t *testing.T, store lease.Store, c lease.Config) *lease.Lease {
	t.Helper()
	c.Layout, c.Logger, c.MaxClockSkew = eight, silent, time.Minute // a busy machine stops a claim for seconds
	l, err := lease.Acquire(t.Context(), store, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

// hold takes a worker number as a process that has ended since: nothing renews or releases the row.
func hold(t *testing.T, store lease.Store, shop string, worker int64, holder string) {
	t.Helper()
	if _, err := claim(t, store, shop, worker, holder, 10*minute); err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, store lease.Store, shop string, worker int64, holder string, window leasestore.Millis) (from leasestore.Millis, err error) {
	t.Helper()
	c := leasestore.Claim{
		Space: spaceOf(store, shop), Only: []int64{worker}, Owner: rand.Text(), Nonce: rand.Text(), Holder: holder,
		Window: window, Now: leasestore.MillisOf(time.Now()), Skew: minute,
	}
	if store.LosesWrites() {
		c.Guard = 500
	}
	reply, err := store.Claim(t.Context(), c)
	return c.From(reply), err
}

const minute leasestore.Millis = 60_000

// namespace returns one of the test's own: a process remembers the times of its IDs.
func namespace(t *testing.T) string { return "t" + rand.Text()[:10] }

// A shownWorker is a line of JSON.
type shownWorker struct {
	Namespace, State, Holder, From, Until, In string
	Datacenter, Worker, Fence                 int64
}

func TestWorkersShowsEachNumberAsTheStoreHasIt(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		hold(t, store, shop, 6, `web 7 "a"`)
		_ = acquire(t, store, lease.Config{Namespace: shop, Workers: []int64{5}}).Close(t.Context())
		if err := lease.Retire(t.Context(), store, lease.Config{Namespace: shop, Layout: eight}, 2, "by hand"); err != nil {
			t.Fatal(err)
		}
		_ = acquire(t, store, lease.Config{Namespace: shop, Datacenter: 3, Workers: []int64{1}, Holder: "other"})

		out, bad, code := p.on(t, "-json", "")
		if code != 0 || strings.Count(out, "\n") != 4 {
			t.Fatalf("workers -json = %s, %s, %d; want the four workers that anybody has had", out, bad, code)
		}
		got := map[string]shownWorker{}
		for line := range strings.Lines(out) {
			var w shownWorker
			if err := json.Unmarshal([]byte(line), &w); err != nil {
				t.Fatal(err)
			}
			got[fmt.Sprint(w.Datacenter, w.Worker)] = w
		}
		rows := rowsOf(t, store, shop)
		for at, want := range map[string]shownWorker{
			"0 6": {Namespace: shop, Worker: 6, State: "held", Holder: `web 7 "a"`, Until: stamp(rows[6].Until.Time()), Fence: 1},
			"0 0": {}, // unused, and left out
			"3 6": {},
		} {
			if want.In = got[at].In; got[at] != want {
				t.Errorf("worker %s is %+v; want %+v", at, got[at], want)
			}
		}
		if w := got["0 5"]; w.State != "free" && w.State != "reserved" || w.Holder != "" || w.Fence != 2 {
			t.Errorf("the worker that was given back is %+v", w)
		}
		if w := got["0 2"]; w.State != "retired" || w.From == "" || w.Until != "" || !strings.HasPrefix(w.Holder, "retired: by hand, by ") {
			t.Errorf("the retired worker is %+v", w)
		}

		out, bad, code = p.on(t, "", "")
		if strings.HasPrefix(p.url, "postgres") && !strings.Contains(out, "\ntable public."+cmp.Or(p.table, sqllease.DefaultTable)+"\n") {
			t.Errorf("workers = %s; want the full name of the table", out)
		}
		for _, want := range []string{"namespace " + shop + ", datacenter 0, 8 workers: 1 held", " 1 retired 5 unused\n", got["0 2"].From, `web 7 "a"`, "other"} {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("workers = %s, %s, %d; want %s", out, bad, code, want)
			}
		}
		if out, bad, code := p.on(t, "7", ""); code != 0 || strings.Count(out, "unused") != 2 || strings.Contains(out, "other\n") {
			t.Errorf("workers 7 = %s, %s, %d; want it of both datacenters", out, bad, code)
		}
		for _, line := range []string{"8", "-namespace unknown", "retire 8 -reason x -yes", "-namespace unknown -yes free 6", "-datacenter 1 -yes free 6", "history 8"} {
			if out, bad, code := p.on(t, line, ""); code != 2 || out != "" || !strings.Contains(bad, shop) {
				t.Errorf("workers %s = %s, %s, %d; want what there is, and 2", line, out, bad, code)
			}
		}
		if now := rowsOf(t, store, shop); !slices.Equal(now, rows) {
			t.Errorf("showing them has changed the rows\n%+v\nto\n%+v", rows, now)
		}
	})
}

func TestWorkersSaysThatNoLeasesAreThereAndMakesNothing(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		for _, line := range []string{"", "-json", "7", "history 7", "-yes free 7", "-yes retire 7 -reason x", "-yes reinstate 7"} {
			if out, bad, code := p.on(t, line, ""); code != 1 || out != "" || !strings.Contains(bad, "are not there") && !strings.Contains(bad, "no leases are there") {
				t.Errorf("workers %s = %s, %s, %d; want that there are none", line, out, bad, code)
			}
			if names := p.names(t); len(names) > 0 {
				t.Fatalf("workers %s has made %q", line, names)
			}
		}
		store := p.open(t)
		_ = acquire(t, store, lease.Config{Namespace: namespace(t)})
		before := p.names(t)
		if out, bad, code := p.on(t, "", ""); code != 0 || out == "" {
			t.Errorf("workers = %s, %s, %d", out, bad, code)
		}
		if after := p.names(t); fmt.Sprint(after) != fmt.Sprint(before) || len(before) == 0 {
			t.Errorf("listing has made of %q %q", before, after)
		}
	})
}

func TestBadInputOfWorkersReachesNoStore(t *testing.T) {
	for _, line := range []string{"x", "-1", "7 8", "retire", "retire x -reason y", "retire 7", "free", "free 99999", "reinstate", "history", "history 7 8", "-reason x free 7", "-above 12x free 7", "-above 12 retire 7 -reason x",
		`-namespace 'a"b' 7`, "-namespace a/b", "-reason 'ä' retire 7", `-table 'a"b'`, "-table 'a;b'"} {
		for _, url := range []string{"sqlite:/nowhere", "postgres://127.0.0.1:1/x", "mysql://127.0.0.1:1/x"} {
			if out, bad, code := snowkey(t, "snowkey workers -yes -db "+url+" "+line, ""); code != 2 || out != "" || strings.Contains(bad, "refused") || strings.Contains(bad, "no such file") {
				t.Errorf("workers %s = %s, %s, %d; want 2", line, out, bad, code)
			}
		}
	}
	for _, url := range []string{"oracle://x", "file:/tmp", "redis://x?nonsense=1", "''", "7"} {
		if out, bad, code := snowkey(t, "snowkey workers -db "+url, ""); code != 2 || out != "" || bad == "" {
			t.Errorf("workers -db %s = %s, %s, %d; want 2", url, out, bad, code)
		}
	}
}

func TestNoOutputOfWorkersHasAPassword(t *testing.T) {
	for _, url := range []string{"redis://me:PASS@127.0.0.1:1", "redis://me:PASS@127.0.0.1:1?addr=127.0.0.1:2", "redis://me:PASS@127.0.0.1:1/x", "redis://:PASS@127.0.0.1:1?x=PASS", "rediss://me:PASS@" + servertest.Redis(t),
		"redis://me:PASS@" + servertest.Redis(t), "etcd://me:PASS@" + servertest.Etcd(t), "postgres://me:PASS@127.0.0.1:1/x", "oracle://me:PASS@x", "file://me:PASS@x/y"} {
		for _, password := range []string{"geheim", "ge%2Fhe%20im%25"} {
			plain := strings.NewReplacer("%2F", "/", "%20", " ", "%25", "%").Replace(password)
			out, bad, code := snowkey(t, "snowkey workers -db '"+strings.ReplaceAll(url, "PASS", password)+"'", "")
			if code == 0 || bad == "" || strings.Contains(out+bad, password) || strings.Contains(out+bad, plain) {
				t.Errorf("workers -db %s = %s, %s, %d; want an error without the password", url, out, bad, code)
			}
		}
	}
}

func TestRetireAndReinstateAskAndChangeOneNumber(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		hold(t, store, shop, 6, "web")
		rows := func() []leasestore.Row { return rowsOf(t, store, shop) }
		for answer, want := range map[string]int{"": 2, "n\n": 1} {
			if out, bad, code := p.on(t, "retire 2 -reason 'by hand'", answer); code != want || !strings.Contains(bad, "nothing was changed") || !strings.Contains(out, "2       unused ") {
				t.Errorf("retire with the answer %q = %s, %s, %d; want the row, and %d", answer, out, bad, code, want)
			}
		}
		if rows()[2] != (leasestore.Row{Worker: 2}) {
			t.Error("the answer no has retired the number")
		}
		if out, bad, code := p.on(t, "retire 2 -reason 'by hand'", "y\n"); code != 0 || !strings.HasSuffix(out, "retire: done\n") {
			t.Errorf("retire = %s, %s, %d", out, bad, code)
		}
		row := rows()[2]
		if !row.Retired() || !strings.HasPrefix(row.Holder, "retired: by hand, by ") {
			t.Errorf("the retired row is %+v", row)
		}
		if out, bad, code := p.on(t, "retire 2 -reason again", ""); code != 0 || rows()[2] != row {
			t.Errorf("retire again = %s, %s, %d, and %+v; want no question and no change", out, bad, code, rows()[2])
		}
		if out, bad, code := p.on(t, "-yes retire 6 -reason x", ""); code != 1 || !strings.Contains(bad, "was used before") || rows()[6].Retired() {
			t.Errorf("retire of a held number = %s, %s, %d; want it refused", out, bad, code)
		}
		for _, line := range []string{"-yes free 2", "-yes reinstate 6", "-yes reinstate 1"} {
			if out, bad, code := p.on(t, line, ""); code != 1 || rows()[2] != row {
				t.Errorf("workers %s = %s, %s, %d; want it refused", line, out, bad, code)
			}
		}
		if _, bad, code := p.on(t, "reinstate 2", "n\n"); code != 1 || !strings.Contains(bad, "cannot be retired again") || rows()[2] != row {
			t.Errorf("reinstate with the answer no = %s, %d, and %+v", bad, code, rows()[2])
		}
		before := time.Now()
		if out, bad, code := p.on(t, "reinstate 2", "y\n"); code != 0 || rows()[2].Retired() {
			t.Errorf("reinstate = %s, %s, %d, and %+v", out, bad, code, rows()[2])
		}
		if ahead := rows()[2].Until.Time().Sub(before); ahead < time.Hour+9*time.Minute {
			t.Errorf("the number is free in %s; want an hour and ten minutes", ahead)
		}
	})
}

// rowsOf returns the rows of the eight workers.
func rowsOf(t *testing.T, store leaseStore, shop string) []leasestore.Row {
	t.Helper()
	all, _, err := store.Rows(t.Context(), spaceOf(store, shop))
	if err != nil || len(all) != 8 {
		t.Fatal(all, err)
	}
	return all
}

func spaceOf(store lease.Store, name string) leasestore.Space {
	s := leasestore.Space{Namespace: name, Workers: 8, Layout: lease.Fingerprint(eight)}
	if store.LosesWrites() {
		s.Layout += leasestore.GuardMark
	}
	return s
}

// farAhead reserves a row for days, as a process whose clock is wrong does.
func (p leasePlace) farAhead(t *testing.T, store *leases, shop string, worker int64) (row leasestore.Row) {
	t.Helper()
	ahead := func() time.Time { return time.Now().Add(300 * time.Hour) }
	s := spaceOf(store, shop)
	over, ok := store.leaseStore.(interface{ Register() leasestore.Register })
	if !ok {
		rows, now, err := store.Rows(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Renew(t.Context(), leasestore.Renewal{Space: s, Worker: worker, Epoch: rows[worker].Epoch, Owner: rows[worker].Owner, Known: []string{rows[worker].Nonce}, Nonce: rand.Text(),
			Until: leasestore.MillisOf(ahead()), Window: 10_000, Now: now, Skew: minute})
		if err != nil {
			t.Fatal(err)
		}
		rows, _, _ = store.Rows(t.Context(), s)
		return rows[worker]
	}
	v, err := over.Register().Read(t.Context(), s, []int64{worker})
	if err != nil {
		t.Fatal(err)
	}
	row = v.Rows[0].Row
	row.Until, row.Renewals, row.Nonce = leasestore.MillisOf(ahead()), row.Renewals+1, rand.Text()
	if done, err := over.Register().Swap(t.Context(), s, v.Rows[0], row); err != nil || !done {
		t.Fatal(done, err)
	}
	return row
}

func TestFreeNeverLowersALimitWithoutAbove(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		hold(t, store, shop, 6, "web")
		row := func() leasestore.Row { return rowsOf(t, store, shop)[6] }
		was := row()
		if _, bad, code := p.on(t, "free 6", "n\n"); code != 1 || row().Owner != was.Owner || !strings.Contains(bad, "If that process lives") {
			t.Errorf("free with the answer no = %s, %d, and %+v", bad, code, row())
		}
		if out, bad, code := p.on(t, "free 1", ""); code != 0 || !strings.HasSuffix(out, "nothing to do\n") {
			t.Errorf("free of an unused number = %s, %s, %d; want nothing to do", out, bad, code)
		}
		was = p.farAhead(t, store, shop, 6)
		if out, bad, code := p.on(t, "free 6", "y\n"); code != 0 {
			t.Errorf("free = %s, %s, %d", out, bad, code)
		}
		if got := row(); got.Owner != "" || got.Epoch != was.Epoch+1 || got.Until != was.Until {
			t.Errorf("the row that was freed is %+v; want nobody's, and reserved as before, %+v", got, was)
		}
		if _, bad, code := p.on(t, "-yes free 6", ""); code != 1 || !strings.Contains(bad, "wait until then") || row().Until != was.Until {
			t.Errorf("free of a reserved number = %s, %d; want that one has to wait", bad, code)
		}
	})
}

func TestFreeAboveReservesUntilAfterThatKey(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		_ = acquire(t, store, lease.Config{Namespace: shop, Workers: []int64{6}, Holder: "web"}).Close(t.Context())
		row := func() leasestore.Row { return rowsOf(t, store, shop)[6] }
		key := func(at time.Time) types.Snowflake { return eight.Max(at) }
		soon := fmt.Sprintf("-above %d free 6", key(time.Now()))
		if _, bad, code := p.on(t, soon, ""); code != 0 && !strings.Contains(bad, "wait") {
			t.Errorf("free -above of a number that is soon free = %s, %d; want nothing to do, or to wait", bad, code)
		}
		hold(t, store, shop, 6, "web")
		was := p.farAhead(t, store, shop, 6)
		if _, bad, code := p.on(t, fmt.Sprintf("-yes -above %d free 6", key(time.Now().Add(301*time.Hour))), ""); code != 1 || !strings.Contains(bad, "wait") || row() != was {
			t.Errorf("free above a key after the limit = %s, %d, and %+v; want it refused", bad, code, row())
		}
		if _, bad, code := p.on(t, soon, "n\n"); code != 1 || row() != was || !strings.Contains(bad, "every process that has ever had the number has ended, paused and copied ones too") {
			t.Errorf("free -above with the answer no = %s, %d, and %+v", bad, code, row())
		}
		last := time.Now().Add(100 * time.Hour).Truncate(time.Millisecond)
		if _, bad, code := p.on(t, fmt.Sprintf("-above %d free 6", key(last)), "y\n"); code != 0 {
			t.Errorf("free -above = %s, %d", bad, code)
		}
		if got := row(); got.Owner != "" || !got.Until.Time().After(last) || got.Until.Time().After(last.Add(5*time.Millisecond)) || got.Epoch != was.Epoch+1 {
			t.Errorf("the row above a key of %s is %+v", last, got)
		}
		before := time.Now()
		if _, bad, code := p.on(t, "-yes "+soon, ""); code != 0 {
			t.Errorf("free -above a key of the past = %s, %d", bad, code)
		}
		if got := row().Until.Time(); got.Before(before.Add(9*time.Minute)) || got.After(time.Now().Add(11*time.Minute)) {
			t.Errorf("the row above a key of the past is reserved until %s; want ten minutes from now", got)
		}
	})
}

// A holder renews while the operator reads the question.
func TestFreeIsRefusedIfTheHolderRenewsMeanwhile(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		hold(t, store, shop, 6, "web")
		p.farAhead(t, store, shop, 6)
		line := fmt.Sprintf("free 6 -above %d", eight.Max(time.Now()))
		if p.table != "" {
			line += " -table " + p.table
		}
		cmd := shell(t, "export "+dbVariable+"='"+p.url+"'\nexec snowkey workers "+line)
		answer, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		bad, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		question, err := bufio.NewReader(bad).ReadString(']')
		if err != nil {
			t.Fatal(question, err)
		}
		was := p.farAhead(t, store, shop, 6)
		_, _ = io.WriteString(answer, "y\n")
		rest, _ := io.ReadAll(bad)
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !bytes.Contains(rest, []byte("nothing was changed")) {
			t.Errorf("free of a row that was renewed = %s, %d; want it refused", rest, code)
		}
		if row := rowsOf(t, store, shop)[6]; row != was {
			t.Errorf("the row is %+v; want it as its holder has renewed it, %+v", row, was)
		}
	})
}

// Two processes of a host have one name, and the number of the wrong one is easily named.
func TestFreeOfANumberWhoseHolderLivesNeedsLive(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		before := time.Now()
		held := acquire(t, store, lease.Config{Namespace: shop, Workers: []int64{6}, Window: 10 * time.Second})
		host, _ := os.Hostname()
		name := fmt.Sprintf("%.40s pid %d", host, os.Getpid())
		out, bad, code := p.on(t, "-json 6", "")
		var w struct {
			Renewed time.Time
			Holder  string
		}
		if err := json.Unmarshal([]byte(out), &w); err != nil || code != 0 || w.Renewed.Before(before.Truncate(time.Millisecond)) || w.Renewed.After(time.Now()) || w.Holder != name {
			t.Errorf("workers 6 = %s, %s, %d, %v; want %q, and that it was renewed just now", out, bad, code, err, name)
		}
		for _, line := range []string{"-yes free 6", fmt.Sprintf("-yes -above %d free 6", eight.Max(time.Now()))} {
			out, bad, code = p.on(t, line, "")
			if row := rowsOf(t, store, shop)[6]; code != 1 || row.Owner == "" || !strings.Contains(bad, "so that its process lives") || !strings.Contains(bad, name) {
				t.Errorf("%s = %s, %s, %d, and %+v; want it refused, with %q", line, out, bad, code, row, name)
			}
		}
		for freed := false; !freed; { // not while the row that was seen is renewed
			out, bad, code = p.on(t, "-yes -live free 6", "")
			if freed = strings.HasSuffix(out, "free: done\n"); code != 0 && !strings.Contains(bad, "nothing was changed") {
				t.Fatalf("free -live = %s, %s, %d", out, bad, code)
			}
		}
		_ = held.Close(t.Context())
	})
}

// Programs make keys all the time. Freeing takes their numbers away although they live, which is
// the worst mistake: they go on with other numbers, and repeat no key.
func TestNoKeyRepeatsWhileNumbersOfLiveHoldersAreFreed(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		const programs = 3
		var wait sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		keys := make([]map[types.Snowflake]bool, programs)
		made := make([]atomic.Int64, programs)
		held := make([]*lease.Lease, programs)
		more := func() { // each program makes some
			for i := range made {
				for want := made[i].Load() + 100; made[i].Load() < want; {
					time.Sleep(10 * time.Millisecond) // ends with the test
				}
			}
		}
		for i := range programs {
			c := lease.Config{Namespace: shop, Holder: fmt.Sprint("program ", i)}
			if !store.LosesWrites() {
				c.Window = 3 * time.Second
			}
			held[i] = acquire(t, p.open(t), c)
			gen, err := core.New(core.Config{Layout: eight, Worker: held[i]})
			if err != nil {
				t.Fatal(err)
			}
			keys[i] = map[types.Snowflake]bool{}
			wait.Go(func() {
				for ctx.Err() == nil {
					id, err := gen.Next(ctx)
					if err == nil {
						keys[i][id] = true
						made[i].Add(1)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		more()
		// Another takes each freed number as soon as the store allows it.
		var from [programs]leasestore.Millis
		var number [programs]int64
		for i, l := range held {
			number[i] = l.Status().Worker
			err := leasestore.ErrNoFreeWorker
			for freed := false; errors.Is(err, leasestore.ErrNoFreeWorker); {
				if !freed { // not while the row that was seen is renewed, or has just ended
					out, bad, code := p.on(t, fmt.Sprintf("-yes -live free %d", number[i]), "")
					if freed = strings.HasSuffix(out, "free: done\n"); code != 0 && !strings.Contains(bad, "nothing was changed") {
						t.Fatalf("free of the number of program %d = %s, %s, %d", i, out, bad, code)
					}
				}
				from[i], err = claim(t, store, shop, number[i], "next", 10_000)
				if errors.Is(err, leasestore.ErrNoFreeWorker) { // or a program that has lost its own was first
					freed = freed && rowsOf(t, store, shop)[number[i]].Owner == ""
					time.Sleep(10 * time.Millisecond) // ends with the test
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range held {
			for l.Status().Losses == 0 || !l.Status().Held {
				time.Sleep(10 * time.Millisecond) // ends with the test
			}
		}
		more()
		stop()
		wait.Wait()
		all := map[types.Snowflake]bool{}
		for i, some := range keys {
			for id := range some {
				if parts := eight.Parts(id); all[id] || parts.Worker == number[i] && !parts.Time.Before(from[i].Time()) {
					t.Fatalf("%d can be made twice: the next holder of number %d begins at %s", id, number[i], from[i].Time())
				}
				all[id] = true
			}
		}
	})
}

func TestHistoryShowsWhoHadANumber(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		_ = acquire(t, store, lease.Config{Namespace: shop, Workers: []int64{6}, Holder: "first"}).Close(t.Context())
		_ = acquire(t, store, lease.Config{Namespace: shop, Workers: []int64{6}, Holder: "second", AcquireWait: -1})
		out, bad, code := p.on(t, "history 6", "")
		lines := strings.Split(out, "\n")
		if code != 0 || len(lines) != 5 || lines[0] != "worker 6 of namespace "+shop+", datacenter 0" || !strings.HasSuffix(lines[2], "  1      first") || !strings.HasSuffix(lines[3], "  3      second") {
			t.Errorf("history 6 = %s, %s, %d; want the first and the second holder", out, bad, code)
		}
		if out, bad, code := p.on(t, "history 6 -json", ""); code != 0 || !strings.Contains(out, `"fence":1,"holder":"first"}`) {
			t.Errorf("history 6 -json = %s, %s, %d", out, bad, code)
		}
		if out, bad, code := p.on(t, "history 5", ""); code != 0 || strings.Count(out, "\n") != 2 {
			t.Errorf("history of an unused number = %s, %s, %d; want nobody", out, bad, code)
		}
	})
}

// The steps of docs/operations.md, "A row far ahead". The clock of the host was a year ahead, and
// one of two processes has made a key that was stored.
func TestANumberThatAWrongClockHasReservedIsFreedByItsGreatestKey(t *testing.T) {
	p, shop := leasePlaces["SQLite"](t), namespace(t)
	store := p.open(t)
	for _, number := range []int64{1, 2} {
		_ = acquire(t, store, lease.Config{Namespace: shop, Workers: []int64{number}})
		p.farAhead(t, store, shop, number)
	}
	stored := eight.Max(time.Now().Add(200 * time.Hour)) // by number 1
	past := eight.Max(time.Now().Add(-time.Hour))
	for number, above := range map[string]types.Snowflake{"1": stored, "2": past} {
		if _, bad, code := p.on(t, fmt.Sprint("-yes free ", number, " -above ", int64(above)), ""); code != 0 {
			t.Fatalf("free %s = %s, %d", number, bad, code)
		}
	}
	config := lease.Config{Namespace: shop, Layout: eight, Workers: []int64{1, 2}, Logger: silent}
	if _, err := lease.Acquire(t.Context(), store, config); !errors.Is(err, lease.ErrNoFreeWorker) {
		t.Errorf("Acquire() = %v; want that no number is free for ten minutes", err)
	}
	rows, _, err := store.Rows(t.Context(), spaceOf(store, shop))
	if err != nil {
		t.Fatal(err)
	}
	if until := rows[2].Until.Time(); until.Before(time.Now().Add(9*time.Minute)) || until.After(time.Now().Add(11*time.Minute)) {
		t.Errorf("number 2 is free at %s; want in ten minutes", until)
	}
	if until := rows[1].Until.Time(); eight.Min(until) <= stored || until.After(time.Now().Add(201*time.Hour)) {
		t.Errorf("number 1 is free at %s; want after the time of its key, %d", until, stored)
	}
}

// Open keeps the leases beside the file.
func TestWorkersFindsTheLeasesBesideAFile(t *testing.T) {
	for _, name := range []string{"test.db", "a b%20#?.db"} {
		file := filepath.Join(t.TempDir(), name)
		for _, path := range []string{file, file + "-leases"} {
			db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			if path == file { // the database itself has none
				if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
					t.Fatal(err)
				}
				continue
			}
			store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: silent})
			if err == nil {
				err = store.CreateTables(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			acquire(t, store, lease.Config{Namespace: namespace(t), Workers: []int64{5}, Holder: "web"})
		}
		link := filepath.Join(t.TempDir(), "link.db") // Open follows it, as SQLite does
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, link} {
			u := &url.URL{Scheme: "sqlite", Path: path}
			p := leasePlace{url: strings.ReplaceAll(u.String(), "'", "%27")}
			for _, line := range []string{"", "history 5"} {
				if out, bad, code := p.on(t, line, ""); code != 0 || !strings.Contains(out, "web") {
					t.Errorf("workers %s of %s = %s, %s, %d; want the lease beside the database", line, path, out, bad, code)
				}
			}
			if out, bad, code := p.on(t, "-table snowkey_leases", ""); code != 1 || out != "" || !strings.Contains(bad, "no leases are there") || !strings.Contains(bad, "Config.LeaseFile") {
				t.Errorf("workers -table snowkey_leases of %s = %s, %s, %d; want that the database itself has none, and where they may be", path, out, bad, code)
			}
		}
	}
}

func TestFenceLetsNoNumberBeginBeforeAKey(t *testing.T) {
	onLeases(t, func(t *testing.T, p leasePlace) {
		store, shop := p.open(t), namespace(t)
		hold(t, store, shop, 6, "web")
		last := time.Now().Add(20 * time.Minute).Truncate(time.Millisecond)
		line := fmt.Sprintf("-above %d fence", eight.Max(last))
		for _, want := range []int{1, 0} {
			answer := []string{1: "n\n", 0: "y\n"}[want]
			_, bad, code := p.on(t, line, answer)
			if code != want || !strings.Contains(bad, "must all be stopped") {
				t.Errorf("fence with the answer %q = %s, %d", answer, bad, code)
			}
			for _, row := range rowsOf(t, store, shop) {
				if raised := row.Until.Time().Equal(last.Add(time.Second)) && row.Owner == ""; raised != (want == 0) {
					t.Errorf("the row after the answer %q is %+v", answer, row)
				}
			}
		}
		if _, bad, code := p.on(t, fmt.Sprintf("-yes -above %d fence", eight.Max(time.Now().Add(2*time.Hour))), ""); code == 0 || !strings.Contains(bad, "an hour and ten minutes") {
			t.Errorf("fence two hours ahead = %s, %d; want it refused", bad, code)
		}
	})
}

func TestCtrlCEndsWorkersAndChangesNothing(t *testing.T) {
	silentServer, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silentServer.Close() }()
	interrupt := func(line string, ready func(stderr *bufio.Reader)) {
		t.Helper()
		cmd := shell(t, "exec snowkey workers "+line)
		input, _ := cmd.StdinPipe()
		bad, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stderr := bufio.NewReader(bad)
		ready(stderr)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(stderr)
		_ = cmd.Wait()
		_ = input.Close()
		if code := cmd.ProcessState.ExitCode(); code != 130 || !bytes.Contains(rest, []byte("interrupted")) {
			t.Errorf("workers %s after Ctrl-C = %s, %d; want 130", line, rest, code)
		}
	}
	interrupt("-db etcd://"+silentServer.Addr().String(), func(*bufio.Reader) {
		if c, err := silentServer.Accept(); err == nil {
			t.Cleanup(func() { _ = c.Close() })
		}
	})
	p := leasePlaces["SQLite"](t)
	store, shop := p.open(t), namespace(t)
	hold(t, store, shop, 6, "web")
	interrupt("-db "+p.url+" -table "+p.table+" -reason x retire 2", func(stderr *bufio.Reader) {
		if question, err := stderr.ReadString(']'); err != nil {
			t.Error(question, err)
		}
	})
	if row := rowsOf(t, store, shop)[2]; row.Retired() {
		t.Errorf("after Ctrl-C the row is %+v", row)
	}
}
