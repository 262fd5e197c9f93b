-- latency: what the jobs that are next in line have waited for.
--
-- KEYS  pending, ring
-- ARGV  base
-- Does  reads only, a bounded part: the 100 oldest ids without a lane, and the oldest id of each of the
--       400 lanes that are served next. Lanes that are paused or at their limits are left out.
-- Gives {now, id, due or '', ...}. Safe to repeat.
-- By    Queue.Latency
--@keys pending ring
local base = ARGV[1]
--@use now row lane
--@main
local FLAT, LANES = 100, 400
local answer = { now() }
local function look(list, n)
  for _, id in ipairs(redis.call('ZRANGE', list, 0, n - 1)) do
    local r = read(base .. 'job:' .. id, 'state', 'due')
    if r[1] == 'pending' then
      answer[#answer + 1] = id
      answer[#answer + 1] = r[2] or ''
    end
  end
end
look(pending, FLAT)
local lanes = redis.call('ZRANGE', ring, 0, LANES - 1, 'WITHSCORES')
for i = 1, #lanes, 2 do
  if tonumber(lanes[i + 1]) < PARKED then
    look(ledger().waiting(lanes[i]), 1)
  end
end
return answer
