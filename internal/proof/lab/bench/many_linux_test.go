package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/etcdlease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

var (
	manyClients     = flag.Int("many.clients", 10_000, "BenchmarkMany: leases")
	manyProcesses   = flag.Int("many.processes", 4, "BenchmarkMany: processes that share the leases")
	manyConnections = flag.Int("many.connections", 20, "BenchmarkMany: connections of each process to a SQL database")
	manyWindow      = flag.Duration("many.window", 0, "BenchmarkMany: Config.Window of each lease")
	manyOver        = flag.Duration("many.over", 0, "BenchmarkMany: over how long the leases start; 0: all at once")
	manyFor         = flag.Duration("many.for", 2*time.Minute, "BenchmarkMany: how long renewals are counted")
)

// manyWorkerBits give a space of 32,768 worker numbers.
const manyWorkerBits = 15

// BenchmarkMany starts leases of one namespace, all at once unless -many.over is set, counts what their renewals cost, kills
// all processes and starts them again. Each lease has a Store of its own, as in a process of its
// own, but those of a process share connections, as behind a pooler.
func BenchmarkMany(b *testing.B) {
	for name, start := range manyServers {
		b.Run(name, func(b *testing.B) {
			server := start(b)
			c := crowd{
				Server: name, Address: server.address,
				Clients: *manyClients / *manyProcesses, Connections: *manyConnections, Window: *manyWindow, Over: *manyOver,
			}
			if testing.Short() {
				c.Clients = 20
			}
			first := c.make(b)
			b.ReportMetric(first.Seconds(), "make-s")

			cpu := server.cpu()
			processes := c.start(b, *manyProcesses)
			held := processes.await(b)
			held.report(b, "start-", server.cpu()-cpu)

			processes.ask(b) // what was counted until here is of the start
			processes.await(b)
			time.Sleep(*manyFor / 4) // the first renewals follow the start
			processes.ask(b)
			processes.await(b)
			before, cpu, own, began := server.counters(b), server.cpu(), processes.cpu(), time.Now()
			time.Sleep(*manyFor)
			processes.ask(b)
			renewed, took := processes.await(b), time.Since(began)
			after := server.counters(b)
			renewed.report(b, "", server.cpu()-cpu)
			b.ReportMetric((processes.cpu() - own).Seconds(), "own-cpu-s")
			b.ReportMetric(took.Seconds(), "s")
			for counter, value := range after {
				b.ReportMetric((value-before[counter])/took.Seconds(), counter+"/s")
			}

			processes.kill(b)
			cpu = server.cpu()
			processes = c.start(b, *manyProcesses)
			processes.await(b).report(b, "restart-", server.cpu()-cpu)
			processes.kill(b)
		})
	}
}

// A manyServer is one that this benchmark has started.
type manyServer struct {
	address  string
	process  int
	counters func(testing.TB) map[string]float64 // they grow
}

func (s *manyServer) cpu() time.Duration { return processCPU(s.process) }

// processCPU returns what a process, its children and all their threads have used. A child
// that has ended is left out.
func processCPU(process int) (sum time.Duration) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", process))
	for _, task := range tasks {
		text, _ := os.ReadFile(filepath.Join(task, "schedstat"))
		running, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(running, 10, 64)
		sum += time.Duration(ns)
		children, _ := os.ReadFile(filepath.Join(task, "children"))
		for child := range strings.FieldsSeq(string(children)) {
			id, _ := strconv.Atoi(child)
			sum += processCPU(id)
		}
	}
	return sum
}

