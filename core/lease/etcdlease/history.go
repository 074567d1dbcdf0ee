package etcdlease

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// historyEpochs is how far back records are kept. A lease has one epoch, a second one after its release,
// and there may be a fence for each.
const historyEpochs = 3 * leasestore.HistoryLength

// historyPrefix returns the prefix of the records of a worker. It is outside of the space, which Make
// requires to be empty, and each record has a key of its own, with the epoch as its name.
func (r *register) historyPrefix(sp leasestore.Space, worker int64) string {
	return fmt.Sprintf("%s/%s/past/%d/%d/", r.prefix, sp.Namespace, sp.Datacenter, worker)
}

// keep returns the operations that keep the record of a claim, and no more records than needed.
func (r *register) keep(sp leasestore.Space, to leasestore.Row, record string) []clientv3.Op {
	key := func(epoch int64) string { return fmt.Sprintf("%s%019d", r.historyPrefix(sp, to.Worker), max(0, epoch)) }
	return []clientv3.Op{
		clientv3.OpPut(key(to.Epoch), record),
		clientv3.OpDelete(key(0), clientv3.WithRange(key(to.Epoch-historyEpochs))),
	}
}

// Records implements [leasestore.HistoryRegister].
func (r *register) Records(ctx context.Context, sp leasestore.Space, worker int64) ([]string, error) {
	reply, err := r.commit(ctx, "records", nil, []clientv3.Op{clientv3.OpGet(r.historyPrefix(sp, worker), clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend), clientv3.WithLimit(leasestore.HistoryLength))}, nil)
	if err != nil {
		return nil, err
	}
	var records []string
	for _, kv := range reply.Responses[0].GetResponseRange().Kvs {
		records = append(records, string(kv.Value))
	}
	return records, nil
}
