package monitoring

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const alertsFile = "../../../../docs/monitoring/alerts.yml"

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

func TestEveryAlertHasASeverityAndASummary(t *testing.T) {
	for _, a := range readAlerts(t) {
		if s := a.Labels["severity"]; s != "warning" && s != "critical" || len(a.Labels) != 1 || a.Annotations["summary"] == "" || len(a.Annotations) != 1 {
			t.Errorf("%s has labels %v and annotations %v; want a severity and a summary", a.Alert, a.Labels, a.Annotations)
		}
	}
}

func TestEveryAlertHasItsParagraphAndEveryParagraphItsAlert(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/logs.md")
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

func TestAlertsFireInTheirIncidentAndInNoOther(t *testing.T) {
	var tests []experiment
	fires := map[string]int{} // the incident in which an alert fires
	for i, incident := range incidents {
		firing := question{Expr: `count by (alertname) (ALERTS{alertstate="firing"})`, At: "30m"}
		for _, name := range incident.alerts {
			fires[name] = i
			firing.Samples = append(firing.Samples, sample{fmt.Sprintf("{alertname=%q}", name), 1})
		}
		tests = append(tests, experiment{Name: incident.name, Interval: "1m", Input: seriesOf(incident.changes), Questions: []question{firing}})
	}
	for _, a := range readAlerts(t) {
		i, ok := fires[a.Alert]
		if !ok {
			t.Errorf("no incident fires %s", a.Alert)
			continue
		}
		for _, label := range shownLabels(a.Annotations["summary"]) {
			q := shows(fmt.Sprintf("ALERTS{alertname=%q}", a.Alert), label)
			tests[i].Questions = append(tests[i].Questions, q)
		}
	}
	rules, err := filepath.Abs(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", rules)
	promtoolTests(t, tests, rules)
}

// What alerts and dashboard find in these series they find in those of a process. Labels that only
// some series have, such as the namespace of a lease, count.
func TestTheHealthyProcessHasEveryMetricWithItsLabels(t *testing.T) {
	w := newWorld(t)
	w.use()
	defer w.register()()
	have := map[string]map[string]bool{}
	for _, series := range seriesOf(nil) {
		name, list, _ := strings.Cut(strings.TrimSuffix(series.Series, "}"), "{")
		if have[name] == nil {
			have[name] = map[string]bool{}
		}
		for label := range strings.SplitSeq(list, ",") {
			label, _, _ = strings.Cut(label, "=")
			have[name][label] = true
		}
	}
	if want := w.known(); !reflect.DeepEqual(have, want) {
		t.Errorf("the healthy process has %v; want %v", have, want)
	}
}
