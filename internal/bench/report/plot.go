package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// A curve is one line of the picture.
type curve struct {
	name  string // of the source
	label string
	color string // from Okabe and Ito's palette, which the colour-blind can tell apart
	dash  string
	mark  string // circle, square, triangle or diamond
	width float64
}

var curves = []curve{
	{"sonyflake", "sonyflake v2", "#56B4E9", "", "diamond", 1.8},
	{"article-mutex", "article, mutex", "#E69F00", "", "triangle", 1.8},
	{"bwmarrin", "bwmarrin", "#009E73", "", "square", 1.8},
	{"mutex+Since", "own mutex + time.Since", "#CC79A7", "", "circle", 1.8},
	{"article-lockfree", "article, lock-free (duplicates)", "#D55E00", "2 4", "triangle", 1.8},
	{"snowkey", "snowkey", "#0072B2", "", "circle", 3.2},
	{"floor=Since+Add", "floor: time.Since + atomic Add", "#555555", "7 4", "square", 1.8},
}

// The picture, in SVG units.
const (
	width, height            = 900, 480
	left, right, top, bottom = 74, 262, 64, 66
	plotWidth                = width - left - right
	plotHeight               = height - top - bottom
)

// plot draws ns per ID over the number of goroutines. That axis is logarithmic, because
// most counts double. A source or a count that was not measured is an error. A picture
// without its curve would look complete.
func plot(r *benchmark.Results) ([]byte, error) {
	most := 0.0
	values := map[string][]float64{}
	for _, c := range curves {
		for _, n := range counts {
			name := fmt.Sprintf("Contention/c=%d/%s", n, c.name)
			v, ok := r.Median(name, "ns/ID")
			if !ok {
				return nil, fmt.Errorf("the picture needs %s ns/ID", name)
			}
			values[c.name] = append(values[c.name], v)
			most = max(most, v)
		}
	}
	step := tickStep(most)
	axisEnd := step * math.Ceil(most/step)

	x := func(goroutines int) float64 {
		return left + plotWidth*math.Log2(float64(goroutines))/math.Log2(float64(counts[len(counts)-1]))
	}
	y := func(ns float64) float64 { return top + plotHeight*(1-ns/axisEnd) }

	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="DejaVu Sans, Verdana, sans-serif" font-size="13" fill="#222">`, width, height, width, height)
	p(`<title>Time per ID over the number of goroutines</title>`)
	p(`<rect width="%d" height="%d" fill="#fff"/>`, width, height)
	p(`<text x="%d" y="26" font-size="16" font-weight="bold">Time per ID, goroutines × 10,000 IDs each</text>`, left)
	p(`<text x="%d" y="46" fill="#555">lower is better; 22 sequence bits, so no layout cap; %s, %s cores, %s</text>`,
		left, html.EscapeString(r.Config["cpu"]), html.EscapeString(r.Config["cores"]), html.EscapeString(strings.Fields(r.Config["go"] + " Go")[0]))

	for ns := 0.0; ns <= axisEnd+step/2; ns += step {
		p(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`, left, y(ns), left+plotWidth, y(ns))
		p(`<text x="%d" y="%.1f" text-anchor="end">%g</text>`, left-9, y(ns)+4.5, ns)
	}
	for _, n := range counts {
		p(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#222"/>`, x(n), top+plotHeight, x(n), top+plotHeight+5)
		p(`<text x="%.1f" y="%d" text-anchor="middle">%d</text>`, x(n), top+plotHeight+21, n)
	}
	p(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="#222"/>`, left, top+plotHeight, left+plotWidth, top+plotHeight)
	p(`<text x="%d" y="%d" text-anchor="middle">goroutines (logarithmic scale)</text>`, left+plotWidth/2, height-18)
	p(`<text transform="translate(22 %d) rotate(-90)" text-anchor="middle">nanoseconds per ID (wall clock)</text>`, top+plotHeight/2)

	for _, c := range curves {
		var points []string
		for i, n := range counts {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(n), y(values[c.name][i])))
		}
		p(`<polyline points="%s" fill="none" stroke="%s" stroke-width="%g"%s/>`, strings.Join(points, " "), c.color, c.width, c.dashed())
		for i, n := range counts {
			p(`%s`, c.marker(x(n), y(values[c.name][i])))
		}
	}

	// The legend stands at the right ends of the curves, in their order, moved
	// apart where they meet.
	ends := slices.Clone(curves)
	last := len(counts) - 1
	slices.SortStableFunc(ends, func(a, b curve) int {
		if values[a.name][last] > values[b.name][last] {
			return -1
		}
		return 1
	})
	at := make([]float64, len(ends))
	for i, c := range ends {
		at[i] = y(values[c.name][last])
	}
	for i, pos := range apart(at, 19, top, top+plotHeight) {
		c := ends[i]
		p(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#bbb"/>`, x(counts[last])+7, at[i], x(counts[last])+22, pos)
		p(`%s`, c.marker(x(counts[last])+30, pos))
		bold := ""
		if c.name == "snowkey" {
			bold = ` font-weight="bold"`
		}
		p(`<text x="%.1f" y="%.1f"%s>%s</text>`, x(counts[last])+40, pos+4.5, bold, html.EscapeString(c.label))
	}
	p(`</svg>`)
	return []byte(b.String()), nil
}

func (c curve) dashed() string {
	if c.dash == "" {
		return ""
	}
	return fmt.Sprintf(` stroke-dasharray="%s"`, c.dash)
}

// marker draws the curve's mark with its centre at x, y.
func (c curve) marker(x, y float64) string {
	const r = 4.5
	switch c.mark {
	case "square":
		return fmt.Sprintf(`<rect x="%.1f" y="%.1f" width="%g" height="%g" fill="%s"/>`, x-r+0.5, y-r+0.5, 2*r-1, 2*r-1, c.color)
	case "triangle":
		return fmt.Sprintf(`<path d="M%.1f %.1fl%g %gh%gz" fill="%s"/>`, x, y-r-0.5, r+0.5, 2*r, -2*r-1, c.color)
	case "diamond":
		return fmt.Sprintf(`<path d="M%.1f %.1fl%g %gl%g %gl%g %gz" fill="%s"/>`, x, y-r-1, r, r+1, -r, r+1, -r, -r-1, c.color)
	}
	return fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="%g" fill="%s"/>`, x, y, r, c.color)
}

// tickStep returns 1, 2 or 5 times a power of ten, so that at most 8 steps reach
// most.
func tickStep(most float64) float64 {
	for power := math.Pow(10, math.Floor(math.Log10(most))-1); ; power *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if most <= 8*step*power {
				return step * power
			}
		}
	}
}

// apart returns positions near those of at, which ascend. They keep the order and are
// at least gap from each other. They are within low..high as far as there is room.
func apart(at []float64, gap, low, high float64) []float64 {
	out := slices.Clone(at)
	for i := range out {
		if i == 0 {
			out[i] = max(out[i], low)
		} else {
			out[i] = max(out[i], out[i-1]+gap)
		}
	}
	for i := len(out) - 1; i >= 0; i-- {
		if i == len(out)-1 {
			out[i] = min(out[i], high)
		} else {
			out[i] = min(out[i], out[i+1]-gap)
		}
	}
	return out
}
