package redislease

import (
	"context"
	"fmt"
	"strconv"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// historyKeys returns the keys of a space and that of the records of a worker.
func (r *register) historyKeys(s leasestore.Space, worker int64) []string {
	keys := r.keys(s)
	return append(keys, keys[1]+":"+strconv.FormatInt(worker, 10))
}

// Records implements [leasestore.HistoryRegister].
func (r *register) Records(ctx context.Context, s leasestore.Space, worker int64) ([]string, error) {
	keys := r.historyKeys(s, worker)
	reply, err := r.run(ctx, historyScript, keys, &stamp{}, nil)
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
