package scripts

import (
	"crypto/sha1"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"testing"
)

type mutation struct{ name, old, new, subject string }

// mutations leave one rule out of the scripts each: the composed text has new for old wherever old
// stands. The suite must notice every one of them, and the subject is where it is expected to.
var mutations = []mutation{
	{"a wait leaves no mark", "redis.call('HSET', row, 'awaited', 1)", "", "announce"},
	{"a wait marks what has ended", "if r[1] == 'completed' or r[1] == 'dead' then", "if r[1] == 'completed' then", "announce"},
	{"a wait makes a row", "if not r[1] then\n  return redis.error_reply('EMQGONE no job ' .. ARGV[1])\nend\nif r[1] == 'c", "if r[1] == 'c", "announce"},
	{"who waits for a reaped job is not told", "awaited = r[8]", "awaited = false", "announce"},
	{"who waits for a cancelled job is not told", "awaited = r[4], logs = logged(row, r[5]) }\nif state == 'pending' then\n  unready(id, r[3])\nelse", "logs = logged(row, r[5]) }\nif state == 'pending' then\n  unready(id, r[3])\nelse", "announce"},
	{"who waits for a drained job is not told", "awaited = r[4], logs = logged(row, r[5]) } }", "logs = logged(row, r[5]) } }", "announce"},
	{"events are published while they are off", "  if loud then\n", "  if true then\n", "announce"},
	{"who waits for an end is not told", "if job.awaited and (event", "if false and (event", "announce"},
	{"ends that nobody waits for are told", "if job.awaited and (event", "if (event", "announce"},
	{"a job that waits again is told as an end", "or event == 'removed') then", "or event == 'removed' or event == 'released') then", "announce"},
	{"a settle forgets whether events are on", "  loud = m[2]\n", "  loud = false\n", "announce"},
	{"forgiven attempts are published", "job.attempts - (job.forgiven or 0)", "job.attempts + 0", "announce"},
	{"the worker of a cancelled job is not notified", "  redis.pcall('PUBLISH', base .. 'cancel', id)\n", "", "announce"},
	{"the fence ignores by", "(by ~= '' and r[3] ~= by)", "false", "settle"},
	{"the fence ignores attempts", "r[2] ~= token or", "false or", "settle"},
	{"a caller without by is refused", "(by ~= '' and r[3] ~= by)", "r[3] ~= by", "settle"},
	{"a stale settle is not counted", "redis.call('HINCRBY', m_stale, 'count', '1')", "", "settle"},
	{"a lapsed claim cannot settle late", "state == 'pending' and r[4] == token", "false", "settle"},
	{"any waiting job can be settled", "state == 'pending' and r[4] == token", "state == 'pending'", "settle"},
	{"a late settle leaves the job in pending", "    unready(id, job.lane)\n    redis.call('HDEL', row, 'lapsed')", "    redis.call('HDEL', row, 'lapsed')", "settle"},
	{"a late settle keeps its lapse", "redis.call('HDEL', row, 'lapsed')\n    job", "job", "settle"},
	{"a late settle keeps the attempt forgiven", "job.forgiven = redis.call('HINCRBY', row, 'forgiven', -1)", "", "reap"},
	{"a used token is used again", "  else\n    return 'again ' .. state", "  elseif state == 'completed' then\n    return 'again ' .. state", "settle"},
	{"take leaves the job in the active set", "  if state == 'active' then\n    vacate(id, job.lane)", "  if state == 'active' then\n", "settle"},
	{"an ended job frees the key of any holder", "return unique and redis.call('GET', base .. 'de:' .. unique) == id", "return unique", "unique"},
	{"an ended job keeps its key", "redis.call('DEL', base .. 'de:' .. unique)", "", "unique"},
	{"a buried job keeps its key", "  redis.call('HINCRBY', m_failed, 'count', '1')\n  if job.holds then", "  redis.call('HINCRBY', m_failed, 'count', '1')\n  if false then", "unique"},
	{"a completed job that is kept keeps its key", "    redis.call('ZADD', completed, t + retain, id)\n    if job.holds then", "    redis.call('ZADD', completed, t + retain, id)\n    if false then", "unique"},
	{"a vanished holder holds for ever", "return read(base .. 'job:' .. id, 'unique')[1] == unique and id", "return id", "unique"},
	{"a window is taken over from a job that has ended", "  if redis.call('PTTL', key) >= 0 then\n    return id\n  end\n", "", "unique"},
	{"a key held until the start is not freed", "    if f[2] then\n", "    if false then\n", "unique"},
	{"a start frees the key of any holder", "    if f[2] then\n", "    if true then\n", "unique"},
	{"a key held until the start stays in the row", "redis.call('HDEL', row, 'unique', 'unique_until')", "", "unique"},
	{"uniqueness comes before existence", "if redis.call('EXISTS', row) == 1 then", "if not (unique ~= '' and holder(unique)) and redis.call('EXISTS', row) == 1 then", "unique"},
	{"a duplicate overwrites the row", "if redis.call('EXISTS', row) == 1 then", "if false then", "verbs"},
	{"any id is a job's", "if string.sub(id, 1, 3) ~= 'JOB' then", "if false then", "admit"},
	{"gathered jobs are not counted against the limit", "room = room - 1", "", "admit"},
	{"a gathered call forgets what is scheduled", " - redis.call('ZCARD', schedule)", "", "admit"},
	{"a gathered call forgets what waits in lanes", " - (m[2] or 0)", "", "admit"},
	{"a gathered duplicate overwrites the row", "local there = redis.pcall('EXISTS', row)", "local there = 0", "admit"},
	{"a gathered call wakes nobody", "unpack(listed))\n  wake_workers()", "unpack(listed))", "admit"},
	{"gathered completions ignore by", "and r[2] == token and (by == '' or r[3] == by)\n", "and r[2] == token\n", "gathered"},
	{"gathered completions ignore attempts", "r[1] == 'active' and r[2] == token and (by == '' or r[3] == by)\n", "r[1] == 'active' and (by == '' or r[3] == by)\n", "gathered"},
	{"gathered completions ignore the state", "not r.err and r[1] == 'active' and", "not r.err and", "gathered"},
	{"gathered completions keep what a job owns", "\n    and not (r[4] or r[5] or r[6] or r[7])", "", "gathered"},
	{"gathered completions ignore the retention", "if not quiet or retain ~= '0' or deferred[id]", "if not quiet or deferred[id]", "gathered"},
	{"a gathered job is completed twice", "retain ~= '0' or deferred[id] then", "retain ~= '0' then", "gathered"},
	{"a gathered job is settled before its completion is written", "    if deferred[id] then\n      finish()\n    end\n", "", "gathered"},
	{"gathered completions leave the active set", "  redis.call('ZREM', active, unpack(ids))\n", "", "gathered"},
	{"gathered completions are counted as one", "redis.call('HINCRBY', m_completed, 'count', #ids)", "redis.call('HINCRBY', m_completed, 'count', 1)", "gathered"},
	{"gathered completions wake nobody", "if limit and before >= limit and", "if false and", "gathered"},
	{"gathered completions wake for nothing", "redis.call('ZCARD', active) < limit and ledger().servable()", "redis.call('ZCARD', active) < limit", "gathered"},
	{"no length limit", "if most and redis", "if false and redis", "limits"},
	{"the length limit forgets what is scheduled", " + redis.call('ZCARD', schedule) >=", " >=", "limits"},
	{"a full queue takes the key first", "  local m = redis.call('HMGET', meta, 'max_len', 'laned', 'events')", "  if unique ~= '' then redis.call('SET', unique_key, id) end\n  local m = redis.call('HMGET', meta, 'max_len', 'laned', 'events')", "unique"},
	{"a holder that runs is replaced", "if (r[1] ~= 'pending' and r[1] ~= 'scheduled') or r[2]", "if (not r[1]) or r[2]", "debounce"},
	{"a holder of another kind is replaced", " or r[2] ~= kind or", " or", "debounce"},
	{"a window's job is replaced", " or r[3] ~= ARGV[5] then", " then", "debounce"},
	{"a resent debounce replaces again", "if r[6] == id then", "if false then", "debounce"},
	{"a debounce keeps the old payload", "'payload', ARGV[2], 'replaced', id)", "'replaced', id)", "debounce"},
	{"a debounce keeps the version", "redis.call('HDEL', its_row, 'v', ", "redis.call('HDEL', its_row, ", "debounce"},
	{"a lapsed claim settles the payload that replaced its own", "'lapses', 'lapsed', 'last_error')", "'lapses', 'last_error')", "debounce"},
	{"a new payload inherits the attempts", "  redis.call('HSET', its_row, 'forgiven', r[5])\n", "", "debounce"},
	{"a new payload inherits the lapses", "'due', 'lapses', 'lapsed'", "'due', 'lapsed'", "debounce"},
	{"a debounced job is parked without a word", "    park(id, due)\n    announce('scheduled', its_row, {})\n", "    park(id, due)\n", "debounce"},
	{"a debounced job stays in the schedule", "  redis.call('ZREM', schedule, first)\n", "", "debounce"},
	{"a debounced job stays in its old lane", "elseif due or was ~= lane then", "elseif due then", "debounce"},
	{"a debounced job waits twice", "elseif due or was ~= lane then", "elseif was ~= lane then", "debounce"},
	{"a debounced job loses its place in its lane's turn", "elseif due or was ~= lane then", "else", "debounce"},
	{"a replaced job wakes nobody", "wait(first, its_row)\n", "if due then\n  park(first, due)\n  announce('scheduled', its_row, {})\nelse\n  ready(first, lane)\nend\n", "debounce"},
	{"a window never ends", "redis.call('SET', unique_key, id, 'PX', window)", "redis.call('SET', unique_key, id)", "unique"},
	{"a claim ignores the pause", "if m[1] then\n  return nothing()", "if false then\n  return nothing()", "limits"},
	{"a claim ignores the concurrency", "headroom = tonumber(m[2]) - redis.call('ZCARD', active)", "headroom = tonumber(m[2])", "limits"},
	{"a claim counts no attempt", "(r[2] or 0) + 1", "(r[2] or 0) + 0", "settle"},
	{"a claim writes no by", "'attempts', job[2] == 1 and '1' or job[2], 'by', by)", "'attempts', job[2])", "settle"},
	{"a claim takes what does not wait", "if r[1] == 'pending' and (r", "if r[1] and (r", "orphans"},
	{"a claim makes rows for orphans", "if r[1] == 'pending' and (r", "if (r[1] == 'pending' or not r[1]) and (r", "orphans"},
	{"orphans are not counted", "redis.call('HINCRBY', m_orphan, 'count', scanned - #jobs)", "", "orphans"},
	{"a claim passes no token on", "if headroom > #jobs and allowed > #jobs and", "if false and", "wake"},
	{"a claim at the limit passes a token on", "if headroom > #jobs and allowed > #jobs and", "if", "wake"},
	{"a claim spends nothing of the rate", "  spend(tat, spacing, #jobs)\n", "", "limits"},
	{"a rate catches up all unused time", "tat = math.max(tat, t - slack)", "", "limits"},
	{"a rate has no slack to pay for its bursts", "local spacing = (period + slack) / max", "local spacing = period / (max + 1)", "limits"},
	{"a clock that steps back shuts the rate", "tat = math.min(tonumber(tat or 0), t + spacing)", "tat = tonumber(tat or 0)", "limits"},
	{"a step back is forgotten", "      spend(tat, spacing, 0)\n", "", "limits"},
	{"retry prefers the worker's maximum", "(job.max or tonumber(max))", "tonumber(max)", "reap"},
	{"retry counts forgiven attempts", "job.attempts - job.forgiven >=", "job.attempts >=", "reap"},
	{"retry buries one attempt late", "job.attempts - job.forgiven >=", "job.attempts - job.forgiven >", "settle"},
	{"retry records no error", "'state', 'scheduled', 'last_error', reason)", "'state', 'scheduled')", "settle"},
	{"snooze forgives nothing", "redis.call('HSET', row, 'state', 'scheduled', 'forgiven', job.forgiven + 1)", "redis.call('HSET', row, 'state', 'scheduled')", "settle"},
	{"release forgives nothing", "redis.call('HSET', row, 'state', state, 'forgiven', job.forgiven + 1)", "redis.call('HSET', row, 'state', state)", "settle"},
	{"release wakes nobody", "    ready(id, job.lane)\n    wake_workers()\n  end\n  return state", "    ready(id, job.lane)\n  end\n  return state", "wake"},
	{"a cancelled job waits again or dies", "  if status == 'ok' and job.cancel then\n    withdraw(row, job)\n    return 'cancelled'\n  end\n", "", "settle"},
	{"a cancelled job that lapses waits again", "    if job.cancel then\n      withdraw(row, job)\n    elseif", "    if", "settle"},
	{"a job that runs is cancelled at once", "if state == 'active' then\n  redis.call('HDEL', row, '-')", "if state == 'awaiting' then\n  redis.call('HDEL', row, '-')", "verbs"},
	{"a job that has ended is cancelled", "if state ~= 'pending' and state ~= 'scheduled' then", "if false then", "verbs"},
	{"extend ignores the fence's by", "(by == '' or r[3] == by)", "true", "verbs"},
	{"extend ignores the fence's attempts", "r[2] == token and (by", "(by", "verbs"},
	{"extend puts jobs back", " and redis.call('ZSCORE', active, id) then", " then", "verbs"},
	{"extend puts jobs back without XX", "redis.call('ZADD', active, 'XX', unpack(extended))", "redis.call('ZADD', active, unpack(extended))", ""},
	{"extend hides a cancellation", "answer = r[4] and 2 or 1", "answer = 1", "verbs"},
	{"extend starts no grace", "alive(t, lease)\nif #ext", "redis.call('HSET', meta, 'seen', t)\nif #ext", "reap"},
	{"reap has no grace", "  if grace > t then\n    return 0,", "  if false then\n    return 0,", "reap"},
	{"the grace never ends", "if t - tonumber(m[1] or 0) > lease / 2 then", "if true then", "reap"},
	{"a grace outlives a step back of the clock", "grace = 0 -- the clock stepped back", "grace = grace", "reap"},
	{"reap has no crash budget", "elseif budget > 0 and job.lapses >= budget then", "elseif false then", "reap"},
	{"a crash budget of nothing buries at once", "elseif budget > 0 and job.lapses >= budget then", "elseif job.lapses >= budget then", "reap"},
	{"the caller's crash budget wins", "budget = tonumber(redis.call('HGET', meta, 'crash_budget') or budget)", "budget = tonumber(budget)", "reap"},
	{"reap forgives nothing", "      redis.call('HINCRBY', row, 'forgiven', 1)\n", "", "reap"},
	{"reap forgets whose lease it took", "'lapses', job.lapses, 'lapsed', job.attempts)", "'lapses', job.lapses)", "settle"},
	{"reap takes back what does not run", "if r[1] == 'active' then\n      lapsed", "if r[1] then\n      lapsed", "orphans"},
	{"reap wakes nobody", "      ready(job.id, lanes[job.id])\n      wake_workers()\n", "      ready(job.id, lanes[job.id])\n", "wake"},
	{"promote leaves the jobs in the schedule", "redis.call('ZREM', schedule, unpack(ids))", "", "settle"},
	{"promote moves what does not wait for its time", "[1] == 'scheduled' then", "[1] then", "orphans"},
	{"promote wakes nobody", "    if #rows > 0 then\n      wake_workers()\n    end\n", "", "wake"},
	{"promote forgets when the job was due", "'state', 'pending', 'due', r[2])", "'state', 'pending')", "admit"},
	{"a job is early", "'-inf', t, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')", "'-inf', t + 3600000, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')", "admit"},
	{"reprocess keeps the error", "'last_error', 'settled_at', 'lapsed', 'cancel')", "'settled_at', 'lapsed', 'cancel')", "verbs"},
	{"reprocess forgives nothing", "'forgiven', r[2], 'lapses', 0)", "'lapses', 0)", "keep"},
	{"reprocess keeps the lapses", "'forgiven', r[2], 'lapses', 0)", "'forgiven', r[2])", "reap"},
	{"reprocess takes no key", "  if r[3] then\n    redis.call('SET'", "  if false then\n    redis.call('SET'", "unique"},
	{"reprocess robs the holder of its key", "if other and other ~= id then", "if false then", "unique"},
	{"reprocess revives what is not dead", "if r[1] ~= 'dead' then", "if false then", "verbs"},
	{"reprocess leaves the time of death", "redis.call('ZREM', dead_at, id)", "", "verbs"},
	{"a death has no time", "redis.call('ZADD', dead_at, at, id)", "", "settle"},
	{"a freed slot wakes nobody", "limit - 1 and ledger().servable() then", "limit - 1 and false then", "wake"},
	{"every freed slot wakes somebody", "if limit and redis.call('ZCARD', active) == limit - 1 and", "if", "wake"},
	{"the earliest job does not wake the pump", "if redis.call('ZRANK', schedule, id) == 0 and", "if false and", "wake"},
	{"every scheduled job wakes the pump", "if redis.call('ZRANK', schedule, id) == 0 and", "if", "wake"},
	{"tokens pile up", "if redis.call('EXISTS', wake) == 0 then\n    redis.call('LPUSH', wake, 1)\n  end\nend", "redis.call('LPUSH', wake, 1)\nend", "wake"},
	{"two pumps take turns", "if holder and holder ~= ARGV[2] then", "if false then", "wake"},
	{"a dead pump holds for ever", "redis.call('SET', pump, ARGV[2], 'PX', 3000)", "redis.call('SET', pump, ARGV[2])", "wake"},
	{"a leaving process takes another's pump along", "local mine = redis.call('GET', pump) == ARGV[1]", "local mine = true", "wake"},
	{"a nudge stays for ever", "redis.call('PEXPIRE', private, 60000)", "", "wake"},
	{"a leaving process leaves its own list behind", "redis.call('DEL', private)", "", "wake"},
	{"expire deletes live jobs", "if r[1] == state then\n        rows", "if true then\n        rows", "orphans"},
	{"expire leaves the rows", "redis.call('DEL', unpack(rows))", "", "keep"},
	{"a result is not kept", "redis.call('HSET', row, 'result', result)", "", "keep"},
	{"what is over the cap waits for the next beat", "or over > 0 and over < surplus then", "then", "keep"},
	{"what is too old waits for the next beat", "if aged > 0 and aged == limit or", "if", "keep"},
	{"the morgue has no cap", "  if over > 0 then\n", "  if false then\n", "keep"},
	{"a row of another type stops the others", "if string.sub(r.err, 1, 9) == 'WRONGTYPE' then\n    return {}\n  end", "", "orphans"},
	{"more orphans than one claim sees hide the jobs", "if scanned == SCAN then", "if false then", "orphans"},
	{"a lane's turn costs it nothing", "return tonumber(string.format('%.9f', score + turn))", "return score", "lanes"},
	{"weights are not heard", "return 1 / (weight and weight > 0 and weight or 1)", "return 1", "lanes"},
	{"weights are the wrong way round", "return 1 / (weight and weight > 0 and weight or 1)", "return weight or 1", "lanes"},
	{"a lane enters at the lowest score", "b.later(tonumber(redis.call('HGET', meta, 'vt') or 0), b.turn(lane))", "0", "lanes"},
	{"a lane enters without its turn", "b.later(tonumber(redis.call('HGET', meta, 'vt') or 0), b.turn(lane))", "tonumber(redis.call('HGET', meta, 'vt') or 0)", "lanes"},
	{"an empty lane stays in the ring", "if redis.pcall('ZCARD', list) == 0 then", "if false then", "lanes"},
	{"a lane whose last job is cancelled stays in the ring", "    if redis.call('ZCARD', b.waiting(lane)) == 0 then\n      redis.call('ZREM', ring, lane)\n    end\n", "", "lanes"},
	{"a job in a lane that has none is not in the ring", "  if not redis.call('ZSCORE', ring, lane) then\n    b.rank(lane)\n  end\n", "", "lanes"},
	{"a lane job runs without being in its lane's active set", "      redis.call('SADD', ledger().running(lane), job[1])\n", "", "lanes"},
	{"a settled job stays in its lane's active set", "    redis.call('SREM', ledger().running(lane), id)\n", "", "lanes"},
	{"a freed slot does not bring its lane back", "if redis.call('HEXISTS', glimit, lane) == 1 and ledger().rank(lane) then", "if false then", "lanes"},
	{"a slot that is freed at a lane's limit wakes nobody", "and ledger().rank(lane) then\n      wake_workers()\n    end", "and ledger().rank(lane) then\n    end", "lanes"},
	{"a claim goes over a lane's limit", "math.min(n, room)", "n", "lanes"},
	{"a lane at its limit keeps its turn", "taken == room and PARKED or score", "score", "lanes"},
	{"a paused lane is not parked", "if redis.call('SISMEMBER', paused, lane) == 1 or", "if", "lanes"},
	{"a lower limit does not park", " or redis.call('SCARD', b.running(lane)) >= (limit or PARKED) then", " then", "lanes"},
	{"a resume wakes nobody", "if lane ~= '' and ledger().rank(lane) and verb ~= 'weight' then\n  wake_workers()", "if lane ~= '' and ledger().rank(lane) and verb ~= 'weight' then", "lanes"},
	{"a weight wakes somebody", "ledger().rank(lane) and verb ~= 'weight' then", "ledger().rank(lane) then", "lanes"},
	{"a new weight waits for its next turn", "    redis.call('ZREM', ring, lane)\n  end\nend\nif", "  end\nend\nif", "lanes"},
	{"the same weight again costs a place", "if was ~= value then", "if true then", "lanes"},
	{"jobs without a lane lose ties", "elseif flat <= score then", "elseif flat < score then", "lanes"},
	{"jobs without a lane catch up the time when they had none", "math.max(fvt, vt) or PARKED", "fvt or PARKED", "lanes"},
	{"the turns of jobs without a lane are forgotten", "      fvt = pay(flat, flat_turn, taken)\n", "      pay(flat, flat_turn, taken)\n", "lanes"},
	{"the virtual time is not written", "  if served then\n", "  if false then\n", "lanes"},
	{"a lane takes a whole claim", "      if score > bound or (score == bound and not ties) then\n        break\n      end\n", "", "lanes"},
	{"a lane wins a tie twice", "(score == bound and not ties)", "false", "lanes"},
	{"what waits in lanes is not counted", "    b.count(1)\n", "", "lanes"},
	{"a claim does not count what leaves the lanes", "    b.count(-left)\n", "", "lanes"},
	{"a cancelled job in a lane is still counted", "    b.count(-1)\n", "", "lanes"},
	{"the length limit forgets the lanes", " + (m[2] or 0) +", " +", "lanes"},
	{"a spoilt count stays", "if redis.call('EXISTS', ring) == 0 then\n      redis.call('HDEL', meta, 'laned')", "if false then\n      redis.call('HDEL', meta, 'laned')", "lanes"},
	{"a stray member of a lane is served", " and (r[13] or '') == lane then", " then", "lanes"},
	{"a claim hides the lane", "r[9], r[10], r[13], r[14] }", "r[9], r[10], false, r[14] }", "lanes"},
	{"a job forgets its lane", "redis.call('HSET', row, 'group', lane)", "", "lanes"},
	{"a spoilt lane stops the others", "if failed and string.sub(failed.err, 1, 9) == 'WRONGTYPE' then", "if false then", "lanes"},
	{"a claim in lanes passes no token on", "(lanes and ledger().servable() or redis", "(false or redis", "lanes"},
	{"a claim before parked lanes passes a token on", "return head[2] and tonumber(head[2]) < PARKED", "return head[2]", "lanes"},
	{"a scheduled job leaves its lane", "ready(r[1], r[3])", "ready(r[1])", "lanes"},
	{"a reaped job leaves its lane", "ready(job.id, lanes[job.id])", "ready(job.id)", "lanes"},
	{"a reaped job keeps its lane's slot", "vacate(id, lanes[id])", "vacate(id)", "lanes"},
	{"a released job leaves its lane", "ready(id, job.lane)", "ready(id)", "lanes"},
	{"a reprocessed job leaves its lane", "ready(id, r[4])", "ready(id)", "lanes"},
	{"a cancelled job stays in its lane", "unready(id, r[3])", "unready(id)", "lanes"},
	{"a job that is settled late stays in its lane", "unready(id, job.lane)", "unready(id)", "lanes"},
	{"a settle keeps its lane's slot", "vacate(id, job.lane)", "vacate(id)", "lanes"},
	{"a resumed queue wakes nobody", "ledger().servable() then\n  wake_workers() -- if", "false then\n  wake_workers() -- if", "settings"},
	{"a setting wakes workers of a paused queue", "if not m[1] and (not m[2] or redis", "if (not m[2] or redis", "settings"},
	{"a setting wakes workers at the concurrency", "or redis.call('ZCARD', active) < tonumber(m[2]))", "or true)", "settings"},
	{"the same rate again is a new one", "elseif m[3] ~= was[1] or m[4] ~= was[2] then", "else", "settings"},
	{"a new rate catches up time from before it", "spend(math.max(tat, t), spacing, 0)", "spend(tat, spacing, 0)", "settings"},
	{"a new rate forgets the jobs before it", "spend(math.max(tat, t), spacing, 0)", "spend(t, spacing, 0)", "settings"},
	{"a cleared rate leaves its clock behind", "  redis.call('HDEL', meta, 'rate_tat')\nelseif", "elseif", "settings"},
	{"a setting is not taken away", "    redis.call('HDEL', meta, ARGV[i])\n", "", "settings"},
	{"a browse names a lane twice", "(stage ~= 'ring' and redis.call('ZSCORE', ring, lane))", "false", "lanes"},
	{"a job that runs is removed", "if state == 'active' then\n  return redis.error_reply('EMQLOCK", "if false then\n  return redis.error_reply('EMQLOCK", "bulk"},
	{"remove leaves the time of death", "{ schedule, dead, dead_at, completed }", "{ schedule, dead, completed }", "bulk"},
	{"remove leaves what is kept", "{ schedule, dead, dead_at, completed }", "{ schedule, dead, dead_at }", "bulk"},
	{"what is removed is not counted", "redis.call('HINCRBY', m_removed, 'count', 1)", "", "bulk"},
	{"what is drained is not counted", "redis.call('HINCRBY', m_removed, 'count', #jobs)", "", "bulk"},
	{"a drain leaves the rows", "  erase(job[1], job[2])\nend\nif #jobs", "end\nif #jobs", "bulk"},
	{"a drain leaves the times of death", "redis.call('ZREM', dead_at, unpack(ids))", "", "bulk"},
	{"a drain deletes the jobs of other lanes", "and (not part[2] or (r[3] or '') == part[2]) then\n      jobs", "then\n      jobs", "bulk"},
	{"a drain deletes what is not there by right", "if r[1] == (states[list] or 'pending') and (not", "if r[1] and (not", "bulk"},
	{"a drained lane stays in the ring", "    ledger().rank(part[2])\n    if #ids", "    if #ids", "bulk"},
	{"what a drain takes from lanes is still counted", "      ledger().count(-#ids)\n", "", "bulk"},
	{"a drain is not bounded over lanes", "left = left - math.max(#ids, 1)", "left = left - 0", "bulk"},
	{"a guard lets a queue through that is not paused", "if redis.call('HEXISTS', meta, 'paused') == 0 then", "if false then", "bulk"},
	{"a guard lets running jobs through", "if running > 0 and guard ~= 'force' then", "if false then", "bulk"},
	{"all kinds live again", "(kind == '' or r[2] == kind)", "true", "bulk"},
	{"those that were left are looked at for ever", "if count.revived >= n then\n    more = true", "if count.revived >= n then\n    more = false", "bulk"},
	{"a dead letter's id without a row stays", "elseif r[1] ~= 'dead' then\n    redis.call('ZREM', dead, id)", "elseif r[1] ~= 'dead' then", "bulk"},
	{"a reassigned job keeps the old name", "    redis.call('HSET', row, 'group', to)\n  end\nend\n\nlocal jobs", "  end\nend\n\nlocal jobs", "bulk"},
	{"a reassigned job is in no lane", "      ready(id, to)\n", "      ready(id)\n", "bulk"},
	{"a lane that was moved away stays in the ring", "    b.rank(from)\n", "", "bulk"},
	{"a lane that was moved away is still counted", "    b.count(-#ids)\n    for", "    for", "bulk"},
	{"a reassigned lane wakes nobody", "    if #jobs > 0 then\n      wake_workers()\n    end\n  end\n  if #ids < limit", "  end\n  if #ids < limit", "bulk"},
	{"what is scheduled keeps the old lane", "    stage, cursor = 'schedule', '0'", "    stage, cursor = 'dead', '0'", "bulk"},
	{"dead letters keep the old lane", "schedule, 'scheduled', 'dead'\n", "schedule, 'scheduled', ''\n", "bulk"},
	{"a lane's living leases are taken back", "if ends and tonumber(ends) <= t then", "if ends then", "bulk"},
	{"a lane is reaped without grace", "if grace > t then\n  return { 0, ARGV[3]", "if false then\n  return { 0, ARGV[3]", "bulk"},
	{"an audit lists no pending job again", "      ready(id, lane)\n      wake_workers()\n    end\n  elseif", "    end\n  elseif", "bulk"},
	{"an audit strands what ran", "        redis.call('ZADD', active, t + lease, id)\n", "", "bulk"},
	{"a dry run mends rows", "    if not look then\n      redis.call('HDEL', meta, '-')", "    if true then\n      redis.call('HDEL', meta, '-')", "bulk"},
	{"a dry run drops members", "if look or #strays == 0 then", "if #strays == 0 then", "bulk"},
	{"a dry run counts a lost job twice", "if look and list == 'running' and r[2] == lane and", "if false and", "bulk"},
	{"a dry run frees keys", "if ARGV[2] ~= '1' then\n  for _, unique", "if true then\n  for _, unique", "bulk"},
	{"an audit frees the keys of living jobs", "if r[1] ~= ARGV[i] or r[2]", "if true or r[2]", "bulk"},
	{"an audit frees a key that is held for a time", "if type(id) == 'string' and redis.call('PTTL', base .. 'de:' .. ARGV[i]) < 0 then", "if type(id) == 'string' then", "bulk"},
	{"an audit drops members that are there by right", "  if not there then\n    strays", "  if true then\n    strays", "bulk"},
	{"what an audit drops is not counted", "redis.call('HINCRBY', m_orphan, 'count', #strays)", "", "bulk"},
	{"what an audit drops from active keeps its slot", "    vacate(s[1], s[2])\n", "", "bulk"},
	{"anybody may speak of a running job", "if r[1] ~= 'active' or r[2] ~= token or r[3] ~= by then", "if false then", "handling"},
	{"a claim that is over may speak of its job", "if r[1] ~= 'active' or r[2] ~= token", "if r[2] ~= token", "handling"},
	{"an ended job leaves its lines", "    redis.call('DEL', row .. ':logs')\n", "", "handling"},
	{"an expired job leaves its lines", "      redis.call('DEL', unpack(logs))\n", "", "handling"},
	{"progress is told to nobody", "announce('progress', row, { attempts = r[2], forgiven = r[4] or 0 }, nil, ARGV[4])", "", "handling"},
	{"lines pile up", "redis.call('LTRIM', list, 0,", "redis.call('LTRIM', list, 0, 1e9 or", "handling"},
	{"lines of another job are kept", "  redis.call('DEL', list) -- of a row that somebody has deleted by hand\n", "", "handling"},
	{"the payload of a job that runs is changed", "if state == 'active' then\n  return redis.error_reply('EMQLOCK it runs: cancel it, or", "if false then\n  return redis.error_reply('EMQLOCK it runs: cancel it, or", "update"},
	{"the payload of a completed job is changed", "and state ~= 'awaiting_children' then\n  return redis.error_reply('EMQSTATE its payload", "and false then\n  return redis.error_reply('EMQSTATE its payload", "update"},
	{"a payload of another kind is taken", "known = known or ARGV[i] == r[2]", "known = true", "update"},
	{"a payload with another unique key is taken", "if r[3] and r[3] ~= unique then", "if false then", "update"},
	{"a payload with another lane is taken", "if lane ~= 'any' and", "if false and", "update"},
	{"a new payload keeps the old version", "redis.call('HDEL', row, 'v')\nredis", "redis", "update"},
	{"a second list goes unnoticed", "      stray = true\n", "", "read"},
	{"a job in no list is where its row says", "if stray or not own then", "if stray then", "read"},
	{"the state of a lane's job is looked up in the flat list", "pending = lane and ledger().waiting(lane) or pending,", "pending = pending,", "read"},
	{"a page repeats its cursor", "(up and m[1] == id)", "false", "read"},
	{"a page on the way down repeats its cursor", "(up and m[1] == id)", "m[1] == id", "read"},
	{"ids of one score are not searched", "(s == score and (less(m[1], id)", "(s == score and (false", "read"},
	{"a page ends early", "local more = to + 1 < size", "local more = to + 2 < size", "read"},
	{"a page on the way down ends early", "more = from > 0", "more = from > 1", "read"},
	{"parked lanes are next in line", "if tonumber(lanes[i + 1]) < PARKED then", "if true then", "read"},
}

