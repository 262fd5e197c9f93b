package scripts

import "fmt"

// debounced is the unique job whose payload tells which call it is from.
func debounced(id string) enqueue {
	e := only(id)
	e.Debounce, e.Payload = true, []byte("from "+id)
	return e
}

func (e enqueue) untilStart() enqueue { e.UntilStart = true; return e }

func (e enqueue) in(lane string) enqueue { e.Lane = lane; return e }

func (e enqueue) with(fields ...string) enqueue {
	e.Fields = append(append([]string{}, e.Fields...), fields...)
	return e
}

func debounceScenarios() []scenario {
	all := []scenario{
		{"without a holder it is an ordinary job", func(s *scene) {
			s.says("enqueued", debounced(jobA))
			s.says("duplicate src00001", debounced(jobA))
			s.all(claimBy("mine0001"), complete{Fence: mine})
			s.says("enqueued", debounced(jobB).parked())
			s.says("EMQKIND", debounced("USR0KHTOWnGLuA"))
		}},
		{"a full queue takes no new one, but changes the one that waits", func(s *scene) {
			s.all(setMeta("max_len", "1"), enter(jobC))
			s.says("EMQFULL", debounced(jobA))
			s.all(setMeta("max_len", "2"), debounced(jobA))
			s.says("replaced "+jobA, debounced(jobB))
		}},
		{"a holder that another way of enqueueing made is replaced too", func(s *scene) {
			s.all(only(jobA))
			s.says("replaced "+jobA, debounced(jobB))
			s.says("conflict "+jobA, only(jobC))
		}},
		{"a call that is sent again changes nothing", func(s *scene) {
			s.all(debounced(jobA))
			s.says("replaced "+jobA, debounced(jobB).parked())
			s.pass(delay / 2)
			s.leaves(debounced(jobB).parked())
			s.says("duplicate src00001", debounced(jobA))
			s.says("replaced "+jobA, debounced(jobC))
			s.all(claimBy("mine0001"))
			s.says("replaced "+jobA, debounced(jobC)) // it carried this payload into its run
			s.says("conflict "+jobA, debounced(jobB))
		}},
		{"a holder that runs is left alone", func(s *scene) {
			s.all(debounced(jobA), claimBy("mine0001"))
			s.says("conflict "+jobA, debounced(jobB))
			s.leaves(debounced(jobB).parked())
			s.all(complete{Fence: mine})
			s.says("enqueued", debounced(jobB))
		}},
		{"a holder until the start that runs holds nothing", func(s *scene) {
			s.all(debounced(jobA).untilStart())
			s.says("replaced "+jobA, debounced(jobB).untilStart())
			s.all(claimBy("mine0001"))
			s.says("enqueued", debounced(jobC).untilStart())
		}},
		{"the mode of the key is the new job's", func(s *scene) {
			s.all(debounced(jobA).untilStart())
			s.says("replaced "+jobA, debounced(jobB))
			s.all(claimBy("mine0001"))
			s.says("conflict "+jobA, debounced(jobC))
		}},
		{"a holder that is kept, dead or gone holds nothing", func(s *scene) {
			s.all(debounced(jobA), claimBy("mine0001"), complete{mine, delay2, "{}"})
			s.says("enqueued", debounced(jobB))
			s.all(claimBy("mine0001"), kill{fenceOf(jobB, 1, "mine0001"), "poisoned"})
			s.says("enqueued", debounced(jobC))
			s.all(deleteRow(jobC))
			s.says("enqueued", debounced(jobN(1)))
			s.all(spoilRow(jobN(1)))
			s.says("enqueued", debounced(jobN(2)))
		}},
		{"a job of another kind is never changed", func(s *scene) {
			other := debounced(jobB)
			other.Fields = []string{"kind", "another"}
			s.all(debounced(jobA))
			s.leaves(other)
			s.says("conflict "+jobA, other)
		}},
		{"a window's job is never changed", func(s *scene) {
			s.all(onlyFor(jobA, delay))
			s.says("conflict "+jobA, debounced(jobB))
			s.all(claimBy("mine0001"), complete{Fence: mine})
			s.says("conflict "+jobA, debounced(jobB))
		}},
		{"version, headers and attempts are the new job's", func(s *scene) {
			s.all(debounced(jobA).with("v", "2", "headers", `{"trace":"abc"}`, "max", "2"))
			s.says("replaced "+jobA, debounced(jobB))
			s.says("replaced "+jobA, debounced(jobC).with("v", "3", "headers", `{"trace":"abc"}`, "max", "4"))
			s.all(claimBy("mine0001"))
		}},
		{"what the last payload has spent is forgiven", func(s *scene) {
			s.all(debounced(jobA), claimBy("mine0001"), retry{mine, delay, 2, "broken"})
			s.says("replaced "+jobA, debounced(jobB))
			s.all(claimBy("other001"))
			second := fenceOf(jobA, 2, "other001")
			s.says("scheduled", retry{second, delay, 2, "broken"})
			s.promoteAll()
			s.lapse(5)
			s.says("replaced "+jobA, debounced(jobC).parked())
		}},
		{"a claim that lapsed before cannot settle the new payload", func(s *scene) {
			s.all(debounced(jobA), claimBy("mine0001"))
			s.lapse(5)
			s.says("replaced "+jobA, debounced(jobB))
			s.says("again", complete{Fence: mine})
			s.leaves(retry{mine, delay, 5, "broken"})
			s.all(claimBy("other001"), complete{Fence: fenceOf(jobA, 2, "other001")})
		}},
		{"who listens hears of a job that is parked anew, and of its end", func(s *scene) {
			s.all(setMeta("events", "1"), debounced(jobA).parked(), await{jobA})
			s.says("replaced "+jobA, debounced(jobB).parked())
			s.says("replaced "+jobA, debounced(jobC))
			s.all(claimBy("mine0001"), complete{Fence: mine})
		}},
		{"the last job of its lane keeps the lane's turn", func(s *scene) {
			s.all(tune{"b", "weight", 10}, debounced(jobA).in("a"))
			for n := range 9 {
				s.all(inLane(jobN(n), "b"))
			}
			s.all(claim{Lease: lease, N: 5, By: "mine0001"})
			s.says("replaced "+jobA, debounced(jobB).in("a"))
			s.all(claim{Lease: lease, N: 9, By: "mine0002"})
		}},
		{"the pump learns of a time that has come nearer", func(s *scene) {
			s.all(enter(jobC).parked(), popPump())
			far := debounced(jobA)
			far.Later, far.Delay = true, delay2
			s.all(far)
			near := debounced(jobB)
			near.Later, near.Delay = true, delay/2
			s.says("replaced "+jobA, near)
			s.all(popPump())
			far.ID = jobN(1)
			s.says("replaced "+jobA, far)
		}},
	}
	waits := map[string]func(id string) enqueue{
		"now":   debounced,
		"later": func(id string) enqueue { return debounced(id).parked() },
		"much later": func(id string) enqueue {
			e := debounced(id)
			e.Later, e.Delay = true, delay2
			return e
		},
	}
	for was, first := range waits {
		for is, then := range waits {
			for _, lanes := range [][2]string{{"", ""}, {"a", "a"}, {"a", "b"}, {"a", ""}, {"", "a"}} {
				all = append(all, scenario{
					fmt.Sprintf("from %s in lane %q to %s in lane %q", was, lanes[0], is, lanes[1]), func(s *scene) {
						s.all(inLane(jobC, "a"), inLane(jobN(1), "b"), claimBy("mine0001"))
						s.all(first(jobA).in(lanes[0]), popWake(), popPump())
						s.pass(delay / 2)
						s.says("replaced "+jobA, then(jobB).in(lanes[1]))
						s.leaves(then(jobB).in(lanes[1]))
						s.promoteAll()
						s.all(claim{Lease: lease, N: 9, By: "other001"})
						s.all(complete{Fence: fenceOf(jobA, 1, "other001")})
						s.says("enqueued", debounced(jobN(2)))
					}})
			}
		}
	}
	return all
}
