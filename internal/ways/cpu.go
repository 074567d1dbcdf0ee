package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// cpu returns what the servers have used for the connections of this program: the processes
// (PostgreSQL) or threads (MariaDB) that serve them, and all of Redis. Other programs may
// use the same servers. It is 0 for a server on another machine.
func (p *places) cpu(ctx context.Context, servers ...string) (sum time.Duration, err error) {
	for _, server := range servers {
		tasks := p.redisTasks
		switch server {
		case "PostgreSQL":
			tasks, err = tasksOf(ctx, p.postgres, "SELECT pid FROM pg_stat_activity WHERE application_name = current_setting('application_name')")
		case "MariaDB":
			tasks, err = tasksOf(ctx, p.mariaDB, "SELECT TID FROM information_schema.PROCESSLIST WHERE DB = DATABASE()")
		}
		if err != nil {
			return 0, err
		}
		for _, task := range tasks {
			sum += benchmark.TaskCPU(task)
		}
	}
	return sum, nil
}

func tasksOf(ctx context.Context, db *sql.DB, query string) (tasks []int, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var task int
		if err := rows.Scan(&task); err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
	}
	return tasks, rows.Err()
}

// cpuName returns what the machine calls its CPU.
func cpuName() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // there is none on other systems
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
