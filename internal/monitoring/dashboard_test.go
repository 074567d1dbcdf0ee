package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A dashboard is what these tests read of Grafana's JSON.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ UID string }
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct{ Unit string }
	}
	Targets []struct{ RefID, Expr, LegendFormat string }
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile("../../docs/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryQueryOfTheDashboardNamesWhatPrometheusShows(t *testing.T) {
	w := newWorld(t)
	w.use()
	defer w.register()()
	known, d, used := w.known(), readDashboard(t), map[string]bool{}
	variables := regexp.MustCompile(`\$(job|instance)\b`)
	for _, p := range d.Panels {
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("the panel %q of type %s has %d queries", p.Title, p.Type, len(p.Targets))
		}
		for _, target := range p.Targets {
			query := variables.ReplaceAllString(strings.ReplaceAll(target.Expr, "$__rate_interval", "1m"), "any")
			labels, err := known.check(query, used)
			if err != nil {
				t.Errorf("panel %q: %v", p.Title, err)
			}
			for _, label := range shownLabels(target.LegendFormat) {
				if !labels[label] {
					t.Errorf("panel %q: the legend %q shows %s, which %s has not", p.Title, target.LegendFormat, label, query)
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		query := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(variables.ReplaceAllString(v.Definition, "any"))
		if query == nil || query[2] != v.Name {
			t.Errorf("variable %s = %s; want label_values of it", v.Name, v.Definition)
		} else if labels, err := known.check(query[1], map[string]bool{}); err != nil || !labels[query[2]] {
			t.Errorf("variable %s = %s: labels %v, %v", v.Name, v.Definition, labels, err)
		}
	}
	if missing := maps.Clone(known); len(used) < len(known) {
		maps.DeleteFunc(missing, func(name string, _ map[string]bool) bool { return used[name] })
		t.Errorf("the dashboard does not show %q", slices.Sorted(maps.Keys(missing)))
	}
}

func TestPanelsOfTheDashboardAreCompleteAndDoNotOverlap(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" {
		t.Errorf("uid %q, title %q; want both", d.UID, d.Title)
	}
	ids, places := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if p.Title == "" || ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q at %+v; want a title, an ID of its own and 24 columns", p.ID, p.Title, p.GridPos)
		}
		ids[p.ID] = true
		if p.Type != "row" && (p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}") {
			t.Errorf("panel %q has the description %q, the unit %q and the source %q", p.Title, p.Description, p.FieldConfig.Defaults.Unit, p.Datasource.UID)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, taken := places[at]; taken {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				places[at] = p.Title
			}
		}
	}
}
