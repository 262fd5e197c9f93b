-- tune: an operator changes how a lane is served.
--
-- KEYS  meta, ring, paused, glimit, gweight, ...
-- ARGV  base, lane, 'pause', 'resume', 'limit' or 'weight', a positive number or '' for none. The empty
--       lane has a weight only: that of the jobs without a lane
-- Does  changes the control and gives the lane its true score; wakes a worker if the lane may be served
--       again. Jobs that run go on.
-- Gives 1. Safe to repeat.
-- By    Queue.PauseLane, ResumeLane, SetLaneLimit, ClearLaneLimit, SetLaneWeight
--@keys meta ring paused glimit gweight wake
local base, lane = ARGV[1], ARGV[2]
--@use lane parked
--@main
local verb, value = ARGV[3], ARGV[4]
ledger().reach(lane)
redis.call('HDEL', meta, '-') -- accepted without memory
if verb == 'pause' then
  redis.call('SADD', paused, lane)
elseif verb == 'resume' then
  redis.call('SREM', paused, lane)
elseif verb == 'limit' then
  if value == '' then
    redis.call('HDEL', glimit, lane)
  else
    redis.call('HSET', glimit, lane, value)
  end
else
  local was = redis.call('HGET', gweight, lane) or '1'
  if value == '1' then
    redis.call('HDEL', gweight, lane)
  else
    redis.call('HSET', gweight, lane, value)
  end
  if was ~= value then
    -- its next turn is at the new weight; the same weight again costs it no place
    redis.call('ZREM', ring, lane)
  end
end
if lane ~= '' and ledger().rank(lane) and verb ~= 'weight' then
  wake_workers()
end
return 1
