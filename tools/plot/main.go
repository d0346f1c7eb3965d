// Command plot draws what test/bench has measured, as SVG. The same results yield the same drawings.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

// run draws what args ask for and tells stdout which files it wrote.
func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("plot", flag.ContinueOnError)
	input := flags.String("results", "", "The file of results that test/bench wrote.")
	output := flags.String("output", ".", "The folder to draw into.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	content, err := os.ReadFile(*input)
	if err != nil {
		return fmt.Errorf("reading results: %w", err)
	}
	var r results
	if err := json.Unmarshal(content, &r); err != nil {
		return fmt.Errorf("reading results: %s: %w", *input, err)
	}
	if err := os.MkdirAll(*output, 0o755); err != nil {
		return err
	}
	for _, d := range r.drawings() {
		path := filepath.Join(*output, "performance-"+d.name+".svg")
		p, err := d.draw()
		if err != nil {
			return fmt.Errorf("drawing %s: %w", d.name, err)
		}
		if err := save(p, path); err != nil {
			return fmt.Errorf("drawing %s: %w", d.name, err)
		}
		_, _ = fmt.Fprintln(stdout, path)
	}
	return nil
}

func save(p *plot.Plot, path string) error {
	writer, err := p.WriterTo(16*vg.Centimeter, 8*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	var svg bytes.Buffer
	if _, err := writer.WriteTo(&svg); err != nil {
		return err
	}
	// Few readers have this very font; without another one theirs would have serifs.
	const family = "font-family:Liberation Sans"
	content := bytes.ReplaceAll(svg.Bytes(), []byte(family), []byte(family+",Arial,Helvetica,sans-serif"))
	return os.WriteFile(path, content, 0o644)
}

// results are what test/bench writes, as far as it is drawn.
type results struct {
	Runs []struct {
		Count  int `json:"count"`
		Create *struct {
			Series []point `json:"series"`
			Calls  struct {
				ObjectWrites float64 `json:"objectWrites"`
				StatusWrites float64 `json:"statusWrites"`
				Reads        float64 `json:"reads"`
				Events       float64 `json:"events"`
			} `json:"calls"`
		} `json:"create"`
	} `json:"runs"`
	Soak *struct {
		Series []point `json:"series"`
	} `json:"soak"`
}

type point struct {
	Seconds    float64 `json:"seconds"`
	Ready      float64 `json:"ready"`
	Reconciles float64 `json:"reconciles"`
	CPUSeconds float64 `json:"cpuSeconds"`
	RSS        float64 `json:"rss"`
	Heap       float64 `json:"heap"`
}

// drawing is one file. It has lines or, with labels, groups of bars.
type drawing struct {
	name, title, x, y string
	labels            []string
	series            []series
}

type series struct {
	name   string
	points plotter.XYs // the Ys of bars
}

// drawings are those for which there are results.
func (r *results) drawings() []drawing {
	ready := drawing{name: "ready", title: "Custom resources that are Ready", x: "seconds since the first was created", y: "Ready"}
	cpu := drawing{name: "cpu", title: "The operator's CPU time during creation", x: "seconds since the first was created", y: "CPU seconds"}
	memory := drawing{name: "memory", title: "The operator's resident memory during creation", x: "seconds since the first was created", y: "MiB"}
	calls := drawing{
		name: "calls", title: "The operator's API calls per custom resource during creation", y: "calls",
		labels: []string{"object writes", "status writes", "reads", "events"},
	}
	var out []drawing
	for _, run := range r.Runs {
		if run.Create == nil {
			continue
		}
		name, n, c := fmt.Sprint(run.Count, " custom resources"), float64(run.Count), run.Create.Calls
		ready.add(name, run.Create.Series, seconds, func(p point) float64 { return p.Ready })
		cpu.add(name, run.Create.Series, seconds, func(p point) float64 { return p.CPUSeconds })
		memory.add(name, run.Create.Series, seconds, func(p point) float64 { return p.RSS })
		calls.series = append(calls.series, series{name, plotter.XYs{
			{Y: c.ObjectWrites / n}, {Y: c.StatusWrites / n}, {Y: c.Reads / n}, {Y: c.Events / n},
		}})
	}
	if len(ready.series) > 0 {
		out = append(out, ready, cpu, memory, calls)
	}
	if r.Soak != nil {
		soak := drawing{name: "soak", title: "The operator's memory over a long series of changes", x: "reconciliations", y: "MiB"}
		reconciles := func(p point) float64 { return p.Reconciles }
		soak.add("resident", r.Soak.Series, reconciles, func(p point) float64 { return p.RSS })
		soak.add("live heap", r.Soak.Series, reconciles, func(p point) float64 { return p.Heap })
		out = append(out, soak)
	}
	return out
}

func seconds(p point) float64 { return p.Seconds }

func (d *drawing) add(name string, points []point, x, y func(point) float64) {
	s := series{name: name}
	for _, p := range points {
		s.points = append(s.points, plotter.XY{X: x(p), Y: y(p)})
	}
	d.series = append(d.series, s)
}

// colors tell the series apart, also to those who see no difference between red and green.
var colors = []color.Color{
	color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
	color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
}

func (d *drawing) draw() (*plot.Plot, error) {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = d.title, d.x, d.y
	p.Title.Padding = 2 * vg.Millimeter
	p.X.Min, p.Y.Min = 0, 0
	p.Legend.Top, p.Legend.Left = true, d.labels == nil
	p.Legend.Padding = vg.Millimeter
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, color.Gray{Y: 0xdd}
	p.Add(grid)
	for i, s := range d.series {
		if err := d.addTo(p, i, s); err != nil {
			return nil, err
		}
	}
	if d.labels != nil {
		p.NominalX(d.labels...)
		p.X.Min, p.X.Max = -0.5, float64(len(d.labels))-0.5
	}
	p.Y.Max *= 1.3 // the legend's room
	return p, nil
}

func (d *drawing) addTo(p *plot.Plot, i int, s series) error {
	of := colors[i%len(colors)]
	if d.labels == nil {
		line, err := plotter.NewLine(s.points)
		if err != nil {
			return err
		}
		line.Color, line.Width = of, vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(s.name, line)
		return nil
	}
	width := vg.Centimeter
	bars, err := plotter.NewBarChart(plotter.YValues{XYer: s.points}, width)
	if err != nil {
		return err
	}
	bars.Color, bars.LineStyle.Width = of, 0
	bars.Offset = width * vg.Length(2*i-len(d.series)+1) / 2
	p.Add(bars)
	p.Legend.Add(s.name, bars)
	return nil
}
