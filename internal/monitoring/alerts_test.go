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

	"github.com/snowkey/snowkey/internal/servertest"
)

const alertsFile = "../../docs/monitoring/alerts.yml"

type alert struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func readAlerts(t *testing.T) []alert {
	t.Helper()
	file, err := os.Open(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var rules struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	if len(rules.Groups) != 1 || len(rules.Groups[0].Rules) < 10 {
		t.Fatalf("%s has %+v; want one group of all alerts", alertsFile, rules)
	}
	return rules.Groups[0].Rules
}

func TestEveryAlertNamesWhatPrometheusShows(t *testing.T) {
	w := newWorld(t)
	w.use()
	defer w.register()()
	known := w.known()
	for _, a := range readAlerts(t) {
		labels, err := known.check(a.Expr, map[string]bool{})
		if err != nil {
			t.Errorf("%s: %v", a.Alert, err)
		}
		for _, label := range shownLabels(a.Annotations["summary"]) {
			if !labels[label] {
				t.Errorf("%s: the summary shows %s, which %s has not", a.Alert, label, a.Expr)
			}
		}
		if s := a.Labels["severity"]; s != "warning" && s != "critical" || len(a.Labels) != 1 || len(a.Annotations) != 1 {
			t.Errorf("%s has labels %v and annotations %v; want a severity and a summary", a.Alert, a.Labels, a.Annotations)
		}
	}
}

func TestEveryAlertHasItsParagraphAndEveryParagraphItsAlert(t *testing.T) {
	page, err := os.ReadFile("../../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Alerts\n")
	section, _, _ = strings.Cut(section, "\n## ")
	found := map[string]string{}
	for _, p := range regexp.MustCompile(`(?m)^\*\*(\w+)\*\* \((\w+)\): (.+)$`).FindAllStringSubmatch(section, -1) {
		found[p[1]] = p[2]
		if strings.Count(p[3], ". ") == 0 || len(p[3]) < 80 {
			t.Errorf("%s: %q; want what it means, and what to do", p[1], p[3])
		}
	}
	want := map[string]string{}
	for _, a := range readAlerts(t) {
		want[a.Alert] = a.Labels["severity"]
	}
	if !maps.Equal(found, want) {
		t.Errorf("docs/logs.md has paragraphs of the alerts\n%v\nwant\n%v", found, want)
	}
}

// healthy are the series of a process in which nothing is wrong, in promtool's notation: the first
// value, what each minute adds, and how many minutes.
var healthy = map[string]string{
	"snowkey_worker_usage{WORKER,snowkey_worker_id='3'}":  "1x60",
	"snowkey_worker_limit{LEASE}":                         "1024x60",
	"snowkey_lease_remaining_seconds{LEASE}":              "50x60",
	"snowkey_lease_window_seconds{LEASE}":                 "60x60",
	"snowkey_lease_claims_total{LEASE}":                   "1x60",
	"snowkey_lease_renewals_total{LEASE}":                 "0+4x60",
	"snowkey_lease_failures_total{LEASE}":                 "7x60",
	"snowkey_lease_losses_total{LEASE}":                   "2x60",
	"snowkey_generator_ahead_seconds{LEASE}":              "0.02x60",
	"snowkey_generator_behind_seconds{LEASE}":             "0+60x60",
	"snowkey_generator_remaining_seconds{LEASE}":          "1e9x60",
	"snowkey_generator_waits_total{LEASE}":                "0+30x60",
	"snowkey_segment_held{TAG}":                           "0x60",
	"snowkey_segment_usage{TAG}":                          "0+100x60",
	"snowkey_segment_limit{TAG}":                          "9e18x60",
	"snowkey_segment_fetches_total{TAG}":                  "0+1x60",
	"snowkey_segment_failures_total{TAG}":                 "3x60",
	"snowkey_segment_database_fetches_total{DATABASE}":    "0+1x60",
	"snowkey_segment_database_failures_total{DATABASE}":   "3x60",
	"snowkey_serial_held{SERIES}":                         "0x60",
	"snowkey_serial_usage{SERIES}":                        "800x60",
	"snowkey_serial_limit{SERIES}":                        "999x60",
	"snowkey_serial_fetches_total{SERIES}":                "0+1x60",
	"snowkey_serial_failures_total{SERIES}":               "3x60",
	"snowkey_worker_usage{FIXED,snowkey_worker_id='3'}":   "1x60", // of another job
	"snowkey_worker_usage{ANOTHER,snowkey_worker_id='4'}": "1x60",
}

var places = strings.NewReplacer(
	"WORKER", "job='shop',instance='a',snowkey_namespace='shop',snowkey_datacenter_id='0'",
	"ANOTHER", "job='shop',instance='b',snowkey_namespace='shop',snowkey_datacenter_id='0'",
	"FIXED", "job='stock',instance='c',snowkey_datacenter_id='0'",
	"LEASE", "job='shop',instance='a',snowkey_namespace='shop',snowkey_datacenter_id='0'",
	"TAG", "job='shop',instance='a',snowkey_segment_tag='orders'",
	"DATABASE", "job='shop',instance='a',snowkey_segment_tag='orders',snowkey_segment_database_index='2'",
	"SERIES", "job='shop',instance='a',snowkey_serial_series='invoices'",
)

// incidents says for each series that changes which alerts follow after half an hour.
var incidents = []struct {
	name    string
	changes map[string]string
	alerts  []string
}{
	{"nothing is wrong", nil, nil},
	{"a number is used twice", map[string]string{"snowkey_worker_usage{ANOTHER,snowkey_worker_id='3'}": "1x60"}, []string{"SnowkeyWorkerTwice"}},
	{"a number moved from one process to the next", map[string]string{
		"snowkey_worker_usage{WORKER,snowkey_worker_id='3'}":  "1x26",
		"snowkey_worker_usage{ANOTHER,snowkey_worker_id='3'}": "_x26 1x34",
	}, nil},
	{"the lease is not held", map[string]string{
		"snowkey_worker_usage{WORKER,snowkey_worker_id='3'}": "0x60", "snowkey_lease_remaining_seconds{LEASE}": "0x60",
	}, []string{"SnowkeyLeaseEnds", "SnowkeyNoWorker"}},
	{"a renewal fails", map[string]string{"snowkey_lease_failures_total{LEASE}": "7x28 8x32"}, nil},
	{"the store is away", map[string]string{"snowkey_lease_failures_total{LEASE}": "0+4x60"}, []string{"SnowkeyLeaseNotRenewed"}},
	{"the store is away for long", map[string]string{
		"snowkey_lease_failures_total{LEASE}": "0+4x60", "snowkey_lease_remaining_seconds{LEASE}": "14x60",
	}, []string{"SnowkeyLeaseEnds", "SnowkeyLeaseNotRenewed"}},
	{"a lease was lost", map[string]string{"snowkey_lease_losses_total{LEASE}": "2x25 3x35"}, []string{"SnowkeyLeaseLost"}},
	{"few numbers", map[string]string{"snowkey_worker_limit{LEASE}": "2x60"}, []string{"SnowkeyWorkersNearlyUsed"}},
	{"the clock stepped back", map[string]string{"snowkey_generator_ahead_seconds{LEASE}": "3x60"}, []string{"SnowkeyClockBack"}},
	{"the keys were ahead for a minute", map[string]string{"snowkey_generator_ahead_seconds{LEASE}": "0x28 10x1 0x31"}, nil},
	{"callers wait", map[string]string{"snowkey_generator_waits_total{LEASE}": "0+600x60"}, []string{"SnowkeyCallersWait"}},
	{"four years are left", map[string]string{"snowkey_generator_remaining_seconds{LEASE}": "126e6x60"}, []string{"SnowkeyTimeRunsOut"}},
	{"fetches fail, numbers are held", map[string]string{
		"snowkey_segment_failures_total{TAG}": "0+1x60", "snowkey_segment_held{TAG}": "500x60",
	}, []string{"SnowkeySegmentNotFetched"}},
	{"fetches fail, no number is held", map[string]string{"snowkey_segment_failures_total{TAG}": "3x28 4x32"}, []string{"SnowkeySegmentEmpty"}},
	{"a database is away", map[string]string{"snowkey_segment_database_failures_total{DATABASE}": "0+1x60"}, []string{"SnowkeySegmentDatabaseAway"}},
	{"a segment ends", map[string]string{"snowkey_segment_limit{TAG}": "3200x60"}, []string{"SnowkeySegmentNearlyUsed"}},
	{"blocks are refused", map[string]string{"snowkey_serial_failures_total{SERIES}": "0+1x60"}, []string{"SnowkeySerialNotFetched"}},
	{"a series ends", map[string]string{"snowkey_serial_usage{SERIES}": "950x60"}, []string{"SnowkeySerialNearlyUsed"}},
}

// promtool returns the path of Prometheus's tool.
func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		servertest.Missing(t, fmt.Sprintf("%v; install Debian's package prometheus", err))
	}
	return path
}

