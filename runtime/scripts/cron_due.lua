-- cron_due: the cron entries that the pump must look at.
--
-- KEYS  repeats
-- ARGV  base, how many to leave out, limit (at most 16, as each brings its payload)
-- Does  reads only.
-- Gives {now, entry, ...}: an entry is as crons tells it. Safe to repeat.
-- By    the pump
--@keys repeats
local base = ARGV[1]
--@use now row entry
--@main
local t = now()
local answer = { t }
local limit = math.max(0, math.min(tonumber(ARGV[3]), 16))
for _, name in ipairs(redis.call('ZRANGE', repeats, '-inf', t, 'BYSCORE', 'LIMIT', ARGV[2], limit)) do
  answer[#answer + 1] = told(name, true)
end
return answer
