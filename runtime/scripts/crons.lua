-- crons: a page of cron entries, or one with its payload.
--
-- KEYS  repeats
-- ARGV  base, cursor ('0' first), about how many (at most 500), or '' and the name of one
-- Does  reads only. An entry that changes meanwhile may come twice or not at all.
-- Gives {next cursor, now, entry, ...}: an entry is {name, rev, next, last, last_id, refreshed, paused,
--       fired, skipped, missed, spec, zone, policy, overlap, kind, v, headers, lane, unique key, window,
--       until, payload}, '' for what it has not. An entry without a rev is none. Safe to repeat.
-- By    Queue.Crons and the verbs for one entry
--@keys repeats
local base = ARGV[1]
--@use now row entry
--@main
if ARGV[2] == '' then
  return { '0', now(), told(ARGV[3], true) }
end
local page = redis.call('ZSCAN', repeats, ARGV[2], 'COUNT', ARGV[3])
local answer = { page[1], now() }
for i = 1, #page[2], 2 do
  answer[#answer + 1] = told(page[2][i])
end
return answer
