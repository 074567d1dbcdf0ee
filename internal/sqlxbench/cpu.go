package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// A task is a thread of this machine by its number.
type task int

// A server is what works for the one connection of a pool. Its zero value is a server
// that is not on this machine, and nothing is known of it.
type server struct {
	connection task // which serves it: a process of PostgreSQL, a thread of MariaDB
	main       task // of the process that it belongs to, or that has started it
}

// serverOf finds the server of db, if it is on this machine. Others must not use it
// meanwhile, since its work for them cannot be told from that for db.
func (p *place) serverOf(ctx context.Context, db *sqlx.DB) server {
	var query string
	var names []string
	// The field of /proc/PID/status with the process of all others.
	var parent string
	switch p.family {
	case postgres:
		query, names, parent = "SELECT pg_backend_pid()", []string{"postgres"}, "PPid"
	case mariaDB:
		query = "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()"
		names, parent = []string{"mariadbd", "mysqld", "one_connection"}, "Tgid"
	default:
		return server{}
	}
	var s server
	if err := db.QueryRowContext(ctx, query).Scan(&s.connection); err != nil {
		return server{}
	}
	// In another container or on another machine, the number is somebody else's.
	if !slices.Contains(names, strings.TrimSpace(s.connection.file("comm"))) {
		return server{}
	}
	s.main = task(number(s.connection.file("status"), parent))
	return s
}

// file returns a file that the kernel has about the task, or nothing.
func (t task) file(name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", t, name)) // which may be gone
	return string(text)
}

// number returns a number from the text of /proc/PID/status, or 0.
func number(status, field string) int64 {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, _ := strconv.ParseInt(strings.Trim(value, " \tkB\n"), 10, 64)
			return n
		}
	}
	return 0
}

// cpu returns what the tasks of the server have used so far: all threads of its
// process and of those that this has started.
func (s server) cpu() map[task]time.Duration {
	used := map[task]time.Duration{}
	if s.main == 0 {
		return used
	}
	processes := []task{s.main}
	for i := 0; i < len(processes); i++ { // which grows
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", processes[i]))
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				continue
			}
			used[task(id)] = benchmark.TaskCPU(id)
			for child := range strings.FieldsSeq(task(id).file("task/" + thread.Name() + "/children")) {
				if id, err := strconv.Atoi(child); err == nil {
					processes = append(processes, task(id))
				}
			}
		}
	}
	return used
}

// since returns what the connection and all others of the server have used since
// then. What a task used that has ended meanwhile is not known.
func (s server) since(then map[task]time.Duration) (connection, others time.Duration) {
	for t, now := range s.cpu() {
		if t == s.connection {
			connection = now - then[t]
		} else {
			others += now - then[t]
		}
	}
	return connection, others
}

// peakMemory returns the most memory that this program has had so far, and what it
// has now, in bytes. ok is false where they are not known.
func peakMemory() (peak, now int64, ok bool) {
	status := task(os.Getpid()).file("status")
	peak, now = number(status, "VmHWM")<<10, number(status, "VmRSS")<<10
	return peak, now, peak > 0
}

// busyLimit is the percentage of all CPUs that other programs may use before a
// round. More, and the page calls itself a draft.
const busyLimit = 10

// quiet waits, up to patience, until other programs leave the machine alone. It returns
// the percentage of all CPUs that they used last, or 0 if that is not known.
func quiet(ctx context.Context, patience time.Duration) int {
	const sample = 300 * time.Millisecond
	for deadline := time.Now().Add(patience); ; {
		busy, total, ok := allCPU()
		if !ok {
			return 0
		}
		select {
		case <-ctx.Done():
			return 0
		case <-time.After(sample):
		}
		busy2, total2, ok := allCPU()
		if !ok || total2 == total {
			return 0
		}
		percent := int(100 * (busy2 - busy) / (total2 - total))
		if percent <= busyLimit || time.Now().After(deadline) {
			return percent
		}
	}
}

// allCPU returns the ticks of all CPUs: busy ones, stolen ones too, and all.
func allCPU() (busy, total int64, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	first, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 {
		return 0, 0, false
	}
	for i, field := range fields[1:9] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		total += n
		if i != 3 && i != 4 { // idle, and waiting for a disk
			busy += n
		}
	}
	return busy, total, true
}
