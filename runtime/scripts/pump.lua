-- pump: one beat of the process that promotes, reaps and expires for the queue.
--
-- KEYS  pump, ...
-- ARGV  base, the caller's tag, crash budget, limit (at most 500), the caller's lease in ms
-- Does  takes or renews the pump for 3 s, then promotes up to limit jobs, and reaps and expires, which cost
--       more, half of what is left of it each, at least an eighth of limit. The pump is an economy, not a
--       lock: two at once are harmless.
-- Gives {1, promoted, reaped, expired, ms until the next due or -1, ms until a cron entry is due or -1};
--       {0} if another process pumps. Safe to repeat.
-- By    the worker's pump
--@keys pump schedule pending active completed meta wake wake_pump dead dead_at m_reaped m_failed m_cancelled m_orphan ring paused glimit gweight repeats
local base = ARGV[1]
--@use promote reap expire cron
--@main
local holder = redis.call('GET', pump)
if holder and holder ~= ARGV[2] then
  return { 0 }
end
redis.call('HDEL', meta, '-') -- accepted without memory, so that the pump is too
redis.call('SET', pump, ARGV[2], 'PX', 3000)
local limit = math.max(0, math.min(tonumber(ARGV[4]), 500))
local promoted, due = promote(limit)
local rest = math.ceil(math.max(limit - promoted, limit / 4) / 2)
local reaped, lapse = reap(ARGV[3], rest, tonumber(ARGV[5]))
local expired, expiry = expire(rest)
for _, ms in ipairs({ lapse, expiry }) do
  if ms >= 0 and (due < 0 or ms < due) then
    due = ms
  end
end
local tick, head = -1, redis.call('ZRANGE', repeats, 0, 0, 'WITHSCORES')
if head[2] and tonumber(head[2]) < NEVER then
  tick = math.max(head[2] - now(), 0)
end
return { 1, promoted, reaped, expired, due, tick }
