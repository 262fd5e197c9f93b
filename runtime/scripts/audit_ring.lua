-- audit_ring: the ring's members and their scores, and how many jobs wait in lanes.
--
-- KEYS  ring, paused, glimit, gweight, ...
-- ARGV  base, '1' to look only or '', 'scan' and a cursor ('0' at first), 'lanes' and the names of lanes (at
--       most 500), or 'count'
-- Does  scan: takes lanes out of a page of the ring in which nothing waits. lanes: gives each its true place:
--       none while nothing waits in it, the parked score while it is paused or at its limit, else one within
--       a turn after meta.vt; wakes a worker when a lane may be served again. count: makes meta.laned true,
--       if there are at most 4000 lanes.
-- Gives {next cursor or '', mended}. Safe to repeat.
-- By    Queue.Audit
--@keys ring paused glimit gweight meta pending wake
local base = ARGV[1]
--@use lane parked
--@main
local look, how = ARGV[2] == '1', ARGV[3]
local MOST, SLACK = 4000, 0.001
local b = ledger()

local function waiting(lane)
  local n = redis.pcall('ZCARD', b.waiting(lane))
  if type(n) ~= 'table' then
    return n
  end
  if string.sub(n.err, 1, 9) == 'WRONGTYPE' then
    return 0 -- somebody's key is no lane
  end
  return redis.call('ZCARD', b.waiting(lane))
end

if how == 'count' then
  local n = 0
  if redis.call('ZCARD', ring) > MOST then
    return { '', 0 }
  end
  for _, lane in ipairs(redis.call('ZRANGE', ring, 0, MOST - 1)) do
    n = n + waiting(lane)
  end
  local was = redis.call('HGET', meta, 'laned')
  if (was and tonumber(was) or 0) == n and not (was and n == 0) then
    return { '', 0 }
  end
  if not look then
    redis.call('HDEL', meta, 'laned')
    if n > 0 then
      redis.call('HSET', meta, 'laned', n)
    end
  end
  return { '', 1 }
end

local lanes, cursor, mended = {}, '', 0
if how == 'scan' then
  local page = redis.call('ZSCAN', ring, ARGV[4], 'COUNT', 500)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    lanes[#lanes + 1] = page[2][i]
  end
else
  lanes = { unpack(ARGV, 4) }
end
local vt = tonumber(redis.call('HGET', meta, 'vt') or 0)
for _, lane in ipairs(lanes) do
  b.reach(lane)
  local score = tonumber(redis.call('ZSCORE', ring, lane) or nil)
  local right
  if waiting(lane) == 0 then
    right = not score
  elseif how == 'scan' then
    right = true -- the caller finds it again by the name of its list
  elseif redis.call('SISMEMBER', paused, lane) == 1
    or redis.call('SCARD', b.running(lane)) >= (tonumber(redis.call('HGET', glimit, lane) or PARKED) or PARKED) then
    right = score == PARKED
  else
    right = score and score >= vt - SLACK and score <= vt + math.max(b.turn(lane), 1) + SLACK
  end
  if not right then
    mended = mended + 1
    if not look then
      redis.call('ZREM', ring, lane)
      if waiting(lane) > 0 and b.rank(lane) then
        wake_workers()
      end
    end
  end
end
return { cursor, mended }
