package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pids are the servers of Redis that this program has started.
var pids []int

// tick is the unit of /proc/PID/stat. Linux has told programs this one since 2.6.
const tick = 10 * time.Millisecond

// cpuOf returns what all processes of a server have used: those with one of the names,
// and for Redis those of this program. Children that have ended count with their parent.
func cpuOf(server string) (sum time.Duration) {
	names := map[string][]string{"PostgreSQL": {"postgres"}, "MariaDB": {"mariadbd", "mysqld"}}[server]
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // there is none on other systems
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		head, rest, ok := strings.Cut(string(text), ") ")
		pid, name, _ := strings.Cut(head, " (")
		n, err := strconv.Atoi(pid)
		fields := strings.Fields(rest)
		if !ok || err != nil || len(fields) < 15 {
			continue
		}
		if slices.Contains(names, name) || server == "Redis" && slices.Contains(pids, n) {
			for _, field := range fields[11:15] { // utime, stime, and those of children that were waited for
				ticks, _ := strconv.ParseInt(field, 10, 64)
				sum += time.Duration(ticks) * tick
			}
		}
	}
	return sum
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
