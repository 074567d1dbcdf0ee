package redislease

import (
	"context"
	"fmt"
	"strconv"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// pastKeys returns the keys of a space and that of the records of a worker.
func (r *register) pastKeys(s leasestore.Space, worker int64) []string {
	keys := r.keys(s)
	return append(keys, keys[1]+":"+strconv.FormatInt(worker, 10))
}

// Records implements [leasestore.Recorder].
func (r *register) Records(ctx context.Context, s leasestore.Space, worker int64) ([]string, error) {
	keys := r.pastKeys(s, worker)
	reply, err := r.run(ctx, pastScript, keys, &stamp{}, nil)
	if err != nil {
		return nil, fmt.Errorf("redislease: records: %w", err)
	}
	if len(reply) != 2 || reply[0] != keys[2] {
		return nil, fmt.Errorf("redislease: records: %w", errReply)
	}
	list, _ := reply[1].([]any)
	records := make([]string, len(list))
	for i := range list {
		records[i], _ = list[i].(string)
	}
	return records, nil
}
