//go:build unix

package chaos

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

func init() { Main(Stores{}) }

func TestRepeatedNumbersAreFoundAcrossFiles(t *testing.T) {
	dir := t.TempDir()
	for name, numbers := range map[string][]types.Snowflake{"1-next": {10, 20, 30}, "1-fill": {11, 20, 31}, "2-next": {12, 20, 31, 40}} {
		w, err := newWriter(filepath.Join(dir, name+numbersEnd))
		if err == nil {
			err = errors.Join(w.write(numbers[:1]), w.write(numbers[1:]), w.file.Close())
		}
		must(t, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "3-next"+numbersEnd), []byte("half"), 0o600))
	all, err := readNumbers(dir)
	must(t, err)
	n, repeated := all.duplicates()
	if want := []types.Snowflake{20, 20, 31}; n != 10 || !slices.Equal(repeated, want) {
		t.Errorf("duplicates() = %d, %v; want 10, %v", n, repeated, want)
	}
	if got, want := all.files(31), "1-fill.ids and 2-next.ids"; got != want {
		t.Errorf("files(31) = %q; want %q", got, want)
	}
}

func TestNumbersThatDoNotIncreaseAreFound(t *testing.T) {
	for _, numbers := range [][]types.Snowflake{{8, 10, 9}, {8, 8}, {7}} {
		i := issuer{burst: 3}
		i.returned.Store(7)
		err := i.issue(filepath.Join(t.TempDir(), "1-next"+numbersEnd), rand.New(rand.NewPCG(1, 1)), func(n []types.Snowflake) (int, error) {
			return copy(n[:3], numbers), core.ErrClosed
		})
		if err == nil || errors.Is(err, core.ErrClosed) {
			t.Errorf("issue, given %d after 7 = %v; want an error that says so", numbers, err)
		}
	}
}
