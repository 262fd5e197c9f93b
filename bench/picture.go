package main

import (
	"bytes"
	"image/color"
	"os"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawSamples draws a tile for each thing that grows, a line for each step.
func drawSamples(path string, samples []sample) error {
	const columns, rows = 2, 3
	tiles := [rows][columns]string{{"pending", "scheduled"}, {"active", "lanes"}, {"processes", "shards"}}
	plots := make([][]*plot.Plot, rows)
	for r := range rows {
		for c := range columns {
			p, err := drawTile(samples, tiles[r][c])
			if err != nil {
				return err
			}
			plots[r] = append(plots[r], p)
		}
	}
	canvas := vgsvg.New(24*vg.Centimeter, 24*vg.Centimeter)
	at := draw.New(canvas)
	at.SetColor(color.White)
	at.Fill(at.Rectangle.Path()) // readable on a dark page too
	pad := vg.Points(8)
	places := plot.Align(plots, draw.Tiles{Rows: rows, Cols: columns, PadX: pad, PadY: pad, PadTop: pad, PadBottom: pad, PadLeft: pad, PadRight: pad}, at)
	for r := range rows {
		for c := range columns {
			plots[r][c].Draw(places[r][c])
		}
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func drawTile(samples []sample, grows string) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text = map[string]string{
		"pending": "jobs that wait", "scheduled": "jobs scheduled", "active": "jobs that run", "lanes": "lanes", "processes": "worker processes",
		"shards": "shards, each on a node of its own",
	}[grows]
	p.Y.Label.Text = "µs of the server, a job"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min, p.Legend.Top, p.Legend.Left = 0, true, true
	p.Add(plotter.NewGrid())
	lines := make(map[string]plotter.XYs)
	var steps []string
	highest := 0.0
	for _, s := range samples {
		if s.grows != grows || s.size == 0 { // no lanes at all has no place on a logarithmic axis
			continue
		}
		if !slices.Contains(steps, s.step) {
			steps = append(steps, s.step)
		}
		lines[s.step] = append(lines[s.step], plotter.XY{X: float64(s.size), Y: s.us})
		highest = max(highest, s.us)
	}
	p.Y.Max = highest * 1.6 // room for the legend
	for i, step := range steps {
		line, points, err := plotter.NewLinePoints(lines[step])
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, line.Dashes = plotutil.Color(i), vg.Points(1.5), plotutil.Dashes(i)
		points.Color, points.Shape = plotutil.Color(i), plotutil.Shape(i)
		p.Add(line, points)
		p.Legend.Add(step, line, points)
	}
	return p, nil
}