// harmless mutations leave out a second lock on a door that another rule has locked already. They are
// in the table so that nobody thinks that they were forgotten.
var harmless = map[string]string{
	"extend puts jobs back without XX": "ZSCORE in the same script has seen the member",
}

// mutate gives a library in which new stands for every old.
func mutate(scripts map[string]*script, was, is string) (mutated map[string]*script, hits int) {
	mutated = maps.Clone(scripts)
	for name, sc := range scripts {
		if strings.Contains(sc.text, was) {
			hits++
			text := strings.ReplaceAll(sc.text, was, is)
			sum := sha1.Sum([]byte(text))
			mutated[name] = &script{sc.name, text, hex.EncodeToString(sum[:]), sc.keys}
		}
	}
	return mutated, hits
}

// catch plays the suite, the expected subject first, until something fails.
func catch(s *target, subject string) (by, failed string) {
	all := suite()
	subjects := slices.Sorted(maps.Keys(all))
	slices.SortStableFunc(subjects, func(a, b string) int {
		return strings.Compare(mark(a != subject), mark(b != subject))
	})
	for _, name := range subjects {
		for _, c := range all[name] {
			if failed := c.play(s); failed != "" {
				return name + ": " + c.name, failed
			}
		}
	}
	return "", ""
}

func mark(late bool) string {
	if late {
		return "b"
	}
	return "a"
}

func TestEveryMutationIsCaught(t *testing.T) {
	t.Parallel()
	for _, m := range slices.Concat(mutations, cronMutations) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			scripts, hits := mutate(ownLibrary(t), m.old, m.new)
			if hits == 0 {
				t.Fatalf("no script has the text %q", m.old)
			}
			by, failed := catch(onRedis(t, scripts), m.subject)
			switch {
			case strings.Contains(failed, "user_script") && !strings.Contains(failed, "WRONGTYPE"):
				t.Fatalf("the mutated text is no valid script: %s", failed)
			case by == "" && harmless[m.name] == "":
				t.Fatal("nothing in the suite fails")
			case by != "" && harmless[m.name] != "":
				t.Fatalf("not harmless: %s", by)
			case by != "" && !strings.HasPrefix(by, m.subject+": "):
				t.Fatalf("caught in another subject, by %s", by)
			}
			t.Logf("caught by %s", by)
		})
	}
}
