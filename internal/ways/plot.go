package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/internal/benchmark"
)

const plotWidth = 900

// plot draws a line for each way, with a mark for each number of goroutines, over a
// logarithmic axis of keys per second. A way that was not measured is an error.
func plot(r *benchmark.Results) ([]byte, error) {
	const (
		left, right, top, row = 300, 60, 84, 28
		width                 = plotWidth
		low, high             = 2.0, 8.0 // powers of ten
	)
	list := ways()
	bottom := top + row*len(list)
	x := func(rate float64) float64 {
		rate = max(rate, math.Pow(10, low))
		return left + (width-left-right)*(math.Log10(rate)-low)/(high-low)
	}
	marks := []struct {
		color string
		size  float64
	}{{"#E69F00", 4}, {"#009E73", 5.5}, {"#0072B2", 7}} // from Okabe and Ito's palette
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="DejaVu Sans, Verdana, sans-serif" font-size="13" fill="#222">`,
		width, bottom+60, width, bottom+60)
	p(`<title>Keys per second by each way</title><rect width="%d" height="%d" fill="#fff"/>`, width, bottom+60)
	p(`<text x="20" y="26" font-size="16" font-weight="bold">Keys per second, by 1, 8 and 64 goroutines</text>`)
	p(`<text x="20" y="46" fill="#555">more is better; logarithmic scale; %s cores, servers on the same machine, %s</text>`,
		html.EscapeString(r.Config["cores"]), html.EscapeString(r.Config["go"]))
	for i, m := range marks {
		at := left + 120*i
		p(`<circle cx="%d" cy="66" r="%g" fill="%s"/><text x="%d" y="70">c = %d</text>`, at, m.size, m.color, at+14, callerCounts[i])
	}
	for power := low; power <= high; power++ {
		at := x(math.Pow(10, power))
		p(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`, at, top, at, bottom)
		p(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, at, bottom+20, benchmark.Thousands(math.Pow(10, power)))
	}
	for i, w := range list {
		y := top + row*i + row/2
		title := strings.ReplaceAll(strings.ReplaceAll(w.title, "`", ""), "**", "")
		bold := ""
		if title != strings.ReplaceAll(w.title, "`", "") {
			bold = ` font-weight="bold"`
		}
		p(`<text x="20" y="%d"%s>%s</text>`, y+4, bold, html.EscapeString(title))
		var least, most float64
		for j, c := range callerCounts {
			rate := measured(r, c, w, "IDs/s")
			if math.IsNaN(rate) {
				return nil, fmt.Errorf("the picture needs keys per second of %s by %d goroutines", w.name, c)
			}
			if least == 0 || rate < least {
				least = rate
			}
			most = max(most, rate)
			if j == len(callerCounts)-1 {
				p(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#bbb" stroke-width="2"/>`, x(least), y, x(most), y)
			}
		}
		for j, c := range slices.Backward(callerCounts) { // the smallest mark on top
			p(`<circle cx="%.1f" cy="%d" r="%g" fill="%s"/>`, x(measured(r, c, w, "IDs/s")), y, marks[j].size, marks[j].color)
		}
	}
	p(`<text x="%d" y="%d" text-anchor="middle">keys per second</text></svg>`, (left+width-right)/2, bottom+46)
	return []byte(b.String()), nil
}
