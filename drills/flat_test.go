package main

import (
	"math/rand/v2"
	"testing"
)

// series has so many samples; the noise is up to so much on either side, and changes slowly.
func series(n int, noise float64, value func(i int) float64) []point {
	rng := rand.New(rand.NewPCG(1, 2))
	points, drift := make([]point, n), 0.0
	for i := range points {
		drift = 0.8*drift + 0.2*noise*(2*rng.Float64()-1)
		points[i] = point{int64(i), value(i) + drift}
	}
	return points
}

func TestALineThatGrowsIsToldFromOneThatIsNoisy(t *testing.T) {
	t.Parallel()
	const n, allowed = 200, 50.0
	for name, c := range map[string]struct {
		points []point
		grows  bool
	}{
		"flat":                    {series(n, 0, func(int) float64 { return 1000 }), false},
		"noisy":                   {series(n, 300, func(int) float64 { return 1000 }), false},
		"falls":                   {series(n, 10, func(i int) float64 { return 1000 - float64(i) }), false},
		"within what is allowed":  {series(n, 5, func(i int) float64 { return 1000 + 40*float64(i)/n }), false},
		"one peak":                {series(n, 5, func(i int) float64 { return 1000 + 5000*float64(i/150%2)*float64((i+1)/151%2) }), false},
		"a saw":                   {series(n, 5, func(i int) float64 { return 1000 + 20*float64(i%10) }), false},
		"grows":                   {series(n, 10, func(i int) float64 { return 1000 + float64(i) }), true},
		"grows among noise":       {series(n, 60, func(i int) float64 { return 1000 + 2*float64(i) }), true},
		"grows in steps":          {series(n, 5, func(i int) float64 { return 1000 + 100*float64(i/40) }), true},
		"a saw whose bottom goes": {series(n, 5, func(i int) float64 { return 1000 + 20*float64(i%10) + float64(i) }), true},
	} {
		got, err := trendOf(c.points)
		if err != nil {
			t.Fatal(err)
		}
		if got.grows(allowed) != c.grows {
			t.Errorf("%s: %+v, grows %t", name, got, got.grows(allowed))
		}
	}
	if _, err := trendOf(series(20, 0, func(int) float64 { return 1 })); err == nil {
		t.Error("twenty samples say nothing")
	}
	if rest := settled(series(n, 0, func(i int) float64 { return float64(i) }), 150); len(rest) != 50 || rest[0].value != 150 {
		t.Errorf("the warm-up is not dropped: %d samples", len(rest))
	}
	if rest := settled(series(n, 0, func(int) float64 { return 0 }), n); len(rest) != 0 {
		t.Errorf("%d samples after the end", len(rest))
	}
}
