-- discard: the job ends without having succeeded and nothing of it is kept.
--
-- KEYS  active, row, ...
-- ARGV  id, token, base, by
-- Does  takes the job and deletes it; a cancelled one is counted as cancelled.
-- Gives 'discarded', 'cancelled'; 'again STATE'; EMQGONE, EMQSTALE. Safe to repeat: EMQGONE after a
--       lost reply means that the first call landed.
-- By    the worker, when the handler has returned Discard, or any error after a cancellation
--@keys active row pending schedule meta wake wake_pump dead dead_at m_discarded m_failed m_cancelled m_stale ring paused glimit gweight
local base = ARGV[3]
--@use now row lane parked ready announce place unique ending take
local function discard(id, row, token, by)
  local status, job = hold(id, row, token, by)
  if status ~= 'ok' then
    return status
  end
  announce('discarded', row, job)
  erase(row, job)
  redis.call('HINCRBY', m_discarded, 'count', '1')
  return 'discarded'
end
--@main
return verdict(discard(ARGV[1], row, ARGV[2], ARGV[4]), ARGV[1])
