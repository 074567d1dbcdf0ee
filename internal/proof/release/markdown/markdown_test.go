package markdown

import (
	"reflect"
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
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Blocks(%q) = %+v, %v; want %+v", page, got, err, want)
	}
}

func TestABlockIsForTheDatabasesThatThePageNames(t *testing.T) {
	page := "<!-- run by TestA -->\n# A\n<!-- run by TestA, TestB on MySQL, MariaDB -->\n```sql\n```\n```sql\n```\n"
	got, err := Blocks(page)
	want := []Block{
		{Language: "sql", Line: 5, RunBy: []string{"TestA", "TestB"}, On: []string{"MySQL", "MariaDB"}},
		{Language: "sql", Line: 7, RunBy: []string{"TestA"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
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

func TestBlocksAreThoseOfTheTestsThatThePageNames(t *testing.T) {
	page := "<!-- setting\npackage main\n-->\n```sh\na\n```\n<!-- run by TestA -->\n```sh\nb\n```\n```sh\nc\n```\n<!-- run by TestB, TestC -->\n# B\n```sh\nd\n```\n<!-- run by TestA -->\n```sh\ne\n```\n"
	for test, want := range map[string]string{"TestA": "b\ne\n", "TestB": "d\n", "TestC": "d\n", "Test": ""} {
		setting, blocks, err := BlocksOf(page, test)
		got := ""
		for _, b := range blocks {
			got += b.Text
		}
		if got != want || setting != "package main\n" || (err == nil) != (want != "") {
			t.Errorf("BlocksOf(%q, %s) = %q, %q, %v; want %q and the setting, or an error if there are none", page, test, setting, got, err, want)
		}
	}
}
