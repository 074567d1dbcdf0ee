//go:build go1.27

package main

import (
	"context"
	"uuid"
)

func openStandardUUID(context.Context, *servers) (take, func(context.Context) error, error) {
	return each(func(context.Context) (key, error) { return key{uuid: uuid.NewV7()}, nil }), nothing, nil
}
