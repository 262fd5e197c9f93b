package main

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// control does by plain commands, on the same server, what the verbs did: it writes as many keys as there have
// been and deletes them, 200 at a time. What is slow among these is the server, or the machine.
func (cr *crowd) control() {
	st := cr.st
	rows := cr.most / 2
	writing := cr.m.aside("as many keys by HSET and SET", func() (int, error) { return rows, cr.plainly(rows) })
	deleting := cr.m.aside("the same keys by DEL of 200", func() (int, error) { return rows, cr.deletePlainly(rows) })
	// the same without the thread that gives memory back beside the commands
	st.must("end the background thread", cr.m.raw.do("CONFIG", "SET", "jemalloc-bg-thread", "no").Error())
	st.must("write the keys again", cr.plainly(rows))
	cr.m.aside("with jemalloc-bg-thread no", func() (int, error) { return rows, cr.deletePlainly(rows) })
	cr.m.judge(writing, deleting)
}

// plain are the keys of a row as fill writes them.
func plain(i int) (row, unique string) {
	n := strconv.Itoa(i)
	return "emq:{" + parcels + "}:job:JOB0SX1k" + n, "emq:{" + parcels + "}:de:0SX1k" + n
}

// plainly writes rows and unique keys by a command for each.
func (cr *crowd) plainly(rows int) error {
	const part = 500
	raw := cr.m.raw.raw
	score := strconv.FormatInt(time.Now().UnixMilli(), 10)
	for from := 0; from < rows; from += part {
		commands := make([]rueidis.Completed, 0, 2*part)
		for i := from; i < min(from+part, rows); i++ {
			row, unique := plain(i)
			commands = append(commands,
				raw.B().Arbitrary("HSET", row, "state", "scheduled", "attempts", "1", "payload", `{"n":`+strconv.Itoa(i)+`}`, "src", "src00001", "kind", "parcel",
					"unique", unique, "group", "lane "+strconv.Itoa(i%crowdLanes), "due", score).Build(),
				raw.B().Arbitrary("SET", unique, row).Build())
		}
		ctx, cancel := context.WithTimeout(cr.st.ctx, 10*time.Second)
		for _, reply := range raw.DoMulti(ctx, commands...) {
			if err := reply.Error(); err != nil {
				cancel()
				return err
			}
		}
		cancel()
	}
	return nil
}

// deletePlainly deletes them in the order in which they were written.
func (cr *crowd) deletePlainly(rows int) error {
	const part = 100
	for from := 0; from < rows; from += part {
		words := append(make([]string, 0, 1+2*part), "DEL")
		for i := from; i < min(from+part, rows); i++ {
			row, unique := plain(i)
			words = append(words, row, unique)
		}
		if err := cr.m.raw.do(words...).Error(); err != nil {
			return err
		}
		if err := cr.st.ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
