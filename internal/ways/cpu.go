package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// cpu returns what servers have used, by their names.
func (s *servers) cpu(names ...string) (sum time.Duration) {
	for _, name := range names {
		switch name {
		case "PostgreSQL":
			sum += processCPU(s.postgres.process.Process.Pid)
		case "MariaDB":
			sum += processCPU(s.mariaDB.process.Process.Pid)
		case "Redis":
			for _, process := range s.redisProcesses {
				sum += processCPU(process)
			}
		}
	}
	return sum
}

// processCPU returns what a process, its children and all their threads have used. A child
// that has ended is left out, and so is all of it on a system without /proc.
func processCPU(process int) (sum time.Duration) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", process))
	for _, task := range tasks {
		id, _ := strconv.Atoi(filepath.Base(task))
		sum += benchmark.TaskCPU(id)
		children, _ := os.ReadFile(filepath.Join(task, "children"))
		for child := range strings.FieldsSeq(string(children)) {
			id, _ := strconv.Atoi(child)
			sum += processCPU(id)
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
