package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func contentionSample(leaveOut string) string {
	var raw strings.Builder
	raw.WriteString("cpu: A <fast> & B\n")
	for i, c := range curves {
		for _, n := range counts {
			if name := fmt.Sprintf("c=%d/%s", n, c.name); name != leaveOut {
				fmt.Fprintf(&raw, "BenchmarkContention/%s-2 1 1 ns/op %d ns/ID\n", name, 30+20*i)
			}
		}
	}
	return raw.String()
}

func TestThePictureIsWellFormedAndHasEveryCurve(t *testing.T) {
	picture, err := plot(mustParse(t, contentionSample("")))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for d := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("plot gives XML that does not parse: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
			for _, a := range e.Attr {
				if a.Name.Local == "points" && len(strings.Fields(a.Value)) != len(counts) {
					t.Errorf("polyline %s has %d points; want %d", a.Value, len(strings.Fields(a.Value)), len(counts))
				}
			}
		}
	}
	if lines != len(curves) {
		t.Errorf("plot draws %d curves; want %d", lines, len(curves))
	}
}

func TestThePictureRefusesACurveWithAHole(t *testing.T) {
	if picture, err := plot(mustParse(t, contentionSample("c=8/bwmarrin"))); err == nil {
		t.Errorf("plot without c=8/bwmarrin = %d bytes, nil; want an error", len(picture))
	}
}

func TestLegendEntriesKeepTheirDistanceAndOrder(t *testing.T) {
	got := apart([]float64{100, 101, 102, 200, 299, 300}, 20, 0, 300)
	if want := []float64{100, 120, 140, 200, 280, 300}; !slices.Equal(got, want) {
		t.Errorf("apart = %v; want %v", got, want)
	}
}

func TestAxisStepsAreRound(t *testing.T) {
	for most, want := range map[float64]float64{8: 1, 9: 2, 40: 5, 57: 10, 160: 20, 274: 50} {
		if got := tickStep(most); got != want {
			t.Errorf("tickStep(%v) = %v; want %v", most, got, want)
		}
	}
}
