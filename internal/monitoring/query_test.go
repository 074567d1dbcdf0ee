package monitoring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metricsql"
)

// A vocabulary has the metrics that exist, each with its labels.
type vocabulary map[string]map[string]bool

// known returns the vocabulary of what Prometheus reads, with the labels that it adds itself.
func (w *world) known() vocabulary {
	w.t.Helper()
	all := vocabulary{}
	for name, family := range w.scrape() {
		all[name] = map[string]bool{"job": true, "instance": true}
		for _, m := range family.GetMetric() {
			for label := range labels(m) {
				all[name][label] = true
			}
		}
	}
	return all
}

// check parses a query and returns the labels of its result, nil for a scalar. It collects the
// metrics that it meets in used.
func (v vocabulary) check(query string, used map[string]bool) (map[string]bool, error) {
	e, err := metricsql.Parse(query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	got, err := v.result(e, used)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	return got, nil
}

func (v vocabulary) result(e metricsql.Expr, used map[string]bool) (map[string]bool, error) {
	switch e := e.(type) {
	case *metricsql.NumberExpr:
		return nil, nil
	case *metricsql.MetricExpr:
		return v.metric(e, used)
	case *metricsql.RollupExpr:
		if e.Window == nil || e.Step != nil || e.At != nil {
			return nil, fmt.Errorf("%s: want a plain window", e.AppendString(nil))
		}
		return v.result(e.Expr, used)
	case *metricsql.FuncExpr:
		if !slices.Contains([]string{"rate", "increase", "deriv", "min_over_time"}, e.Name) || len(e.Args) != 1 {
			return nil, fmt.Errorf("%s of %d arguments is not known to this test", e.Name, len(e.Args))
		}
		_, window := e.Args[0].(*metricsql.RollupExpr)
		if !window { // MetricsQL allows it, and PromQL does not
			return nil, fmt.Errorf("%s without a window", e.Name)
		}
		return v.result(e.Args[0], used)
	case *metricsql.AggrFuncExpr:
		return v.aggregate(e, used)
	case *metricsql.BinaryOpExpr:
		return v.binary(e, used)
	}
	return nil, fmt.Errorf("%T is not known to this test", e)
}

func (v vocabulary) metric(e *metricsql.MetricExpr, used map[string]bool) (map[string]bool, error) {
	if len(e.LabelFilterss) != 1 || e.LabelFilterss[0][0].Label != "__name__" {
		return nil, fmt.Errorf("%s: want one name", e.AppendString(nil))
	}
	name := e.LabelFilterss[0][0].Value
	have := v[name]
	if have == nil {
		return nil, fmt.Errorf("no metric has the name %s", name)
	}
	for _, f := range e.LabelFilterss[0][1:] {
		if !have[f.Label] {
			return nil, fmt.Errorf("%s has no label %s", name, f.Label)
		}
	}
	used[name] = true
	return have, nil
}

func (v vocabulary) aggregate(e *metricsql.AggrFuncExpr, used map[string]bool) (map[string]bool, error) {
	if len(e.Args) != 1 || e.Modifier.Op != "" && e.Modifier.Op != "by" {
		return nil, fmt.Errorf("%s is not known to this test", e.AppendString(nil))
	}
	have, err := v.result(e.Args[0], used)
	if err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for _, label := range e.Modifier.Args {
		if !have[label] {
			return nil, fmt.Errorf("%s: no label %s to group by", e.AppendString(nil), label)
		}
		kept[label] = true
	}
	return kept, nil
}

// binary refuses operands that never match, because one has a label that the other has not.
func (v vocabulary) binary(e *metricsql.BinaryOpExpr, used map[string]bool) (map[string]bool, error) {
	if e.GroupModifier.Op != "" {
		return nil, fmt.Errorf("%s is not known to this test", e.GroupModifier.Op)
	}
	left, err := v.result(e.Left, used)
	if err != nil {
		return nil, err
	}
	right, err := v.result(e.Right, used)
	switch {
	case err != nil:
		return nil, err
	case left == nil:
		return right, nil
	case right != nil && !maps.Equal(left, right):
		return nil, fmt.Errorf("%s: operands with different labels never match", e.AppendString(nil))
	}
	return left, nil
}

func TestQueriesOfNamesThatDoNotExistAreRefused(t *testing.T) {
	w := newWorld(t)
	w.use()
	defer w.register()()
	known := w.known()
	for _, query := range []string{
		"snowkey_lease_losses",
		"rate(snowkey_lease_losses_totals[5m])",
		`snowkey_lease_losses_total{worker="1"}`,
		"sum by (snowkey_worker_id) (snowkey_worker_limit)",
		"snowkey_worker_usage / snowkey_worker_limit",
		"rate(snowkey_lease_losses_total)",
		"median(snowkey_worker_usage",
		"label_set(snowkey_worker_usage)",
		`{job="shop"}`,
	} {
		if got, err := known.check(query, map[string]bool{}); err == nil {
			t.Errorf("check(%s) = %v; want an error", query, got)
		}
	}
	got, err := known.check(`max by (job) (snowkey_worker_usage{job="shop"}) / 2 > 1`, map[string]bool{})
	if want := map[string]bool{"job": true}; err != nil || !maps.Equal(got, want) {
		t.Errorf("check(a query that is correct) = %v, %v; want %v", got, err, want)
	}
}

// shownLabels returns the labels that a text shows, as {{ $labels.x }} of an alert or {{x}} of a legend.
func shownLabels(text string) []string {
	var list []string
	for _, part := range strings.Split(text, "{{")[1:] {
		inside, _, _ := strings.Cut(part, "}}")
		name := strings.TrimPrefix(strings.TrimSpace(inside), "$labels.")
		if !strings.HasPrefix(name, "$value") {
			list = append(list, name)
		}
	}
	return list
}
