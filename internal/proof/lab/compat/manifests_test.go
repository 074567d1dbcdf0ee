package compat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/snowkey/snowkey/internal/proof/release/markdown"
)

// The manifests on the pages are read as Kubernetes reads them, and checked for what it
// would refuse. Any other YAML is only read.
func TestManifestsOnThePagesAreValid(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("Glob = %q, %v; want the pages", pages, err)
	}
	kinds := map[string]int{}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := markdown.Blocks(string(text))
		if err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		for _, b := range blocks {
			if b.Language != "yaml" {
				continue
			}
			for document := range strings.SplitSeq(b.Text, "\n---\n") {
				kind, err := checkManifest(document)
				if err != nil {
					t.Errorf("%s:%d: %v", page, b.Line, err)
				}
				kinds[kind]++
			}
		}
	}
	if kinds["Deployment"] == 0 || kinds["StatefulSet"] == 0 {
		t.Errorf("kinds of manifests = %v; want a Deployment and a StatefulSet among them", kinds)
	}
}

func TestManifestsThatKubernetesRefusesAreFound(t *testing.T) {
	const good = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders
spec:
  selector:
    matchLabels: {app: orders}
  template:
    metadata:
      labels: {app: orders}
    spec:
      containers:
        - name: orders
          image: example.com/orders:1
          env:
            - {name: A, value: "1"}
`
	if kind, err := checkManifest(good); kind != "Deployment" || err != nil {
		t.Errorf("checkManifest(good) = %q, %v; want a Deployment", kind, err)
	}
	if kind, err := checkManifest("route: {receiver: team}\n"); kind != "" || err != nil {
		t.Errorf("checkManifest(no manifest) = %q, %v; want nothing", kind, err)
	}
	for _, change := range [][2]string{
		{"name: orders\nspec", "nme: orders\nspec"},
		{"name: orders\nspec", "name: Orders_1\nspec"},
		{"matchLabels: {app: orders}", "matchLabels: {app: others}"},
		{"selector:\n    matchLabels: {app: orders}\n  ", ""},
		{"- name: orders\n          image", "- image"},
		{"          image: example.com/orders:1\n", ""},
		{"image: example.com/orders:1", "image: [1]"},
		{"name: A, value", "value"},
		{`value: "1"`, `value: 1`},
		{`value: "1"`, `value: "1", valueFrom: {fieldRef: {fieldPath: metadata.name}}`},
		{`value: "1"`, `valueFrom: {fieldRef: {}}`},
		{"containers:", "container:"},
		{"kind: Deployment", "kind: Deploymnt"},
		{"apps/v1", "apps/v2"},
		{"kind:", "  kind:"},
		{"spec:\n      containers", "spec:\n      hostname: a\n      hostname: b\n      containers"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if _, err := checkManifest(bad); err == nil || bad == good {
			t.Errorf("checkManifest(with %q for %q) = nil; want an error", change[1], change[0])
		}
	}
}

// checkManifest returns the kind of a manifest, or nothing for other YAML.
func checkManifest(text string) (kind string, err error) {
	var head meta.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &head); err != nil {
		return "", err
	}
	if head.Kind == "" && head.APIVersion == "" {
		return "", nil
	}
	var object meta.Object
	var selector *meta.LabelSelector
	var pod *core.PodTemplateSpec
	switch head.APIVersion + " " + head.Kind {
	case "apps/v1 Deployment":
		o := new(apps.Deployment)
		object, pod = o, &o.Spec.Template
		err = decode(text, o)
		selector = o.Spec.Selector
	case "apps/v1 StatefulSet":
		o := new(apps.StatefulSet)
		object, pod = o, &o.Spec.Template
		err = decode(text, o)
		selector = o.Spec.Selector
	case "batch/v1 CronJob":
		o := new(batch.CronJob)
		object, pod = o, &o.Spec.JobTemplate.Spec.Template
		err = decode(text, o)
	case "v1 Service":
		o := new(core.Service)
		object = o
		err = decode(text, o)
	default:
		return "", fmt.Errorf("%s %s: the test does not know this kind", head.APIVersion, head.Kind)
	}
	if err != nil {
		return "", err
	}
	if problems := validation.IsDNS1035Label(object.GetName()); len(problems) > 0 {
		return "", fmt.Errorf("metadata.name %q: %s", object.GetName(), strings.Join(problems, ", "))
	}
	if missing := required(reflect.ValueOf(object).Elem(), head.Kind); len(missing) > 0 {
		return "", fmt.Errorf("missing: %s", strings.Join(missing, ", "))
	}
	if pod == nil {
		return head.Kind, nil
	}
	if selector != nil {
		s, err := meta.LabelSelectorAsSelector(selector)
		if err != nil || s.Empty() || !s.Matches(labels.Set(pod.Labels)) {
			return "", fmt.Errorf("the selector %v does not match the labels of the template %v: %w", selector, pod.Labels, err)
		}
	}
	for _, c := range pod.Spec.Containers {
		if c.Image == "" {
			return "", fmt.Errorf("container %s has no image", c.Name)
		}
		for _, e := range c.Env {
			if e.Value != "" && e.ValueFrom != nil {
				return "", fmt.Errorf("variable %s has a value and a source of it", e.Name)
			}
		}
	}
	return head.Kind, nil
}

// decode reads a manifest as the server does with strict validation: fields it does not
// know, and those given twice, are errors.
func decode(text string, object any) error {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return err
	}
	strict, err := json.UnmarshalStrict(data, object)
	return errors.Join(append(strict, err)...)
}

// required returns the fields below v that are not set and that the API wants: their tags
// have no omitempty. The status is the server's.
func required(v reflect.Value, path string) (missing []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return required(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			missing = append(missing, required(v.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case reflect.Struct:
		switch v.Interface().(type) {
		case resource.Quantity, intstr.IntOrString, meta.Time:
			return nil
		}
		for i := range v.NumField() {
			field, value := v.Type().Field(i), v.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "status" {
				continue
			}
			optional := slices.Contains(strings.Split(options, ","), "omitempty") || field.Anonymous
			kind := value.Kind()
			if !optional && value.IsZero() && (kind == reflect.String || kind == reflect.Slice || kind == reflect.Pointer) {
				missing = append(missing, path+"."+name)
			}
			missing = append(missing, required(value, path+"."+name)...)
		}
	}
	return missing
}
