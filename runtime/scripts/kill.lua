-- kill: the job is a dead letter at once, whatever attempts are left.
--
-- KEYS  active, dead, row, ...
-- ARGV  id, token, reason, base, by
-- Does  takes the job and buries it with the reason. A cancelled job ends.
-- Gives 'dead', 'cancelled'; 'again STATE'; EMQGONE, EMQSTALE. Safe to repeat.
-- By    the worker, when the handler has returned Dead or the payload cannot be decoded
--@keys active dead row pending schedule meta wake wake_pump dead_at m_failed m_cancelled m_stale ring paused glimit gweight
local base = ARGV[4]
--@use now row lane parked ready announce place unique ending take
local function kill(id, row, token, by, reason)
  local status, job = hold(id, row, token, by)
  if status ~= 'ok' then
    return status
  end
  bury(id, row, job, reason, now())
  return 'dead'
end
--@main
return verdict(kill(ARGV[1], row, ARGV[2], ARGV[5], ARGV[3]), ARGV[1])
