-- cron_refresh: a definition is compared with the entry that is there.
--
-- KEYS  entry, repeats, ...
-- ARGV  name, 1 if a job declares it or '', the sum of the definition, the version of its payload
-- Does  prolongs the lease of a declared entry that has this definition.
-- Gives {'kept', now, rev}; {'older', now, rev}: the entry has a newer definition, which somebody has
--       refreshed within 5 minutes; {'wanted', now, rev or ''}: write it with cron_put. EMQLOCK if the
--       name is the other sort's. Safe to repeat.
-- By    the worker, for its declared entries; Queue.AddCron
--@keys entry repeats meta wake_pump
local name, declared, sum, v = ARGV[1], ARGV[2] == '1', ARGV[3], tonumber(ARGV[4])
--@use now cron
--@main
local RECENT = 300000
local r = redis.call('HMGET', entry, 'rev', 'sum', 'refreshed', 'older', 'v', 'next', 'paused')
local t = now()
if not r[1] then
  return { 'wanted', t, '' }
end
local refreshed = tonumber(r[3] or nil)
if declared ~= (refreshed ~= nil) then
  return redis.error_reply('EMQLOCK the cron entry ' .. name .. (declared and ' was added at run time' or ' is declared by a job'))
end
if r[2] == sum then
  if declared then
    redis.call('HDEL', meta, '-') -- accepted without memory
    redis.call('HSET', entry, 'refreshed', t)
    heed(name, r[6], r[7], t)
  end
  return { 'kept', t, r[1] }
end
if declared and t - refreshed < RECENT then
  if v < tonumber(r[5] or 1) or string.find(' ' .. (r[4] or '') .. ' ', ' ' .. sum .. ' ', 1, true) then
    return { 'older', t, r[1] }
  end
end
return { 'wanted', t, r[1] }
