package markdown

import (
	"slices"
	"testing"
)

func TestBlocksOfAPageAreFoundWithTheirLines(t *testing.T) {
	page := "# A\n\n<!-- one line -->\n<!-- setting\npackage main\n\nvar a int\n-->\n\n```go\na = 1\n```\nText with ``` in it.\n```\nplain\n```\n```sh\n```\n"
	got, err := Blocks(page)
	want := []Block{
		{Language: "setting", Comment: true, Text: "package main\n\nvar a int\n", Line: 5},
		{Language: "go", Text: "a = 1\n", Line: 11},
		{Text: "plain\n", Line: 15},
		{Language: "sh", Line: 18},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Blocks(%q) = %+v, %v; want %+v", page, got, err, want)
	}
}

func TestBlocksThatAreIndentedOrDoNotEndAreErrors(t *testing.T) {
	for _, page := range []string{"```go\na = 1\n", "- item\n  ```go\n  a = 1\n  ```\n", "<!-- setting\npackage main\n"} {
		if got, err := Blocks(page); err == nil {
			t.Errorf("Blocks(%q) = %+v, nil; want an error", page, got)
		}
	}
}