// answers waits until a server answers, for half a minute.
func answers(ping func() error) (err error) {
	for range 600 {
		if err = ping(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

var manyServers = map[string]func(*testing.B) *manyServer{
	"PostgreSQL": func(b *testing.B) *manyServer {
		address, _ := servertest.StartPostgreSQL(b, "fsync=on", "shared_buffers=128MB")
		db := openMany(b, "pgx", address)
		var folder string
		scanMany(b, db, "SHOW data_directory", &folder)
		return &manyServer{address, pidIn(b, filepath.Join(folder, "postmaster.pid")), func(t testing.TB) map[string]float64 {
			var transactions, wal, syncs, pages float64
			scanMany(t, db, "SELECT sum(xact_commit + xact_rollback), sum(blks_hit + blks_read) FROM pg_stat_database", &transactions, &pages)
			scanMany(t, db, "SELECT wal_bytes, wal_sync FROM pg_stat_wal", &wal, &syncs)
			var updates, hot float64
			scanMany(t, db, "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'snowkey_leases'", &updates, &hot)
			return map[string]float64{"transactions": transactions, "wal-KB": wal / 1e3, "syncs": syncs, "pages": pages, "updates": updates, "hot-updates": hot}
		}}
	},
	"MariaDB": func(b *testing.B) *manyServer {
		address, _ := servertest.StartMariaDB(b, "--max-connections=200", "--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=128M", "--innodb-log-file-size=96M")
		db := openMany(b, "mysql", address)
		var file string
		scanMany(b, db, "SELECT @@pid_file", &file)
		return &manyServer{address, pidIn(b, file), func(t testing.TB) map[string]float64 {
			all := map[string]float64{}
			for name, variable := range map[string]string{"statements": "Questions", "syncs": "Innodb_data_fsyncs", "rows-read": "Rows_read"} {
				var value float64
				scanMany(t, db, "SHOW GLOBAL STATUS LIKE '"+variable+"'", new(string), &value)
				all[name] = value
			}
			return all
		}}
	},
	"etcd": func(b *testing.B) *manyServer {
		if _, err := exec.LookPath("etcd"); err != nil {
			servertest.Missing(b, err)
		}
		url, peers := "http://127.0.0.1:"+servertest.Port(b), "http://127.0.0.1:"+servertest.Port(b)
		server := exec.CommandContext(context.Background(), "etcd", "--data-dir", b.TempDir(), "--logger", "zap", "--log-level", "panic", "--auto-compaction-retention", "1h",
			"--listen-client-urls", url, "--advertise-client-urls", url, "--listen-peer-urls", peers)
		server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // with a benchmark that is killed
		if err := server.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			_ = server.Process.Kill()
			_ = server.Wait() // it was killed
		})
		get := func(path string) (string, error) {
			request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url+path, nil)
			if err != nil {
				return "", err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return "", err
			}
			defer func() { _ = response.Body.Close() }()
			text, err := io.ReadAll(response.Body)
			return string(text), err
		}
		if err := answers(func() error { _, err := get("/version"); return err }); err != nil {
			b.Fatal(err)
		}
		return &manyServer{url, server.Process.Pid, func(t testing.TB) map[string]float64 {
			text, err := get("/metrics")
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]float64{}
			for line := range strings.Lines(text) {
				key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
				name := map[string]string{
					"etcd_debugging_mvcc_txn_total":              "writes",
					"etcd_mvcc_txn_total":                        "writes",
					"etcd_mvcc_range_total":                      "ranges",
					"etcd_server_proposals_applied_total":        "proposals",
					"etcd_disk_wal_fsync_duration_seconds_count": "syncs",
					`etcd_network_client_grpc_sent_bytes_total`:  "sent-KB",
				}[key]
				if name == "" {
					continue
				}
				n, err := strconv.ParseFloat(value, 64)
				if err != nil {
					t.Fatal(err)
				}
				if name == "sent-KB" {
					n /= 1e3
				}
				all[name] = n
			}
			return all
		}}
	},
}

func openMany(t testing.TB, driver, address string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func scanMany(t testing.TB, db *sql.DB, query string, dest ...any) {
	t.Helper()
	if err := db.QueryRowContext(context.Background(), query).Scan(dest...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// pidIn returns the number of a process from the first line of a file.
func pidIn(t testing.TB, file string) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// A crowd says what one process does.
type crowd struct {
	Server, Address      string
	Clients, Connections int
	Window, Over         time.Duration
}

// stores opens the connections of a process, and returns what makes a Store on them.
func (c *crowd) stores() (func() (lease.Store, error), error) {
	if c.Server == "etcd" {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Address}, Logger: zap.NewNop()})
		return func() (lease.Store, error) { return etcdlease.New(client, etcdlease.Config{}) }, err
	}
	driver, dialect := "pgx", sqlstore.PostgreSQL
	if c.Server == "MariaDB" {
		driver, dialect = "mysql", sqlstore.MySQL
	}
	db, err := sql.Open(driver, c.Address)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(c.Connections)
	db.SetMaxIdleConns(c.Connections)
	return func() (lease.Store, error) { return sqllease.New(db, sqlstore.Config{Dialect: dialect}) }, nil
}

// config returns the settings of a lease.
func (c *crowd) config() lease.Config {
	l := layout(22 - manyWorkerBits)
	return lease.Config{Namespace: "many", Layout: l, Window: c.Window, AcquireWait: -1, Logger: slog.New(slog.DiscardHandler)}
}

