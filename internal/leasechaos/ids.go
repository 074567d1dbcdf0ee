//go:build unix

package leasechaos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/types"
)

// An idFiles is the IDs of a run by the name of their file. Each goroutine of each
// process has one file.
type idFiles map[string][]types.Snowflake

// readIDs reads all files of IDs in dir. Half an ID at the end, where a process was
// killed, is none.
func readIDs(dir string) (idFiles, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+idsEnd))
	if err != nil {
		return nil, err
	}
	f := idFiles{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		ids := make([]types.Snowflake, len(b)/8)
		for i := range ids {
			ids[i] = types.Snowflake(binary.LittleEndian.Uint64(b[8*i:]))
		}
		f[filepath.Base(path)] = ids
	}
	return f, nil
}

// errNotAscending is the error of ascend.
var errNotAscending = errors.New("leasechaos: the IDs of one goroutine do not increase")

// ascend returns an error unless the IDs of each goroutine increase.
func (f idFiles) ascend() error {
	for name, ids := range f {
		for i := 1; i < len(ids); i++ {
			if ids[i] <= ids[i-1] {
				return fmt.Errorf("%w: in %s, %s is after %s", errNotAscending, name, parts(ids[i]), parts(ids[i-1]))
			}
		}
	}
	return nil
}

// duplicates returns how many IDs there are, and those that are repeated, each as often
// as it is.
func (f idFiles) duplicates() (n int, repeated []types.Snowflake) {
	for _, ids := range f {
		n += len(ids)
	}
	all := make([]types.Snowflake, 0, n)
	for _, ids := range f {
		all = append(all, ids...)
	}
	slices.Sort(all)
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			repeated = append(repeated, all[i])
		}
	}
	return n, repeated
}

// newest returns the greatest ID of each worker.
func (f idFiles) newest() map[int64]types.Snowflake {
	newest := map[int64]types.Snowflake{}
	for _, ids := range f {
		for _, id := range ids {
			worker := workerOf(id)
			newest[worker] = max(newest[worker], id)
		}
	}
	return newest
}

// describe says what an ID consists of and which files have it.
func (f idFiles) describe(id types.Snowflake) string {
	var in []string
	for name, ids := range f {
		if slices.Contains(ids, id) {
			in = append(in, name)
		}
	}
	slices.Sort(in)
	return parts(id) + ", from " + strings.Join(in, " and ")
}

// workerOf and timeOf are layout().Parts, for millions of IDs.
func workerOf(id types.Snowflake) int64 { return int64(id) >> sequenceBits & (1<<workerBits - 1) }

func timeOf(id types.Snowflake) lease.Millis {
	return epoch + lease.Millis(id>>(workerBits+sequenceBits))
}

func parts(id types.Snowflake) string {
	p := layout().Parts(id)
	return fmt.Sprintf("%s (time %s, worker %d, sequence %d)", id, p.Time.Format("15:04:05.000"), p.Worker, p.Sequence)
}
