package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// A task is a thread of this machine by its number, or 0 for none that is known.
type task int

// serverTask returns the process (PostgreSQL) or thread (MariaDB) that serves the
// one connection of db, if it is on this machine. What the server does besides, to
// flush pages and write logs, is not its work.
func (p *place) serverTask(ctx context.Context, db *sqlx.DB) task {
	var query string
	var names []string
	switch p.family {
	case postgres:
		query, names = "SELECT pg_backend_pid()", []string{"postgres"}
	case mariaDB:
		query, names = "SELECT TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()", []string{"mariadbd", "mysqld", "one_connection"}
	default:
		return 0
	}
	var id task
	if err := db.QueryRowContext(ctx, query).Scan(&id); err != nil {
		return 0
	}
	// In another container or on another machine, the number is somebody else's.
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", id))
	if err != nil {
		return 0
	}
	for _, known := range names {
		if strings.TrimSpace(string(name)) == known {
			return id
		}
	}
	return 0
}

// cpu returns what the task has used so far, or 0 where that is not known.
func (t task) cpu() time.Duration {
	if t == 0 {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", t))
	if err != nil {
		return 0
	}
	running, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(running, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(ns)
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
