-- promote: jobs whose time has come may be claimed.
--
-- KEYS  schedule, pending, ...
-- ARGV  base, limit (at most 500)
-- Does  moves due jobs to pending or their lanes, in the order of their times, and notes the time in the row; wakes a
--       worker. Ids without a scheduled row are dropped and counted as orphans.
-- Gives {count, ms until the next due job or -1}. Safe to repeat.
-- By    the pump
--@keys schedule pending meta wake m_orphan ring paused glimit gweight
local base = ARGV[1]
--@use now row lane parked ready
local function promote(limit)
  local t = now()
  local due = redis.call('ZRANGE', schedule, '-inf', t, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
  local ids, rows = {}, {}
  for i = 1, #due, 2 do
    ids[#ids + 1] = due[i]
    local r = read(base .. 'job:' .. due[i], 'state', 'group')
    if r[1] == 'scheduled' then
      if r[2] then
        ledger().reach(r[2])
      end
      rows[#rows + 1] = { due[i], due[i + 1], r[2] }
    end
  end
  if #ids > 0 then
    redis.call('ZREM', schedule, unpack(ids))
    for _, r in ipairs(rows) do
      redis.call('HSET', base .. 'job:' .. r[1], 'state', 'pending', 'due', r[2])
      ready(r[1], r[3])
    end
    if #rows > 0 then
      wake_workers()
    end
    if #ids > #rows then
      redis.call('HINCRBY', m_orphan, 'count', #ids - #rows)
    end
  end
  local head = redis.call('ZRANGE', schedule, 0, 0, 'WITHSCORES')
  return #rows, head[2] and math.max(head[2] - t, 0) or -1
end
--@main
return { promote(math.max(0, math.min(tonumber(ARGV[2]), 500))) }
