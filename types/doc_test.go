package types_test

import (
	"encoding/json"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// Who comes from google/uuid looks for the calls first.
func TestThePackageCommentBeginsWithCodeThatIsTrue(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	blocks := new(comment.Parser).Parse(file.Doc.Text()).Content
	code, ok := blocks[1].(*comment.Code)
	if !ok {
		t.Fatalf("the second block of the package comment is a %T; want code", blocks[1])
	}
	id, err := types.Parse("177026472345612305")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(id)
	if err != nil {
		t.Fatal(err)
	}
	for call, result := range map[string]string{"id.String()": id.String(), "json.Marshal(id)": string(data), "id.Base62()": id.Base62(), `types.Parse("` + id.String() + `")`: ""} {
		found := false
		for line := range strings.Lines(code.Text) {
			before, after, _ := strings.Cut(line, "//")
			found = found || strings.Contains(before, call) && strings.HasPrefix(strings.TrimSpace(after), result)
		}
		if !found {
			t.Errorf("the code of the package comment has no %s with %s; want what it returns:\n%s", call, result, code.Text)
		}
	}
}
