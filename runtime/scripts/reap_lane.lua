-- reap_lane: reap for one lane only, a page of its running jobs in each call.
--
-- KEYS  as reap
-- ARGV  base, lane, cursor ('0' at first), crash budget (0: none; meta.crash_budget wins), about how many
--       jobs to look at (at most 500), lease in ms
-- Does  takes back the lapsed leases on the page, as reap does, after the same grace.
-- Gives {taken back, next cursor, ms until the grace is over or 0}. Safe to repeat.
-- By    Queue.ReapLane
--@keys active pending schedule meta wake wake_pump dead dead_at m_reaped m_failed m_cancelled m_orphan ring paused glimit gweight
local base = ARGV[1]
--@use reap
--@main
local t = now()
local grace = alive(t, tonumber(ARGV[6]))
if grace > t then
  return { 0, ARGV[3], grace - t }
end
local page = redis.call('SSCAN', ledger().running(ARGV[2]), ARGV[3], 'COUNT', math.max(1, math.min(tonumber(ARGV[5]), 500)))
local ids = {}
for _, id in ipairs(page[2]) do
  local ends = redis.call('ZSCORE', active, id)
  if ends and tonumber(ends) <= t then
    ids[#ids + 1] = id
  end
end
return { takeback(ids, t, ARGV[4]), page[1], 0 }
