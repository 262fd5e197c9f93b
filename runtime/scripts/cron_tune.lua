-- cron_tune: a cron entry is paused, resumed or removed.
--
-- KEYS  entry, repeats, ...
-- ARGV  name, 'pause', 'resume', 'remove', 'lapse' (remove it if nobody has refreshed it for its lease) or
--       'retire' (remove it if it is declared); and for resume the rev that the caller saw and the next tick
-- Does  changes the entry. What its ticks have enqueued stays. Wakes the pump if a resumed entry is the
--       earliest.
-- Gives {'done'}; {'kept'}: lapse or retire found no reason; {'moved'}: resume found another rev; EMQGONE;
--       EMQLOCK: remove of a declared entry. Safe to repeat.
-- By    Queue.PauseCron, ResumeCron, RemoveCron; the pump; the worker
--@keys entry repeats wake_pump meta
local name, verb = ARGV[1], ARGV[2]
--@use now cron
--@main
local e = redis.call('HMGET', entry, 'rev', 'refreshed', 'paused', 'next')
local refreshed = tonumber(e[2] or nil)
if not e[1] then
  redis.call('ZREM', repeats, name) -- of an entry that somebody has deleted
  return no_entry(name)
end
if verb == 'resume' then
  if not e[3] then
    return { 'done' }
  elseif e[1] ~= ARGV[3] then
    return { 'moved' }
  end
  redis.call('HDEL', entry, 'paused')
  redis.call('HSET', entry, 'next', ARGV[4])
  heed_now(name, ARGV[4], false, refreshed)
  return { 'done' }
elseif verb == 'pause' then
  redis.call('HDEL', meta, '-') -- accepted without memory
  redis.call('HSET', entry, 'paused', 1)
  heed(name, e[4], true, refreshed)
  return { 'done' }
elseif verb == 'remove' then
  if refreshed then
    return redis.error_reply('EMQLOCK the cron entry ' .. name .. ' is declared by a job: pause it, or take its directive away')
  end
elseif not refreshed or verb == 'lapse' and refreshed + LEASE > now() then
  redis.call('HDEL', meta, '-') -- accepted without memory
  heed(name, e[4], e[3], refreshed) -- a score that somebody has spoilt would be due for ever
  return { 'kept' }
end
redis.call('DEL', entry)
redis.call('ZREM', repeats, name)
return { 'done' }
