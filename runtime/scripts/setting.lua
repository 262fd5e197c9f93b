-- setting: an operator changes how the whole queue is served.
--
-- KEYS  meta, active, ...
-- ARGV  base, then fields of meta and their values in pairs; an empty value takes a field away
-- Does  changes them. A rate that changes starts without unused time to catch up; its next job is at
--       most one of its own spacings away. Wakes a worker if one could take a job now.
-- Gives 1. Safe to repeat: what is set to its own value costs the rate nothing.
-- By    Queue.Pause, Resume, SetConcurrency, SetRate, SetMaxLength, SetDeadCaps, SetCrashBudget, SetEvents, Clear...
--@keys meta active pending ring wake paused glimit gweight
local base = ARGV[1]
--@use now lane parked rate
--@main
local was = redis.call('HMGET', meta, 'rate_max', 'rate_ms')
redis.call('HDEL', meta, '-') -- accepted without memory
for i = 2, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', meta, ARGV[i])
  else
    redis.call('HSET', meta, ARGV[i], ARGV[i + 1])
  end
end
local m = redis.call('HMGET', meta, 'paused', 'concurrency', 'rate_max', 'rate_ms', 'rate_tat')
if not m[3] or not m[4] then
  redis.call('HDEL', meta, 'rate_tat')
elseif m[3] ~= was[1] or m[4] ~= was[2] then
  local t = now()
  local _, _, tat, spacing = allowance(tonumber(m[3]), tonumber(m[4]), m[5], t)
  spend(math.max(tat, t), spacing, 0)
end
if not m[1] and (not m[2] or redis.call('ZCARD', active) < tonumber(m[2])) and ledger().servable() then
  wake_workers() -- if the rate keeps it from taking one, it learns for how long
end
return 1
