package main

import (
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
)

var small = load{noisy: 1000, quiet: 2, slots: 4, work: 100 * time.Microsecond}

// The order of service does not depend on the machine. Ten places are left for jobs that begin at once.
func TestQuietTenantsDoNotWaitForANoisyOneInLanes(t *testing.T) {
	client, err := open(t.Context(), redistest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	oneLine, lanes, err := measure(t.Context(), client, small)
	if err != nil {
		t.Fatal(err)
	}
	if at := slowest(oneLine).place; at < small.noisy+quietTenants*small.quiet-10 {
		t.Errorf("in one line the last quiet job is served as number %d", at)
	}
	if at := slowest(lanes).place; at > (quietTenants+1)*small.quiet+10 {
		t.Errorf("in lanes the last quiet job is served as number %d", at)
	}
}

func TestTheTableShowsBoth(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, "", small); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"in one line", "in lanes", "noisy  1000 ", "quiet-01     2 ", "quiet-50", "quiet-99", "slowest quiet"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
}
