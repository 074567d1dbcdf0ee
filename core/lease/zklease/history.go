package zklease

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// The record of a claim is a child of its row's znode, made in the transaction that writes the row.
// Its name is the epoch, so that the claim needs to know no other record.
func (r *register) keep(path string, epoch int64, record string) any {
	return &zk.CreateRequest{Path: path + "/" + strconv.FormatInt(epoch, 10), Data: []byte(record), Acl: r.acl, Flags: zk.FlagPersistent}
}

// spare is how many records more than HistoryLength there are before a claim deletes them. It does so beside
// its caller, who does not wait, and another claim will if it fails.
const spare = leasestore.HistoryLength / 4

func (r *register) prune(ctx context.Context, path string) {
	ctx = context.WithoutCancel(ctx)
	start(ctx, "prune "+path, func() (struct{}, error) {
		names, err := r.recordNames(ctx, path)
		var ops []any
		for _, name := range names[min(len(names), leasestore.HistoryLength):] {
			ops = append(ops, &zk.DeleteRequest{Path: path + "/" + name, Version: -1})
		}
		if len(ops) > 0 {
			_, err = r.conn.Multi(ops[:min(len(ops), batch)]...)
		}
		return struct{}{}, err
	})
}

// recordNames returns the names of the records of a row, the newest first.
func (r *register) recordNames(ctx context.Context, path string) ([]string, error) {
	names, err := r.children(ctx, path)
	epoch := func(name string) int64 { n, _ := strconv.ParseInt(name, 10, 64); return n }
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(epoch(b), epoch(a)) })
	return names, err
}

// Records implements [leasestore.HistoryRegister].
func (r *register) Records(ctx context.Context, s leasestore.Space, worker int64) (records []string, err error) {
	path := r.place(s).row(worker)
	names, err := r.recordNames(ctx, path)
	if err != nil {
		return nil, err
	}
	var sent []pending[node]
	for _, name := range names[:min(len(names), leasestore.HistoryLength)] {
		sent = append(sent, r.get(ctx, path+"/"+name))
	}
	for _, record := range sent {
		n, err := record.wait(ctx)
		if err != nil {
			return nil, err
		}
		records = append(records, string(n.data))
	}
	return records, nil
}
