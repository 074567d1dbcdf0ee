package monitoring

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// Prometheus evaluates alerts and queries itself, on series that the tests give. A name or label that
// does not exist, a window that is missing and operands that never match all give an empty result.

// promtool runs Prometheus's tool.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		servertest.Missing(t, fmt.Sprintf("%v; install Debian's package prometheus", err))
	}
	if out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

// An experiment is a test of promtool: series, and what queries find in them.
type (
	experiment struct {
		Name      string     `yaml:"name"`
		Interval  string     `yaml:"interval"`
		Input     []input    `yaml:"input_series"`
		Questions []question `yaml:"promql_expr_test"`
	}
	input struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	question struct {
		Expr    string   `yaml:"expr"`
		At      string   `yaml:"eval_time"`
		Samples []sample `yaml:"exp_samples"`
	}
	sample struct {
		Labels string `yaml:"labels"`
		Value  int    `yaml:"value"`
	}
)

// promtoolTests runs experiments with files of rules.
func promtoolTests(t *testing.T, tests []experiment, rules ...string) {
	t.Helper()
	file := struct {
		Rules    []string     `yaml:"rule_files"`
		Interval string       `yaml:"evaluation_interval"`
		Tests    []experiment `yaml:"tests"`
	}{rules, "1m", tests}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "tests.yml")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", name)
}

// shows asks whether a query has a result after half an hour, and whether all of it has a label,
// unless that is empty.
func shows(expr, label string) question {
	if label == "" {
		return question{"group(" + expr + ")", "30m", []sample{{"{}", 1}}}
	}
	return question{
		fmt.Sprintf(`group by (shown) (label_replace(%s, "shown", "yes", %q, ".+"))`, expr, label),
		"30m", []sample{{`{shown="yes"}`, 1}},
	}
}

// seriesOf returns those of the healthy process, some of them changed.
func seriesOf(changes map[string]string) (list []input) {
	series := maps.Clone(healthy)
	maps.Copy(series, changes)
	for _, name := range slices.Sorted(maps.Keys(series)) {
		list = append(list, input{places.Replace(name), series[name]})
	}
	return list
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

// known returns the metrics that Prometheus reads, each with its labels and those that Prometheus
// adds itself.
func (w *world) known() map[string]map[string]bool {
	w.t.Helper()
	all := map[string]map[string]bool{}
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

var (
	groups = regexp.MustCompile(`\bby \(([^)]*)\)`)
	names  = regexp.MustCompile(`\bsnowkey_\w+`)
)

// Series without the label that a query groups by are one group, with which promtool is content.
func TestQueriesGroupByLabelsOfTheirMetrics(t *testing.T) {
	w := newWorld(t)
	w.use()
	defer w.register()()
	known := w.known()
	var queries []string
	for _, a := range readAlerts(t) {
		queries = append(queries, a.Expr)
	}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			queries = append(queries, target.Expr)
		}
	}
	found := 0
	for _, query := range queries {
		for _, by := range groups.FindAllStringSubmatch(query, -1) {
			for label := range strings.SplitSeq(by[1], ", ") {
				for _, name := range names.FindAllString(query, -1) {
					if have := known[name]; have != nil {
						found++
						if !have[label] {
							t.Errorf("%s: %s has no label %s to group by", query, name, label)
						}
					}
				}
			}
		}
	}
	if found == 0 {
		t.Error("no query groups; want some")
	}
}
