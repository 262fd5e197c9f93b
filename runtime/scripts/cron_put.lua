-- cron_put: a cron entry is added, or gets another definition.
--
-- KEYS  entry, repeats, ...
-- ARGV  name, the rev that the caller saw or '', the new rev, the next tick in ms, 1 if a job declares
--       it or '', the sum of the definition, spec, zone, then the other fields of the definition in pairs
-- Does  writes the definition. With the same spec and zone the entry keeps its next tick; it keeps its
--       pause and its counts in any case. A declared entry remembers the last definitions that it had.
--       Wakes the pump if the entry is the earliest.
-- Gives {'put'}; {'moved'} if the entry is not as the caller saw it. Safe to repeat: the second is 'moved'.
-- By    the worker, for its declared entries; Queue.AddCron
--@keys entry repeats wake_pump
local name = ARGV[1]
--@use now cron
--@main
local OLDER = 8 -- definitions that are remembered
local r = redis.call('HMGET', entry, 'rev', 'sum', 'older', 'next', 'paused', 'spec', 'tz')
if (r[1] or '') ~= ARGV[2] then
  return { 'moved' }
end
local due = ARGV[4]
if r[6] == ARGV[7] and r[7] == ARGV[8] then
  due = r[4]
end
local refreshed
-- the first write: like an enqueue it is refused without memory
redis.call('HSET', entry, 'rev', ARGV[3], 'next', due, 'sum', ARGV[6], 'spec', ARGV[7], 'tz', ARGV[8], unpack(ARGV, 9))
if ARGV[5] == '1' then
  refreshed = now()
  local older, n = {}, 0
  for sum in string.gmatch((r[2] or '') .. ' ' .. (r[3] or ''), '%x+') do
    n = n + 1
    if n <= OLDER and sum ~= ARGV[6] then
      older[#older + 1] = sum
    end
  end
  redis.call('HSET', entry, 'refreshed', refreshed, 'older', table.concat(older, ' '))
end
heed_now(name, due, r[5], refreshed)
return { 'put' }
