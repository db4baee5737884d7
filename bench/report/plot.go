package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// point is a place of a line.
type point struct {
	x, y float64
	tip  string // shown when the pointer rests on it
}

// line is one series of a plot.
type line struct {
	name   string
	points []point
}

// axis is how numbers become places along one side of a plot.
type axis struct {
	label string
	log   bool
	// ticks, unless empty, are where the axis is marked, and names what is
	// written there.
	ticks []float64
	names []string
}

// plot is a diagram of lines, drawn as SVG. Its colours come from the page.
type plot struct {
	title string
	x, y  axis
	lines []line
	// bound, unless 0, is a level that y should stay below.
	bound float64
}

// The size of a plot in its own units; the page scales it.
const (
	plotWidth, plotHeight           = 560, 300
	plotLeft, plotRight             = 62, 12
	plotTop, plotBottom             = 14, 42
	innerWidth, innerHeight         = plotWidth - plotLeft - plotRight, plotHeight - plotTop - plotBottom
	dotsMax                         = 60 // points of a line up to which each has a dot
	ticksWanted             float64 = 5
)

// svg draws the plot, or nothing without points.
func (p *plot) svg() template.HTML {
	xs, ys := p.extent()
	if len(xs) == 0 {
		return ""
	}
	if p.bound > 0 {
		ys = append(ys, p.bound)
	}
	x, y := newScale(&p.x, xs, innerWidth), newScale(&p.y, ys, innerHeight)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, plotWidth, plotHeight, html.EscapeString(p.title))
	p.grid(&b, x, y)
	for i, l := range p.lines {
		p.draw(&b, i, l, x, y)
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) //nolint:gosec // made of numbers and escaped text
}

// extent lists the coordinates of every point.
func (p *plot) extent() (xs, ys []float64) {
	for _, l := range p.lines {
		for _, pt := range l.points {
			xs, ys = append(xs, pt.x), append(ys, pt.y)
		}
	}
	return xs, ys
}

func (p *plot) grid(b *strings.Builder, x, y *scale) {
	for i, v := range y.ticks {
		at := plotTop + innerHeight - y.at(v)
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, plotLeft, at, plotWidth-plotRight, at)
		fmt.Fprintf(b, `<text class="tick" x="%d" y="%.1f" text-anchor="end">%s</text>`, plotLeft-6, at+4, y.names[i])
	}
	for i, v := range x.ticks {
		at := plotLeft + x.at(v)
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, at, plotTop, at, plotTop+innerHeight)
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%d" text-anchor="middle">%s</text>`, at, plotTop+innerHeight+16, x.names[i])
	}
	if p.bound > 0 {
		at := plotTop + innerHeight - y.at(p.bound)
		fmt.Fprintf(b, `<line class="bound" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, plotLeft, at, plotWidth-plotRight, at)
	}
	fmt.Fprintf(b, `<text class="label" x="%d" y="%d" text-anchor="middle">%s</text>`, plotLeft+innerWidth/2, plotHeight-6, html.EscapeString(p.x.label))
	fmt.Fprintf(b, `<text class="label" transform="translate(13 %d) rotate(-90)" text-anchor="middle">%s</text>`, plotTop+innerHeight/2, html.EscapeString(p.y.label))
}

func (p *plot) draw(b *strings.Builder, i int, l line, x, y *scale) {
	fmt.Fprintf(b, `<g class="s%d"><polyline points="`, i%6)
	for _, pt := range l.points {
		fmt.Fprintf(b, "%.1f,%.1f ", plotLeft+x.at(pt.x), plotTop+innerHeight-y.at(pt.y))
	}
	b.WriteString(`"/>`)
	if len(l.points) <= dotsMax {
		for _, pt := range l.points {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="2.6"><title>%s: %s</title></circle>`,
				plotLeft+x.at(pt.x), plotTop+innerHeight-y.at(pt.y), html.EscapeString(l.name), html.EscapeString(pt.tip))
		}
	}
	b.WriteString(`</g>`)
}

// scale maps values to a length.
type scale struct {
	from, to, length float64
	log              bool
	ticks            []float64
	names            []string
}

func newScale(a *axis, values []float64, length float64) *scale {
	s := &scale{log: a.log, length: length, from: math.Inf(1), to: math.Inf(-1), ticks: a.ticks, names: a.names}
	for _, v := range append(values, a.ticks...) {
		if a.log && v <= 0 {
			continue // it is drawn at the lower end
		}
		s.from, s.to = min(s.from, v), max(s.to, v)
	}
	switch {
	case len(a.ticks) > 0:
	case math.IsInf(s.from, 1):
		s.from, s.to = 1, 10
		s.decades()
	case a.log:
		s.decades()
	default:
		s.steps()
	}
	return s
}

// decades marks a logarithmic scale at 1, 2 and 5 of each power of ten.
func (s *scale) decades() {
	low, high := math.Floor(math.Log10(s.from)), math.Ceil(math.Log10(s.to))
	if high <= low {
		high = low + 1
	}
	marks := []float64{1, 2, 5}
	if high-low > 2 {
		marks = []float64{1}
	}
	s.from, s.to = math.Pow(10, low), math.Pow(10, high)
	for e := low; e <= high; e++ {
		for _, m := range marks {
			if v := m * math.Pow(10, e); v <= s.to {
				s.mark(v)
			}
		}
	}
}

// steps marks a linear scale from nothing, at round numbers.
func (s *scale) steps() {
	s.from = min(s.from, 0)
	if s.to <= s.from {
		s.to = s.from + 1
	}
	step := math.Pow(10, math.Floor(math.Log10((s.to-s.from)/ticksWanted)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (s.to-s.from)/(step*m) <= ticksWanted {
			step *= m
			break
		}
	}
	s.from, s.to = math.Floor(s.from/step)*step, math.Ceil(s.to/step)*step
	for i := range int(math.Round((s.to-s.from)/step)) + 1 {
		s.mark(s.from + float64(i)*step)
	}
}

func (s *scale) mark(v float64) {
	s.ticks, s.names = append(s.ticks, v), append(s.names, short(v))
}

func (s *scale) at(v float64) float64 {
	from, to := s.from, s.to
	if s.log {
		v, from, to = math.Log10(max(v, from)), math.Log10(from), math.Log10(to)
	}
	if to == from {
		return 0
	}
	return (v - from) / (to - from) * s.length
}

// short writes a mark of an axis in few letters.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return trimZero(fmt.Sprintf("%.1f", v/1e6)) + "M"
	case a >= 1e4:
		return trimZero(fmt.Sprintf("%.1f", v/1e3)) + "k"
	}
	return fmt.Sprintf("%.4g", v)
}

func trimZero(s string) string { return strings.TrimSuffix(s, ".0") }
