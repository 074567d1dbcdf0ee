package redislease

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/wait"
)

var (
	//go:embed common.lua
	commonText string
	//go:embed claim.lua
	claimText string
	//go:embed renew.lua
	renewText string
	//go:embed release.lua
	releaseText string
	//go:embed fence.lua
	fenceText string
	//go:embed rows.lua
	rowsText string

	claimScript   = newScript(commonText + claimText)
	renewScript   = newScript(commonText + renewText)
	releaseScript = newScript(commonText + releaseText)
	fenceScript   = newScript(commonText + fenceText)
	rowsScript    = newScript(rowsText)
)

// A script is what a server runs in one go. No other command comes between its reads
// and its writes. Redis knows it by the SHA-1 of its text.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// A stamp is an argument whose text is made anew each time go-redis sends the command.
// go-redis may send it several times within one call. The text has two numbers with a comma
// between them: how many milliseconds ago the caller's clock was read, and how often the
// command has been sent, this time included. The first grows while a call waits for a
// connection or is sent again, and must not pass for a difference between the clocks. The
// second distinguishes a command that is sent again from that of another process with the
// same nonce.
type stamp struct {
	read  time.Time
	count atomic.Int64 // how often the command was sent, less the times that the server did not know it
}

// MarshalBinary is how go-redis asks for the text.
func (s *stamp) MarshalBinary() ([]byte, error) {
	text := strconv.AppendInt(nil, time.Since(s.read).Milliseconds(), 10)
	return strconv.AppendInt(append(text, ','), s.count.Add(1), 10), nil
}

// refused returns the error of an operation that the server refused. err says that it
// was not done, and is returned if that is certain. It is not certain if the command
// was sent more than once. An earlier one may then have been done, and its effect be
// gone: a released row, say, that another has claimed since.
func (s *stamp) refused(operation string, err error) error {
	if n := s.count.Load(); n > 1 {
		return fmt.Errorf("redislease: %s: sent %d times for want of a reply, so it may have been done; the last reply was: %s", operation, n, err.Error())
	}
	return err
}

// ask runs the script of an operation, and returns the reader of its reply.
func (s *Store) ask(ctx context.Context, operation string, which script, space lease.Space, sent *stamp, args []any) (*reader, error) {
	fields, err := s.run(ctx, which, s.keys(space), sent, args)
	if err != nil {
		return nil, fmt.Errorf("redislease: %s: %w", operation, err)
	}
	return &reader{operation: operation, fields: fields}, nil
}

// run runs a script and returns its reply. Two of its errors tell what happened: that
// the script refused the arguments, and that ctx had ended before. No other does.
//
// go-redis looks at ctx between its steps, and not while it waits for a reply, unless
// told otherwise. So run waits on its own. The goroutine that it leaves behind when ctx
// ends, ends with the timeouts of the client.
func (s *Store) run(ctx context.Context, which script, keys []string, sent *stamp, args []any) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type answer struct {
		reply any
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		reply, err := s.client.EvalSha(ctx, which.sha, keys, args...).Result()
		if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			sent.count.Add(-1) // this one was not run
			reply, err = s.client.Eval(ctx, which.text, keys, args...).Result()
		}
		answered <- answer{reply, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answered:
		if a.err != nil {
			return nil, wait.Cause(ctx, plain(a.err, keys))
		}
		fields, ok := a.reply.([]any)
		if !ok {
			return nil, fmt.Errorf("the reply is a %T: want the array that the script returns", a.reply)
		}
		return fields, nil
	}
}

// plain returns an error of go-redis, to a script with these keys, in the words of
// this package.
func plain(err error, keys []string) error {
	text := err.Error()
	// A server, or a proxy before it, that does not know AUTH or HELLO quotes the
	// arguments, the password among them. The error is then not wrapped either: its
	// reader could unwrap it and find the password.
	if known, _, found := strings.Cut(text, "with args beginning with"); found {
		return errors.New(strings.TrimRight(known, ", "))
	}
	// Before version 7, Redis puts the error of a command in a script after words
	// of its own.
	if strings.Contains(text, "READONLY ") {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	if strings.Contains(text, "WRONGTYPE ") {
		return lease.Permanent(fmt.Errorf("%w: not all of the keys %q are hashes: %w", ErrDamaged, keys, err))
	}
	// The user may not do this, or is none.
	if strings.Contains(text, "NOPERM ") || strings.Contains(text, "The user executing the script can't ") || strings.HasPrefix(text, "NOAUTH ") || strings.HasPrefix(text, "WRONGPASS ") {
		return lease.Permanent(err)
	}
	return err
}
