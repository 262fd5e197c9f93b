-- settle: many jobs are settled in one call, each as its own script would settle it alone.
--
-- KEYS  active, pending, schedule, dead, ...
-- ARGV  base, then for each job (at most 128): its verb (complete, retry, snooze, release, kill, discard), id,
--       token, by, how many arguments of the verb follow, and these, in the order of the verb's own page
-- Does  proves each by its fence: one that is stale changes nothing for the others. The commonest settle, a
--       completion of a job that owns nothing but its row, is written for all of them together.
-- Gives one answer for each: 1 completed and deleted; else a word, which is a value here: the verb's own, 'gone',
--       'stale', 'again STATE'; or {error} for a job that could not be settled now. Safe to repeat, as each is.
-- By    the worker, for what its handlers return at once
--@keys active pending schedule dead completed meta wake wake_pump dead_at m_completed m_failed m_retried m_snoozed m_released m_cancelled m_discarded m_stale ring paused glimit gweight
local base = ARGV[1]
--@use complete retry snooze release kill discard
--@main
local verbs = { complete = complete, retry = retry, snooze = snooze, release = release, kill = kill, discard = discard }
local m = redis.call('HMGET', meta, 'concurrency', 'events')
local limit, quiet = tonumber(m[1]), not m[2]
local ids, rows, deferred = {}, {}, {}

-- plain tells whether a completion has nothing to write but the end of the row. The order of the tests is
-- take's: whatever is not plain goes the whole way.
local function plain(id, row, token, by, retain)
  if not quiet or retain ~= '0' or deferred[id] then
    return false
  end
  local r = redis.pcall('HMGET', row, 'state', 'attempts', 'by', 'unique', 'group', 'awaited', 'logs')
  return not r.err and r[1] == 'active' and r[2] == token and (by == '' or r[3] == by)
    and not (r[4] or r[5] or r[6] or r[7])
end

-- finish writes the plain completions.
local function finish()
  if #ids == 0 then
    return
  end
  local before = limit and redis.call('ZCARD', active)
  redis.call('ZREM', active, unpack(ids))
  redis.call('DEL', unpack(rows))
  redis.call('HINCRBY', m_completed, 'count', #ids)
  if limit and before >= limit and redis.call('ZCARD', active) < limit and ledger().servable() then
    wake_workers()
  end
  ids, rows, deferred = {}, {}, {}
end

local answers = {}
local i = 2
while i <= #ARGV do
  local verb, id, token, by, n = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3], tonumber(ARGV[i + 4])
  local row = base .. 'job:' .. id
  local answer = 1
  if verb == 'complete' and plain(id, row, token, by, ARGV[i + 5]) then
    ids[#ids + 1], rows[#rows + 1], deferred[id] = id, row, true
  else
    if deferred[id] then
      finish()
    end
    local ok, status = pcall(verbs[verb], id, row, token, by, unpack(ARGV, i + 5, i + 4 + n))
    answer = ok and status or { type(status) == 'table' and status.err or tostring(status) }
  end
  answers[#answers + 1] = answer
  i = i + 5 + n
end
finish()
return answers
