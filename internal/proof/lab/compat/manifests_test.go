package compat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/snowkey/snowkey/internal/proof/release/markdown"
)

// The parts of manifests on the pages are read as Kubernetes reads them. Any other YAML is only read.
func TestPartsOfManifestsOnThePagesAreValid(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("Glob = %q, %v; want the pages", pages, err)
	}
	found := map[string]bool{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		must(t, err)
		blocks, err := markdown.Blocks(string(text))
		must(t, err)
		for _, b := range blocks {
			if b.Language != "yaml" {
				continue
			}
			kind, err := checkPart(b.Text)
			if err != nil {
				t.Errorf("%s:%d: %v", page, b.Line, err)
			}
			found[kind] = true
		}
	}
	if !found["Deployment"] || !found["StatefulSet"] {
		t.Errorf("parts of manifests = %v; want those of a Deployment and a StatefulSet", found)
	}
}

// checkPart returns the kind that a block is a part of, or nothing for other YAML. It reads the
// part as a server does with strict validation: fields that it does not know, and those given
// twice, are errors.
func checkPart(text string) (kind string, err error) {
	var object any
	first, _, _ := strings.Cut(text, "\n")
	_, kind, isPart := strings.Cut(first, "spec: # of the ")
	switch {
	case !isPart:
		return "", yaml.Unmarshal([]byte(text), &object)
	case kind == "Deployment":
		object = new(apps.Deployment)
	case kind == "StatefulSet":
		object = new(apps.StatefulSet)
	default:
		return "", fmt.Errorf("the test does not know the kind %q", kind)
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return "", err
	}
	strict, err := json.UnmarshalStrict(data, object)
	return kind, errors.Join(append(strict, err)...)
}