func TestAlertsFireInTheirIncidentAndInNoOther(t *testing.T) {
	program := promtool(t)
	rules, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	type (
		sample struct {
			Labels string `yaml:"labels"`
			Value  int    `yaml:"value"`
		}
		question struct {
			Expr    string   `yaml:"expr"`
			At      string   `yaml:"eval_time"`
			Samples []sample `yaml:"exp_samples"`
		}
		input struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		}
		incident struct {
			Name      string     `yaml:"name"`
			Interval  string     `yaml:"interval"`
			Input     []input    `yaml:"input_series"`
			Questions []question `yaml:"promql_expr_test"`
		}
	)
	var file struct {
		Rules    []string   `yaml:"rule_files"`
		Interval string     `yaml:"evaluation_interval"`
		Tests    []incident `yaml:"tests"`
	}
	file.Rules, file.Interval = []string{rules}, "1m"
	fired := map[string]bool{}
	for _, i := range incidents {
		series := maps.Clone(healthy)
		maps.Copy(series, i.changes)
		test := incident{Name: i.name, Interval: "1m"}
		for _, name := range slices.Sorted(maps.Keys(series)) {
			test.Input = append(test.Input, input{places.Replace(name), series[name]})
		}
		q := question{Expr: `count by (alertname) (ALERTS{alertstate="firing"})`, At: "30m"}
		for _, name := range i.alerts {
			fired[name] = true
			q.Samples = append(q.Samples, sample{fmt.Sprintf("{alertname=%q}", name), 1})
		}
		test.Questions = []question{q}
		file.Tests = append(file.Tests, test)
	}
	for _, a := range readAlerts(t) {
		if !fired[a.Alert] {
			t.Errorf("no incident fires %s", a.Alert)
		}
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "incidents.yml")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"check", "rules", rules}, {"test", "rules", name}} {
		if out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
	}
}

// The healthy process has every metric, so that no alert depends on one that is not there.
func TestTheHealthyProcessHasEveryMetric(t *testing.T) {
	w := newWorld(t)
	w.use()
	defer w.register()()
	have := map[string]bool{}
	for series := range healthy {
		name, _, _ := strings.Cut(series, "{")
		have[name] = true
	}
	if got, want := slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(w.known())); !slices.Equal(got, want) {
		t.Errorf("the healthy process has %q; want %q", got, want)
	}
}

// PromQL itself reads the queries of the dashboard, as recording rules; metricsql allows more.
func TestQueriesOfTheDashboardArePromQL(t *testing.T) {
	program := promtool(t)
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	type group struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	}
	list := group{Name: "dashboard"}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			list.Rules = append(list.Rules, rule{
				fmt.Sprintf("panel%d_%s", p.ID, target.RefID), strings.ReplaceAll(target.Expr, "$__rate_interval", "1m"),
			})
		}
	}
	text, err := yaml.Marshal(map[string][]group{"groups": {list}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program, "check", "rules", name).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}
