-- reap: leases that ran out are taken back. This is crash recovery, on the server's clock.
--
-- KEYS  active, pending, ...
-- ARGV  base, crash budget (0: none; meta.crash_budget wins), limit (at most 500), the caller's lease
--       in ms
-- Does  puts lapsed jobs back, into their lanes: forgiven + 1, lapses + 1, lapsed = the token that lost. At the crash
--       budget a job is buried. A cancelled job ends. Ids without an active row are dropped and
--       counted as orphans. If neither reap nor extend was seen for half a lease, the server or
--       everybody was away: nothing is reaped for one beat, so that living workers can extend first.
-- Gives {count, ms until the next lease ends or the grace is over, or -1}. Safe to repeat.
-- By    the pump
--@keys active pending schedule meta wake wake_pump dead dead_at m_reaped m_failed m_cancelled m_orphan ring paused glimit gweight
local base = ARGV[1]
--@use now row grace lane parked ready announce place unique ending
-- takeback lets jobs wait again whose holders have lost them, at t; it answers how many there were. Ids
-- without an active row are dropped and counted as orphans.
local function takeback(ids, t, budget)
  budget = tonumber(redis.call('HGET', meta, 'crash_budget') or budget)
  local lapsed, lanes = {}, {}
  for _, id in ipairs(ids) do
    local r = read(base .. 'job:' .. id, 'state', 'attempts', 'lapses', 'unique', 'cancel', 'group', 'forgiven', 'awaited', 'logs')
    lanes[id] = r[6]
    if r[6] then
      ledger().reach(r[6])
    end
    if r[1] == 'active' then
      lapsed[#lapsed + 1] = { id = id, attempts = r[2], lapses = tonumber(r[3] or 0) + 1, unique = r[4],
        holds = held(id, r[4]), cancel = r[5], forgiven = r[7] or 0, awaited = r[8],
        logs = logged(base .. 'job:' .. id, r[9]) }
    end
  end
  for _, id in ipairs(ids) do
    vacate(id, lanes[id])
  end
  for _, job in ipairs(lapsed) do
    local row = base .. 'job:' .. job.id
    announce('reaped', row, job)
    if job.cancel then
      withdraw(row, job)
    elseif budget > 0 and job.lapses >= budget then
      redis.call('HSET', row, 'lapses', job.lapses)
      bury(job.id, row, job, 'lease lapsed ' .. job.lapses .. ' times', t)
    else
      redis.call('HSET', row, 'state', 'pending', 'lapses', job.lapses, 'lapsed', job.attempts)
      redis.call('HINCRBY', row, 'forgiven', 1)
      ready(job.id, lanes[job.id])
      wake_workers()
    end
  end
  if #lapsed > 0 then
    redis.call('HINCRBY', m_reaped, 'count', #lapsed)
  end
  if #ids > #lapsed then
    redis.call('HINCRBY', m_orphan, 'count', #ids - #lapsed)
  end
  return #lapsed
end

local function reap(budget, limit, lease)
  local t = now()
  local grace = alive(t, lease)
  if grace > t then
    return 0, redis.call('ZCARD', active) > 0 and grace - t or -1
  end
  local ids = redis.call('ZRANGE', active, '-inf', t, 'BYSCORE', 'LIMIT', 0, limit)
  takeback(ids, t, budget)
  local head = redis.call('ZRANGE', active, 0, 0, 'WITHSCORES')
  return #ids, head[2] and math.max(head[2] - t, 0) or -1
end
--@main
return { reap(ARGV[2], math.max(0, math.min(tonumber(ARGV[3]), 500)), tonumber(ARGV[4])) }
