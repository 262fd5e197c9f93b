-- drain: a list is emptied and its jobs are deleted, a bounded part in each call.
--
-- KEYS  pending, active, schedule, dead, dead_at, completed, ...
-- ARGV  base, list, lane, limit (at most 500 members), guard. The lists are 'pending' (jobs without a
--       lane), 'lane' (the one that lane names), 'lanes' (all that wait in lanes), 'schedule', 'dead',
--       'completed' and 'active'. The guards are '', 'paused' (the queue must be paused and nothing may
--       run) and 'force' (it must be paused)
-- Does  takes the first members out of the list, frees the unique keys of their jobs and deletes them.
--       Members without a job that is there by right are dropped and counted as orphans.
-- Gives {removed, dropped, 1 if the limit has ended the call}; EMQSTATE for what the guard keeps out.
--       Safe to repeat.
-- By    Queue.Drain, DrainLane, Obliterate
--@keys pending active schedule dead dead_at completed meta wake wake_pump ring paused glimit gweight m_removed m_orphan m_cancelled m_failed
local base = ARGV[1]
--@use now row lane parked ready announce place unique ending guard
--@main
local list, lane, left = ARGV[2], ARGV[3], math.max(0, math.min(tonumber(ARGV[4]), 500))
local refused = guarded(ARGV[5])
if refused then
  return refused
end

-- the parts of the list: which key, and whose the jobs in it are ('' is nobody's, false anybody's)
local states = { schedule = 'scheduled', dead = 'dead', completed = 'completed', active = 'active' }
local keys = { pending = pending, schedule = schedule, dead = dead, completed = completed, active = active }
local parts = {}
if list == 'lane' or list == 'lanes' then
  for _, name in ipairs(list == 'lane' and { lane } or redis.call('ZRANGE', ring, 0, math.max(left - 1, 0))) do
    parts[#parts + 1] = { ledger().waiting(name), name }
  end
else
  parts[1] = { keys[list], list == 'pending' and '' }
end

-- read everything first
local jobs, dropped = {}, 0
for _, part in ipairs(parts) do
  local ids = left > 0 and redis.pcall('ZRANGE', part[1], 0, left - 1) or {}
  if ids.err then
    if string.sub(ids.err, 1, 9) ~= 'WRONGTYPE' then
      return ids
    end
    ids, part.foreign = {}, true -- somebody's key is no lane
  end
  part.seen = left > 0
  part.ids = ids
  left = left - math.max(#ids, 1)
  for _, id in ipairs(ids) do
    local row = base .. 'job:' .. id
    local r = read(row, 'state', 'unique', 'group', 'awaited', 'logs')
    if r[3] and list == 'active' then
      ledger().reach(r[3])
      part[id] = r[3]
    end
    if r[1] == (states[list] or 'pending') and (not part[2] or (r[3] or '') == part[2]) then
      jobs[#jobs + 1] = { row, { unique = r[2], holds = held(id, r[2]), awaited = r[4], logs = logged(row, r[5]) } }
    else
      dropped = dropped + 1
    end
  end
end

for _, part in ipairs(parts) do
  local ids = part.ids
  if list == 'active' then
    for _, id in ipairs(ids) do
      vacate(id, part[id])
    end
  elseif #ids > 0 then
    redis.call('ZREM', part[1], unpack(ids))
  end
  if list == 'dead' and #ids > 0 then
    redis.call('ZREM', dead_at, unpack(ids))
  end
  if part.foreign then
    redis.call('ZREM', ring, part[2])
  elseif part.seen and part[2] and part[2] ~= '' then
    ledger().rank(part[2])
    if #ids > 0 then
      ledger().count(-#ids)
    end
  end
end
for _, job in ipairs(jobs) do
  announce('removed', job[1], job[2])
  erase(job[1], job[2])
end
if #jobs > 0 then
  redis.call('HINCRBY', m_removed, 'count', #jobs)
end
if dropped > 0 then
  redis.call('HINCRBY', m_orphan, 'count', dropped)
end
return { #jobs, dropped, left <= 0 and 1 or 0 }