// make makes the tables, and the rows by the claim of one lease that it gives back. It returns how
// long that has taken.
func (c *crowd) make(t testing.TB) time.Duration {
	t.Helper()
	open, err := c.stores()
	if err != nil {
		t.Fatal(err)
	}
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := store.(*sqllease.Store); ok {
		if err := s.CreateTables(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	l, err := lease.Acquire(t.Context(), store, c.config())
	took := time.Since(began)
	if err == nil {
		err = l.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// A crowdReport is what a process has seen since the last one, or the sum of those of all.
type crowdReport struct {
	Seconds          float64         // until all had a number
	Claims, Renewals []time.Duration // how long each call took that succeeded
	Failed           map[string]int  // calls that failed, by their errors
}

// report reports what is in r, with prefix before the units.
func (r *crowdReport) report(b *testing.B, prefix string, cpu time.Duration) {
	b.Helper()
	b.ReportMetric(cpu.Seconds(), prefix+"server-cpu-s")
	calls, durations := "renewal", r.Renewals
	if r.Seconds > 0 {
		b.ReportMetric(r.Seconds, prefix+"last-s")
		calls, durations = "claim", r.Claims
	}
	slices.Sort(durations)
	b.ReportMetric(float64(len(durations)), prefix+calls+"s")
	for _, p := range []float64{50, 99, 100} {
		if len(durations) == 0 { // the time was short
			break
		}
		at := durations[int(math.Ceil(p/100*float64(len(durations))))-1]
		b.ReportMetric(at.Seconds()*1e3, fmt.Sprintf("%s%s-p%v-ms", prefix, calls, p))
	}
	failed := 0
	for text, n := range r.Failed {
		failed += n
		b.Logf("%sfailed %d times: %s", prefix, n, text)
	}
	b.ReportMetric(float64(failed), prefix+"failed")
}

// A crowdProcess is a process of a crowd.
type crowdProcess struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

type crowdProcesses []*crowdProcess

// start starts processes, and when all are there their leases.
func (c *crowd) start(t testing.TB, n int) (all crowdProcesses) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		p := &crowdProcess{Cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestProcessOfMany$", "-test.timeout", "0")} //nolint:gosec // this program
		p.Env = append(os.Environ(), manyVariable+"="+string(text))
		p.Stderr = os.Stderr
		p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		in, err := p.StdinPipe()
		out, err2 := p.StdoutPipe()
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		p.in, p.out = in, bufio.NewReader(out)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	all.await(t) // the stores are open
	all.ask(t)
	return all
}

// ask lets each process go on to its next report.
func (all crowdProcesses) ask(t testing.TB) {
	t.Helper()
	for _, p := range all {
		if _, err := io.WriteString(p.in, "\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// await returns the next report of all.
func (all crowdProcesses) await(t testing.TB) *crowdReport {
	t.Helper()
	sum := &crowdReport{Failed: map[string]int{}}
	for _, p := range all {
		line, err := p.out.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var r crowdReport
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		sum.Seconds = max(sum.Seconds, r.Seconds)
		sum.Claims, sum.Renewals = append(sum.Claims, r.Claims...), append(sum.Renewals, r.Renewals...)
		for text, n := range r.Failed {
			sum.Failed[text] += n
		}
	}
	return sum
}

func (all crowdProcesses) cpu() (sum time.Duration) {
	for _, p := range all {
		sum += processCPU(p.Process.Pid)
	}
	return sum
}

// kill kills all of them, so that no row is given back.
func (all crowdProcesses) kill(t testing.TB) {
	t.Helper()
	for _, p := range all {
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range all {
		_ = p.Wait() // it was killed
	}
}

// manyVariable has the crowd of a process.
const manyVariable = "SNOWKEY_BENCH_MANY"

// TestProcessOfMany is a process of BenchmarkMany. It ends with its standard input.
func TestProcessOfMany(t *testing.T) {
	text := os.Getenv(manyVariable)
	if text == "" {
		t.Skip("BenchmarkMany runs it")
	}
	var c crowd
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	open, err := c.stores()
	if err != nil {
		t.Fatal(err)
	}
	counted := &countedCalls{report: crowdReport{Failed: map[string]int{}}}
	stores := make([]lease.Store, c.Clients)
	for i := range stores {
		store, err := open()
		if err != nil {
			t.Fatal(err)
		}
		stores[i] = countedStore{store, counted}
	}
	counted.print(t, 0)
	asked := bufio.NewScanner(os.Stdin)
	asked.Scan()
	began := time.Now()
	var running sync.WaitGroup
	for _, store := range stores {
		running.Go(func() {
			time.Sleep(time.Duration(rand.Float64() * float64(c.Over)))
			if _, err := lease.Acquire(t.Context(), store, c.config()); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	counted.print(t, time.Since(began))
	for asked.Scan() {
		counted.print(t, 0)
	}
}

// countedCalls has what the calls of all leases of a process have taken. It is safe for concurrent
// use.
type countedCalls struct {
	mu     sync.Mutex // guards report
	report crowdReport
}

// print prints the report, and begins the next.
func (c *countedCalls) print(t testing.TB, took time.Duration) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Seconds = took.Seconds()
	text, err := json.Marshal(c.report)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(string(text))
	c.report = crowdReport{Failed: map[string]int{}}
}

func (c *countedCalls) count(list *[]time.Duration, began time.Time, err error) {
	took := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.report.Failed[err.Error()]++
		return
	}
	*list = append(*list, took)
}

// A countedStore counts the calls of one lease.
type countedStore struct {
	lease.Store
	calls *countedCalls
}

func (s countedStore) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	began := time.Now()
	r, err := s.Store.Claim(ctx, c)
	s.calls.count(&s.calls.report.Claims, began, err)
	return r, err
}

func (s countedStore) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	began := time.Now()
	reply, err := s.Store.Renew(ctx, r)
	s.calls.count(&s.calls.report.Renewals, began, err)
	return reply, err
}
