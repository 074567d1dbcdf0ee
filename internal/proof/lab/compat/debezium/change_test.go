// Package debezium tests what becomes of a key in a change event that Debezium writes by Kafka
// Connect's JsonConverter. Neither runs here. The events in testdata have the form of their
// documentation: change.json that of a BIGINT, which is a number, and flat.json that after the
// transforms ExtractNewRecordState and Cast with the spec "id:string,parent_id:string".
package debezium

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/lab/compat/internal/large"
	"github.com/snowkey/snowkey/types"
)

// events returns the event of the file for each key.
func events(t *testing.T, file string) (texts []string) {
	t.Helper()
	event, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range large.Keys {
		texts = append(texts, strings.ReplaceAll(string(event), "1234567890123456789", key.String()))
	}
	return texts
}

type row struct {
	ID       types.Snowflake     `json:"id"`
	ParentID types.NullSnowflake `json:"parent_id"`
}

func TestSnowflakeReadsANumberOfDebeziumExactly(t *testing.T) {
	for i, text := range events(t, "change.json") {
		var event struct {
			Payload struct {
				Before *row
				After  row
			}
		}
		want := row{ID: large.Keys[i]}
		if err := json.Unmarshal([]byte(text), &event); err != nil || event.Payload.After != want || event.Payload.Before != nil {
			t.Errorf("row of a created order = %+v, before it %+v, %v; want %+v alone", event.Payload.After, event.Payload.Before, err, want)
		}
	}
}

// As in JavaScript, because an any takes a float64.
func TestMapOfAnyRoundsANumberOfDebezium(t *testing.T) {
	for i, text := range events(t, "change.json") {
		var event struct {
			Payload struct{ After map[string]any }
		}
		if err := json.Unmarshal([]byte(text), &event); err != nil {
			t.Fatal(err)
		}
		if got := event.Payload.After["id"]; got != float64(large.Keys[i]) || fmt.Sprintf("%.0f", got) == large.Keys[i].String() {
			t.Errorf("id of %d in a map = %T %.0f; want a float64, rounded", large.Keys[i], got, got)
		}
	}
}
