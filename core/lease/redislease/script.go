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

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

var (
	//go:embed common.lua
	commonText string
	//go:embed read.lua
	readText string
	//go:embed find.lua
	findText string
	//go:embed make.lua
	makeText string
	//go:embed swap.lua
	swapText string
	//go:embed history.lua
	historyText string

	readScript    = newScript(commonText + readText)
	findScript    = newScript(commonText + findText)
	makeScript    = newScript(commonText + makeText)
	swapScript    = newScript(commonText + swapText)
	historyScript = newScript(commonText + historyText)
)

// A script is run by a server atomically: no other command comes between its reads and its
// writes. Redis identifies it by the SHA-1 of its text.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// A stamp is an argument that counts how often its command has been sent, this time included.
// go-redis may send a command several times within one call, and formats the arguments each
// time. The stamp distinguishes a command that is sent again from one of another process with
// the same nonce.
type stamp struct {
	count atomic.Int64 // not counting those to which the server replied that it does not know the script
}

// MarshalBinary is called by go-redis to format the argument.
func (s *stamp) MarshalBinary() ([]byte, error) {
	return strconv.AppendInt(nil, s.count.Add(1), 10), nil
}

// errReply means that a reply does not belong to the script, because of a proxy or a connection
// that is out of step. Whether the script was run is unknown.
var errReply = errors.New("the reply is not one of the script that was sent")

// run runs a script and returns its reply. Only two of its errors are certain: that the script
// refused the arguments, and that ctx had ended before.
//
// By default go-redis checks ctx between its steps but not while it waits for a reply, so run
// waits by itself. The goroutine that it leaves behind when ctx ends is bounded by the client's
// timeouts.
func (r *register) run(ctx context.Context, which script, keys []string, sent *stamp, args []any) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	reply, err := wait.Start(func() (any, error) {
		reply, err := r.client.EvalSha(ctx, which.sha, keys, args...).Result()
		if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			sent.count.Add(-1) // this one was not run
			reply, err = r.client.Eval(ctx, which.text, keys, args...).Result()
		}
		return reply, err
	})(ctx)
	if err != nil {
		return nil, wait.Cause(ctx, plain(err, keys))
	}
	fields, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("the reply is a %T: want the array that the script returns", reply)
	}
	return fields, nil
}

// plain returns an error of go-redis, for a script with these keys, as an error of this
// package.
func plain(err error, keys []string) error {
	text := err.Error()
	// A server, or a proxy before it, that does not know AUTH or HELLO quotes their arguments,
	// including the password. Such an error is not wrapped either, because unwrapping it would
	// reveal the password.
	if known, _, found := strings.Cut(text, "with args beginning with"); found {
		return errors.New(strings.TrimRight(known, ", "))
	}
	// Before version 7, Redis prefixes the error of a command in a script with text of its own.
	if strings.Contains(text, "READONLY ") {
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	if strings.Contains(text, "WRONGTYPE ") {
		return leasestore.Permanent(fmt.Errorf("%w: not all of the keys %q are hashes: %w", ErrDamaged, keys, err))
	}
	// The user lacks the right, or is not logged in.
	if strings.Contains(text, "NOPERM ") || strings.Contains(text, "The user executing the script can't ") || strings.HasPrefix(text, "NOAUTH ") || strings.HasPrefix(text, "WRONGPASS ") {
		return leasestore.Permanent(err)
	}
	return err
}
