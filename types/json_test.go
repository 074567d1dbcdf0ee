package types_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/cases/jsoncases"
	"github.com/snowkey/snowkey/types"
)

// jsonV1 is encoding/json, by its functions and by its streams. Since Go 1.27 it is built on v2.
func jsonV1() []jsoncases.Engine {
	return []jsoncases.Engine{
		{Name: "encoding/json", Marshal: json.Marshal, Unmarshal: json.Unmarshal},
		{Name: "json.Decoder", Marshal: encodeJSON, Unmarshal: decodeJSON(false), UseNumber: decodeJSON(true)},
	}
}

func encodeJSON(v any) ([]byte, error) {
	var buf bytes.Buffer
	err := json.NewEncoder(&buf).Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}

// decodeJSON returns a function that reads one value, and an error if there is more.
func decodeJSON(useNumber bool) func([]byte, any) error {
	return func(data []byte, v any) error {
		dec := json.NewDecoder(bytes.NewReader(data))
		if useNumber {
			dec.UseNumber()
		}
		if err := dec.Decode(v); err != nil {
			return err
		}
		if _, err := dec.Token(); err != io.EOF {
			return errors.New("more than one value")
		}
		return nil
	}
}

// internal/proof/lab/compat runs the same cases with the engines of others.
func TestJSON(t *testing.T) {
	for _, e := range codecs() {
		jsoncases.Run(t, e)
	}
}

// Decoders hand over one complete value; a direct caller may hand over anything.
func TestUnmarshalJSONCalledDirectlyChecksAllItIsGiven(t *testing.T) {
	for _, doc := range []string{
		``, `"`, `"""`, `"5`, `5"`, `"12`, `12"`, `""5""`, `" 5"`, ` 5`, `5 `, ` "5"`, `"5" `, `'5'`, ` null`, `null `, `NULL`, `nul`, `"null"`, `5,`, `5}`, "5\x00",
	} {
		id, null := before, presentFive
		errID, errNull := id.UnmarshalJSON([]byte(doc)), null.UnmarshalJSON([]byte(doc))
		if !errors.Is(errID, types.ErrSyntax) || !errors.Is(errNull, types.ErrSyntax) || id != before || null != presentFive {
			t.Errorf("UnmarshalJSON(%q) = %d, %v and %+v, %v; want ErrSyntax twice and nothing stored", doc, id, errID, null, errNull)
		}
	}
}

func TestUnmarshalJSONKeepsAndChangesNoBytes(t *testing.T) {
	buf := []byte(`"175928847299117063"`)
	var id types.Snowflake
	var null types.NullSnowflake
	if err := errors.Join(id.UnmarshalJSON(buf), null.UnmarshalJSON(buf)); err != nil || string(buf) != `"175928847299117063"` {
		t.Fatalf("UnmarshalJSON = %v, and its input is now %s; want nil and no change", err, buf)
	}
	clear(buf)
	if id != 175928847299117063 || null.Snowflake != id {
		t.Errorf("after the buffer changed: %d and %d; want 175928847299117063 twice", id, null.Snowflake)
	}
}

// A *json.UnmarshalTypeError would have the path of the field, and match none of these.
func TestErrorOfAFieldMatchesUnderEveryDecoder(t *testing.T) {
	for _, e := range codecs() {
		var doc struct {
			Items []struct {
				ID types.Snowflake `json:"id"`
			} `json:"items"`
		}
		err := e.Unmarshal([]byte(`{"items":[{"id":"1"},{"id":"12x"}]}`), &doc)
		var ve *types.ValueError
		if !errors.Is(err, types.ErrSyntax) || !errors.As(err, &ve) || ve.Value != `"12x"` {
			t.Errorf("%s: Unmarshal = %v; want ErrSyntax in a *ValueError about \"12x\"", e.Name, err)
		}
	}
}
