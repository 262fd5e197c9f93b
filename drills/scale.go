package main

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

func scaleDrills() []drill {
	return []drill{
		{"pumps", "strangers take the pumps of all queues all the time, the workers' own calls come late, workers die", manyPumps, together},
		{"flood", "very many jobs are due at one instant", flood, alone},
		{"endings", "very many jobs end in every way, and then the queue is idle", allEndings, together},
		{"crowd", "very many jobs in each state, and every verb", crowded, alone},
	}
}

// ahead lets a server have a processor whenever it wants one, so that what a command takes by the clock is its
// own time. It needs root; without it meter takes off what the server has waited.
func (st *stage) ahead(s *redistest.Server) (pid int) {
	pid = st.pidOf(s)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1} // a nice value counts only within its group
	if err := unix.SchedSetAttr(pid, &attr, 0); err != nil {
		st.figure("the server is not kept ahead of others: %v", err)
	}
	return pid
}

// fillText writes rows of a state, and lists them: KEYS base; ARGV state, list (” for lanes), from, to, lanes,
// the first and the step of the scores (the second moves on by one each 100 jobs), the ids' beginning.
const fillText = `
local base, digits = KEYS[1], '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
local state, list, lanes, score, step = ARGV[1], ARGV[2], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
for i = tonumber(ARGV[3]), tonumber(ARGV[4]) - 1 do
  local n, id = i, ''
  for _ = 1, 6 do
    id = string.sub(digits, n % 62 + 1, n % 62 + 1) .. id
    n = math.floor(n / 62)
  end
  id = 'JOB' .. ARGV[8] .. id
  local row = base .. 'job:' .. id
  redis.call('HSET', row, 'state', state, 'attempts', state == 'pending' and 0 or 1, 'payload', '{"n":' .. i .. '}', 'src', 'src00001', 'kind', 'parcel',
    'unique', ARGV[8] .. i)
  if state == 'dead' or state == 'completed' then
    redis.call('HSET', row, 'settled_at', score, 'last_error', 'the disk is full, as it was yesterday')
  else
    redis.call('SET', base .. 'de:' .. ARGV[8] .. i, id)
  end
  if lanes > 0 then
    redis.call('HSET', row, 'group', 'lane ' .. i % lanes)
  end
  local at = score + step * math.floor(i / 100)
  if lanes > 0 and state == 'pending' then
    redis.call('ZADD', base .. 'g:lane ' .. i % lanes .. ':pending', 0, id)
    redis.call('ZADD', base .. 'ring', 'NX', 1, 'lane ' .. i % lanes)
    redis.call('HINCRBY', base .. 'meta', 'laned', 1)
  elseif lanes > 0 and state == 'active' then
    redis.call('SADD', base .. 'g:lane ' .. i % lanes .. ':active', id)
  end
  if state == 'dead' then
    redis.call('ZADD', base .. 'dead:at', at, id)
    at = 0
  end
  if list ~= '' then
    redis.call('ZADD', base .. list, at, id)
  end
end
return 1`

// batch is what fill writes.
type batch struct {
	state, list, ids string
	n, lanes         int
	score            time.Time // zero: 0 for all
	step             int       // ms of score each 100 jobs
}

// fill writes rows as the transitions leave them, by a script: faster than any client could enqueue.
func (st *stage) fill(raw node, queue string, b batch) {
	score := int64(0)
	if !b.score.IsZero() {
		score = b.score.UnixMilli()
	}
	const part = 1000
	for from := 0; from < b.n; from += part {
		st.must("fill the queue", raw.do("EVAL", fillText, "1", "emq:{"+queue+"}:", b.state, b.list, strconv.Itoa(from), strconv.Itoa(min(from+part, b.n)),
			strconv.Itoa(b.lanes), strconv.FormatInt(score, 10), strconv.Itoa(b.step), b.ids).Error())
		st.must("the drill", st.ctx.Err())
	}
}

// memory is what a server uses, in bytes.
func (st *stage) memory(s *redistest.Server) int {
	info, err := s.Info("memory")
	st.must("read the server's memory", err)
	n, err := strconv.Atoi(info["used_memory"])
	st.must("read the server's memory", err)
	return n
}

// counts are a queue's.
func (st *stage) counts(c *emq.Client, queue string) emq.Counts {
	n, err := c.Queue(queue).Counts(st.ctx)
	st.must("Counts", err)
	return n
}
