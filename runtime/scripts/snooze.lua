-- snooze: not now, but nothing is wrong.
--
-- KEYS  active, schedule, row, ...
-- ARGV  id, token, delay in ms, base, by
-- Does  takes the job; forgives the attempt; parks it for the delay. A cancelled job ends.
-- Gives 'scheduled', 'cancelled'; 'again STATE'; EMQGONE, EMQSTALE. Safe to repeat.
-- By    the worker, when the handler has returned Snooze
--@keys active schedule row pending meta wake wake_pump dead dead_at m_snoozed m_failed m_cancelled m_stale ring paused glimit gweight
local base = ARGV[4]
--@use now row lane parked ready announce place unique ending take
local function snooze(id, row, token, by, delay)
  local status, job = hold(id, row, token, by)
  if status ~= 'ok' then
    return status
  end
  announce('snoozed', row, job)
  redis.call('HSET', row, 'state', 'scheduled', 'forgiven', job.forgiven + 1)
  park(id, now() + delay)
  redis.call('HINCRBY', m_snoozed, 'count', '1')
  return 'scheduled'
end
--@main
return verdict(snooze(ARGV[1], row, ARGV[2], ARGV[5], ARGV[3]), ARGV[1])
