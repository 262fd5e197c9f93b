package emqtest_test

import (
	"testing"

	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/emqtest"
)

// What a test pays for one job: an enqueue and a Work.
func BenchmarkWork(b *testing.B) {
	env := emqtest.New(b)
	h := emq.Handle((&handled[greet]{}).handle)
	for b.Loop() {
		if _, err := emq.Enqueue(b.Context(), env.Client, greet{}); err != nil {
			b.Fatal(err)
		}
		env.Work(h)
	}
}
