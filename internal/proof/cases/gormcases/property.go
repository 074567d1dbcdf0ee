package gormcases

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// The flags of the random case. Unless they say otherwise it plays the same
// operations every time. What guards a release must not fail, or pass, by chance.
// To search for unknown errors, begin at a seed of your own:
//
//	go test ./gormplugin -run 'TestPluginOnSQLite/Random' -gormcases.seed $(date +%s) -gormcases.runs 300 -timeout 1h
//
// This package is imported by tests alone, so no other program gets the flags.
var (
	randomSeed  = flag.Uint64("gormcases.seed", fixedSeed, "first seed of the random operations")
	randomRuns  = flag.Int("gormcases.runs", 0, "how many seeds to play, each on empty tables; 0: 2, or 1 on SQLite")
	randomSteps = flag.String("gormcases.steps", "", "replay: numbers of the operations of the first seed to run, with commas in between (empty: all, of every seed)")
)

// fixedSeed and the seed after it run many operations on every database, of most
// kinds.
const fixedSeed = 49

// stepsPerRun is how many operations one seed stands for. With more, each finds
// more rows of earlier ones, and is slower.
const stepsPerRun = 60

// The random case does what programs do, in a random order. It compares memory with
// the database after each operation. What must hold is in [world.accept] and
// [world.reject].
//
// A failure names the seed and the fewest operations that were found to fail:
//
//	go test ./gormplugin -run 'TestPluginOnSQLite/Random' -gormcases.seed 7 -gormcases.steps 3,17
var propertyCases = []testCase{
	{"RandomOperationsLeaveMemoryAndDatabaseAlike", func(e *env) {
		e.integers()
		newWorld(e).play()
	}},
}

func (w *world) play() {
	w.Helper()
	w.env.play(w.runs(), stepsPerRun, w.replay)
	w.Logf("%d operations returned no error, %d returned one that was right", w.accepted, w.rejected)
}

// runs returns how many seeds a random case plays.
func (e *env) runs() uint64 { return uint64(cmp.Or(*randomRuns, e.target.Runs, 2)) }

// play replays so many seeds, each with so many steps. replay returns the first step that
// failed.
func (e *env) play(runs uint64, steps int, replay func(seed uint64, steps []int) (int, error)) {
	e.Helper()
	all := make([]int, steps)
	for i := range all {
		all[i] = i
	}
	if *randomSteps != "" {
		runs, all = 1, nil
		for text := range strings.SplitSeq(*randomSteps, ",") {
			i, err := strconv.Atoi(text)
			if err != nil {
				e.Fatalf("gormcases.steps = %q; want numbers with commas in between", *randomSteps)
			}
			all = append(all, i)
		}
	}
	e.Logf("seeds %d to %d", *randomSeed, *randomSeed+runs-1)
	for seed := *randomSeed; seed < *randomSeed+runs; seed++ {
		if _, failure := replay(seed, all); failure != nil {
			steps, failure := shrink(replay, seed, all, failure)
			e.Fatalf("-gormcases.seed %d -gormcases.steps %s: %v", seed, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(steps)), ","), "[]"), failure)
		}
	}
}

// replay runs steps on empty tables, up to the first that fails. Each step draws from its own
// random source, so it does the same when others are left out, as far as the rows allow.
func (w *world) replay(seed uint64, steps []int) (at int, failure error) {
	w.clear()
	for n, i := range steps {
		w.step, w.texts, w.chance = i, 0, rand.New(rand.NewPCG(seed, uint64(i)))
		if failure = w.random(); failure != nil {
			return n, fmt.Errorf("step %d, %s: %w", i, w.doing, failure)
		}
	}
	return len(steps), nil
}

// shrink leaves out steps as long as the rest still fails.
func shrink(replay func(seed uint64, steps []int) (int, error), seed uint64, steps []int, failure error) ([]int, error) {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(steps); {
			fewer := slices.Delete(slices.Clone(steps), from, from+size)
			at, still := replay(seed, fewer)
			if still == nil {
				from += size
				continue
			}
			steps, failure = fewer[:at+1], still
		}
	}
	return steps, failure
}

// A world is the tables of the random models, and the operation that runs on
// them.
type world struct {
	*env
	db      *gorm.DB // the database, or the transaction that is open
	schemas []*schema.Schema
	joins   []string // the tables that are none of a model

	step     int
	texts    int
	shared   []reflect.Value // pointers to what the rows of an operation belong to
	chance   *rand.Rand
	inside   int // transactions that are open
	doing    string
	accepted int
	rejected int
}

// new returns a text that no step has used.
func (w *world) new() string {
	w.texts++
	return fmt.Sprintf("s%d.%d", w.step, w.texts)
}

// often returns true n times in 10.
func (w *world) often(n int) bool { return w.chance.IntN(10) < n }
