package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// permissive are the licenses that a dependency may have, each with words of its text.
var permissive = map[string][]string{
	"MIT":          {"Permission is hereby granted, free of charge", "without restriction"},
	"BSD-2-Clause": {"Redistribution and use in source and binary forms"},
	"BSD-3-Clause": {"Redistribution and use in source and binary forms", "endorse or promote"},
	"Apache-2.0":   {"Apache License", "Version 2.0"},
	"ISC":          {"Permission to use, copy, modify, and"},
	"MPL-2.0":      {"Mozilla Public License Version 2.0"}, // of what only the command has
}

// theCommand is the module that no program links.
const theCommand = "cmd/snowkey"

func TestThePageOfLicensesHasEveryDependencyOfAPublishedModule(t *testing.T) {
	all, err := modules(tree)
	must(t, err)
	required := map[string]string{} // folder of a module that requires it
	for _, m := range all {
		for _, r := range m.file.Require {
			if m.published() && !ours(r.Mod.Path) && (required[r.Mod.Path] == "" || m.folder != theCommand) {
				required[r.Mod.Path] = m.folder
			}
		}
	}
	listed := licenses(t)
	if got, want := slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(required)); !slices.Equal(got, want) {
		t.Errorf("docs/licenses.md lists %q; want %q", got, want)
	}
	for name, license := range listed {
		if permissive[license] == nil || license == "MPL-2.0" && required[name] != theCommand {
			t.Errorf("%s has the license %s; want one of %q", name, license, slices.Sorted(maps.Keys(permissive)))
		}
	}
}

func TestLicenseTextsAreThoseOfThePage(t *testing.T) {
	all, err := modules(tree)
	must(t, err)
	listed, read := licenses(t), 0
	for _, m := range all {
		if !m.published() {
			continue
		}
		printed, err := command(t.Context(), filepath.Join(tree, m.folder), []string{"GOWORK=off"}, "go", "list", "-m", "-json", "all")
		must(t, err)
		for decoder := json.NewDecoder(strings.NewReader(printed)); decoder.More(); {
			var dependency struct{ Path, Dir string }
			must(t, decoder.Decode(&dependency))
			if license := listed[dependency.Path]; license != "" && dependency.Dir != "" { // else it is not in the module cache
				read++
				checkLicense(t, dependency.Path, dependency.Dir, license)
			}
		}
	}
	if read < len(listed)/2 {
		t.Errorf("%d license texts read of %d; want most of them in the module cache", read, len(listed))
	}
}

// checkLicense compares the text of a license with the name on the page.
func checkLicense(t *testing.T, name, dir, license string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*LICENSE*"))
	if more, _ := filepath.Glob(filepath.Join(dir, "License*")); err != nil || len(files)+len(more) == 0 {
		t.Errorf("%s has no file of a license, %v", name, err)
		return
	} else if len(files) == 0 {
		files = more
	}
	text, err := os.ReadFile(files[0])
	must(t, err)
	folded := strings.Join(strings.Fields(string(text)), " ")
	for _, words := range permissive[license] {
		if !strings.Contains(folded, words) {
			t.Errorf("the license of %s does not say %q; want that of %s", name, words, license)
		}
	}
	if license == "BSD-2-Clause" && strings.Contains(folded, "endorse or promote") {
		t.Errorf("the license of %s has the third clause of BSD; want BSD-3-Clause on the page", name)
	}
}

// licenses returns the licenses that docs/licenses.md gives to modules.
func licenses(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tree, "docs", "licenses.md"))
	must(t, err)
	list := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| .* \\| ([^ ]+) \\| (`.*`) \\|$").FindAllStringSubmatch(string(text), -1) {
		for module := range strings.SplitSeq(strings.Trim(row[2], "`"), "`, `") {
			list[module] = row[1]
		}
	}
	return list
}
