package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// A dashboard is what these tests read of Grafana's JSON.
type dashboard struct {
	UID, Title string
	Templating struct {
		List []struct {
			Name, Type, Definition string
			Query                  json.RawMessage
		}
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
	text, err := os.ReadFile("../../../../docs/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryQueryOfTheDashboardFindsWhatItsLegendShows(t *testing.T) {
	d := readDashboard(t)
	test := experiment{Name: "dashboard", Interval: "1m", Input: seriesOf(nil)}
	fill := strings.NewReplacer("$__rate_interval", "5m", "$job", "shop", "$instance", ".+")
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			for _, label := range append(shownLabels(target.LegendFormat), "") {
				test.Questions = append(test.Questions, shows(fill.Replace(target.Expr), label))
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		var asked struct{ Query string }
		if err := json.Unmarshal(v.Query, &asked); err != nil || asked.Query != v.Definition {
			t.Errorf("variable %s asks for %s (%v); want its definition, %s", v.Name, asked.Query, err, v.Definition)
		}
		query := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(fill.Replace(v.Definition))
		if query == nil || query[2] != v.Name {
			t.Errorf("variable %s = %s; want label_values of it", v.Name, v.Definition)
			continue
		}
		test.Questions = append(test.Questions, shows(query[1], query[2]))
	}
	promtoolTests(t, []experiment{test})
}

func TestTheDashboardShowsEveryMetric(t *testing.T) {
	w := newWorld(t)
	w.use()
	defer w.register()()
	queries := ""
	for _, p := range readDashboard(t).Panels {
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("the panel %q of type %s has %d queries", p.Title, p.Type, len(p.Targets))
		}
		for _, target := range p.Targets {
			queries += target.Expr + "\n"
		}
	}
	for name := range w.known() {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(queries) {
			t.Errorf("the dashboard does not show %s", name)
		}
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
