//go:build unix

package chaos

import (
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/types"
)

// numbersEnd is the end of the name of each file of numbers, 8 bytes each. Each goroutine
// of each process has one file.
const numbersEnd = ".ids"

// A writer writes what a goroutine of a process was given.
type writer struct {
	file  *os.File
	bytes []byte
}

// newWriter returns a writer of a file, which ends in [numbersEnd].
func newWriter(path string) (*writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	return &writer{file: f}, err
}

// write writes numbers right after they were returned, in one write. A number counts as
// returned when it is in the file. A process that is killed loses its last burst at most.
// That can hide a duplicate, but never show a false one.
func (w *writer) write(numbers []types.Snowflake) error {
	w.bytes = w.bytes[:0]
	for _, n := range numbers {
		w.bytes = binary.LittleEndian.AppendUint64(w.bytes, uint64(n))
	}
	_, err := w.file.Write(w.bytes)
	return err
}

// numberFiles are what the goroutines of a run were given, by the name of their file.
type numberFiles map[string][]types.Snowflake

// readNumbers reads all files of numbers in dir. Half a number at the end, where a process
// was killed, is none.
func readNumbers(dir string) (numberFiles, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+numbersEnd))
	if err != nil {
		return nil, err
	}
	all := numberFiles{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		numbers := make([]types.Snowflake, len(b)/8)
		for i := range numbers {
			numbers[i] = types.Snowflake(binary.LittleEndian.Uint64(b[8*i:]))
		}
		all[filepath.Base(path)] = numbers
	}
	return all, nil
}

// duplicates returns how many numbers there are, and the repeated ones, each once for
// every repetition.
func (n numberFiles) duplicates() (count int, repeated []types.Snowflake) {
	all := slices.Concat(slices.Collect(maps.Values(n))...)
	return len(all), Repeated(all)
}

// Repeated sorts numbers, and returns those that equal the one before.
func Repeated(numbers []types.Snowflake) (repeated []types.Snowflake) {
	slices.Sort(numbers)
	for i := 1; i < len(numbers); i++ {
		if numbers[i] == numbers[i-1] {
			repeated = append(repeated, numbers[i])
		}
	}
	return repeated
}

// files says which files have a number.
func (n numberFiles) files(number types.Snowflake) string {
	var in []string
	for name, numbers := range n {
		if slices.Contains(numbers, number) {
			in = append(in, name)
		}
	}
	slices.Sort(in)
	return strings.Join(in, " and ")
}
