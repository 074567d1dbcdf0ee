//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// A generator is what a worker takes numbers of: a core.Generator or a segment.Allocator.
type generator interface {
	Next(ctx context.Context) (types.Snowflake, error)
	Fill(ctx context.Context, numbers []types.Snowflake) error
	Close(ctx context.Context) error
}

// An issuer takes numbers of a generator in bursts.
type issuer struct {
	burst  int           // numbers in one at most
	rest   time.Duration // after one at most
	passes error         // the workers go on after this error

	returned atomic.Int64 // the greatest number so far
}

// run takes numbers until the process is killed or asked to end. Two goroutines take them
// of one generator, and both race with its end.
func (i *issuer) run(asked context.Context, g generator, own files, patience time.Duration) error {
	ended := make(chan error, 2)
	go func() { ended <- i.issue(own.Files+"-next"+numbersEnd, own.random(2), one(g)) }()
	go func() { ended <- i.issue(own.Files+"-fill"+numbersEnd, own.random(3), all(g)) }()
	for range cap(ended) {
		var err error
		select {
		case err = <-ended:
		case <-asked.Done():
			ctx, cancel := context.WithTimeout(context.Background(), patience/2)
			_ = g.Close(ctx) // the store has faults, so it may fail
			cancel()
			err = <-ended
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A source sets as many elements of numbers as it can, from the first, and returns how
// many.
type source func(numbers []types.Snowflake) (int, error)

// one takes one number after the other.
func one(g generator) source {
	return func(numbers []types.Snowflake) (int, error) {
		for i := range numbers {
			var err error
			if numbers[i], err = g.Next(context.Background()); err != nil {
				return i, err
			}
		}
		return len(numbers), nil
	}
}

// all takes all numbers at once.
func all(g generator) source {
	return func(numbers []types.Snowflake) (int, error) {
		if err := g.Fill(context.Background(), numbers); err != nil {
			return 0, err
		}
		return len(numbers), nil
	}
}

// issue writes bursts of numbers to a file until the generator is closed. A number must be
// greater than the one before, and than all that either goroutine had been given before it
// was asked for.
func (i *issuer) issue(path string, random *rand.Rand, from source) error {
	w, err := newWriter(path)
	if err != nil {
		return err
	}
	numbers := make([]types.Snowflake, i.burst)
	for {
		before := i.returned.Load()
		n, failed := from(numbers[:1+random.IntN(len(numbers))])
		if err := w.write(numbers[:n]); err != nil {
			return err
		}
		last := before
		for _, number := range numbers[:n] {
			if int64(number) <= last {
				return fmt.Errorf("chaos: %d is returned after %d", number, last)
			}
			last = int64(number)
		}
		for v := before; v < last && !i.returned.CompareAndSwap(v, last); v = i.returned.Load() {
		}
		switch {
		case errors.Is(failed, core.ErrClosed):
			return nil
		case failed != nil && !errors.Is(failed, i.passes):
			return failed
		}
		time.Sleep(between(random, 0, i.rest))
	}
}
