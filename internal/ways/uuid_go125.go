//go:build !go1.27

package main

import (
	"context"
	"errors"
)

// errNoStandardUUID is returned by programs that an older Go has compiled.
var errNoStandardUUID = errors.New("package uuid of the standard library needs Go 1.27: set GOTOOLCHAIN=go1.27.0")

func openStandardUUID(context.Context, *servers) (take, func(context.Context) error, error) {
	return nil, nil, errNoStandardUUID
}
