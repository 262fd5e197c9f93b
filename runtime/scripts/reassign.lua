-- reassign: jobs of one lane become another lane's, a bounded part in each call.
--
-- KEYS  pending, schedule, dead, ...
-- ARGV  base, from, to ('' for no lane), stage, cursor, limit (at most 500). The stages are 'waiting',
--       whose cursor is not used, and then 'schedule' and 'dead', which begin with the cursor '0'
-- Does  moves the first jobs that wait in the lane, in their order; gives the scheduled ones and the dead
--       letters on a page of their sets the other lane. What runs keeps its lane. Members without a job
--       that waits there are dropped and counted as orphans. Wakes a worker.
-- Gives {1 if the lane was known: something waits or runs in it or it has a control, moved, dropped,
--       next stage or '', next cursor}. Safe to repeat.
-- By    Queue.ReassignLane
--@keys pending schedule dead meta wake ring paused glimit gweight m_orphan
local base, from, to = ARGV[1], ARGV[2], ARGV[3] ~= '' and ARGV[3]
--@use row lane parked ready
--@main
local stage, cursor, limit = ARGV[4], ARGV[5], math.max(1, math.min(tonumber(ARGV[6]), 500))
local b = ledger()
b.reach(from)
if to then
  b.reach(to)
end
local known = redis.call('EXISTS', b.waiting(from), b.running(from)) > 0
  or redis.call('SISMEMBER', paused, from) == 1
  or redis.call('HEXISTS', glimit, from) == 1
  or redis.call('HEXISTS', gweight, from) == 1

local function enter(id)
  local row = base .. 'job:' .. id
  redis.call('HDEL', row, 'group')
  if to then
    redis.call('HSET', row, 'group', to)
  end
end

local jobs, dropped = {}, 0
if stage == 'waiting' then
  local ids = redis.call('ZRANGE', b.waiting(from), 0, limit - 1)
  for _, id in ipairs(ids) do
    local r = read(base .. 'job:' .. id, 'state', 'group')
    if r[1] == 'pending' and r[2] == from then
      jobs[#jobs + 1] = id
    end
  end
  if #ids > 0 then
    redis.call('ZREM', b.waiting(from), unpack(ids))
    b.rank(from)
    b.count(-#ids)
    for _, id in ipairs(jobs) do
      enter(id)
      ready(id, to)
    end
    dropped = #ids - #jobs
    if #jobs > 0 then
      wake_workers()
    end
  end
  if #ids < limit then
    stage, cursor = 'schedule', '0'
  end
else
  local set, state, after = schedule, 'scheduled', 'dead'
  if stage == 'dead' then
    set, state, after = dead, 'dead', ''
  end
  local page = redis.call('ZSCAN', set, cursor, 'COUNT', limit)
  for i = 1, #page[2], 2 do
    local r = read(base .. 'job:' .. page[2][i], 'state', 'group')
    if r[1] == state and r[2] == from then
      jobs[#jobs + 1] = page[2][i]
    end
  end
  for _, id in ipairs(jobs) do
    enter(id)
  end
  cursor = page[1]
  if cursor == '0' then
    stage = after
  end
end
if dropped > 0 then
  redis.call('HINCRBY', m_orphan, 'count', dropped)
end
return { known and 1 or 0, #jobs, dropped, stage, cursor }
