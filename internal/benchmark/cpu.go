package benchmark

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// TaskCPU returns what a process or thread of this machine has used so far, by its
// number. It is 0 where that is not known: the task has ended, or the system has no
// /proc. Of a process, it is the first thread alone.
func TaskCPU(task int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", task))
	running, _, _ := strings.Cut(string(text), " ")
	ns, _ := strconv.ParseInt(running, 10, 64)
	return time.Duration(ns)
}
