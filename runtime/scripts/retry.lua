-- retry: the handler failed.
--
-- KEYS  active, schedule, dead, row, ...
-- ARGV  id, token, delay in ms, max attempts, error, base, by
-- Does  takes the job; records the error; parks it for the delay, or buries it when its counted
--       attempts (attempts - forgiven) have reached the row's max or else ARGV's. A cancelled job ends.
-- Gives 'scheduled', 'dead', 'cancelled'; 'again STATE'; EMQGONE, EMQSTALE. Safe to repeat.
-- By    the worker, when the handler has returned an error, panicked or overrun its timeout
--@keys active schedule dead row pending meta wake wake_pump dead_at m_retried m_failed m_cancelled m_stale ring paused glimit gweight
local base = ARGV[6]
--@use now row lane parked ready announce place unique ending take
local function retry(id, row, token, by, delay, max, reason)
  local status, job = hold(id, row, token, by)
  if status ~= 'ok' then
    return status
  end
  local t = now()
  announce('failed', row, job, reason)
  if job.attempts - job.forgiven >= (job.max or tonumber(max)) then
    bury(id, row, job, reason, t)
    return 'dead'
  end
  redis.call('HSET', row, 'state', 'scheduled', 'last_error', reason)
  announce('retried', row, job)
  park(id, t + delay)
  redis.call('HINCRBY', m_retried, 'count', '1')
  return 'scheduled'
end
--@main
return verdict(retry(ARGV[1], row, ARGV[2], ARGV[7], ARGV[3], ARGV[4], ARGV[5]), ARGV[1])
