package main

import (
	"fmt"
	"math"
	"slices"
)

// point is a sample of a gauge at a monotonic time.
type point struct {
	at    int64
	value float64
}

// trend is what a series does from a time on.
type trend struct {
	start, growth, noise float64 // noise is the error of growth, three times its standard deviation
}

const blocks = 8 // at most; each is long enough to even out what comes and goes

// trendOf fits a line through the medians of equal spans of time. Neighbouring samples resemble each other, so
// single ones would make the error of the line look smaller than it is.
func trendOf(points []point) (trend, error) {
	if len(points) < 3*blocks {
		return trend{}, fmt.Errorf("only %d samples", len(points))
	}
	var medians [blocks]float64
	for i := range medians {
		values := make([]float64, 0, len(points)/blocks+1)
		for _, p := range points[i*len(points)/blocks : (i+1)*len(points)/blocks] {
			values = append(values, p.value)
		}
		slices.Sort(values)
		medians[i] = values[len(values)/2]
	}
	const middle = float64(blocks-1) / 2
	mean, slope, spread := 0.0, 0.0, 0.0
	for i, m := range medians {
		mean += m / blocks
		slope += (float64(i) - middle) * m
		spread += (float64(i) - middle) * (float64(i) - middle)
	}
	slope /= spread
	rest := 0.0
	for i, m := range medians {
		d := m - mean - slope*(float64(i)-middle)
		rest += d * d
	}
	deviation := math.Sqrt(rest / (blocks - 2) / spread)
	return trend{start: mean - slope*middle, growth: slope * (blocks - 1), noise: 3 * deviation * (blocks - 1)}, nil
}

// grows tells whether a series has grown by more than is allowed, and not by chance.
func (t trend) grows(allowed float64) bool { return t.growth-t.noise > allowed }

// settled drops what was sampled before a time.
func settled(points []point, since int64) []point {
	i := slices.IndexFunc(points, func(p point) bool { return p.at >= since })
	if i < 0 {
		return nil
	}
	return points[i:]
}
