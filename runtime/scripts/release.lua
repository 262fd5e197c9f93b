-- release: the worker hands a job back unrun or unfinished.
--
-- KEYS  active, pending, schedule, row, ...
-- ARGV  id, token, delay in ms (0: at once), base, by
-- Does  takes the job; forgives the attempt; lists it again and wakes a worker, or parks it for the
--       delay. A cancelled job ends.
-- Gives 'pending', 'scheduled', 'cancelled'; 'again STATE'; EMQGONE, EMQSTALE. Safe to repeat.
-- By    the worker, at shutdown, for a kind or version it does not know, for a suspect too many
--@keys active pending schedule row meta wake wake_pump dead dead_at m_released m_failed m_cancelled m_stale ring paused glimit gweight
local base = ARGV[4]
--@use now row lane parked ready announce place unique ending take
local function release(id, row, token, by, delay)
  local status, job = hold(id, row, token, by)
  if status ~= 'ok' then
    return status
  end
  announce('released', row, job)
  redis.call('HINCRBY', m_released, 'count', '1')
  delay = tonumber(delay)
  local state = delay > 0 and 'scheduled' or 'pending'
  redis.call('HSET', row, 'state', state, 'forgiven', job.forgiven + 1)
  if delay > 0 then
    park(id, now() + delay)
  else
    ready(id, job.lane)
    wake_workers()
  end
  return state
end
--@main
return verdict(release(ARGV[1], row, ARGV[2], ARGV[5], ARGV[3]), ARGV[1])
