package segmenttest

import (
	"context"
	"errors"
	"testing"

	"github.com/snowkey/snowkey/core/segment"
)

func TestTheStoreInMemoryPassesTheSuite(t *testing.T) {
	m := &Memory{}
	Run(t, Harness{
		Open:         func(*testing.T) Store { return m },
		LosesReplies: func(*testing.T) Store { return lossy{m} },
	})
}

type lossy struct{ *Memory }

func (l lossy) Take(ctx context.Context, t segment.Take) (segment.Range, error) {
	_, err := l.Memory.Take(ctx, t)
	return segment.Range{}, errors.Join(err, errLost)
}

func (l lossy) GiveBack(ctx context.Context, g segment.GiveBack) error {
	return errors.Join(l.Memory.GiveBack(ctx, g), errLost)
}

var errLost = errors.New("the reply is lost")
