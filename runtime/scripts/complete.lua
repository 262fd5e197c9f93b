-- complete: the handler succeeded.
--
-- KEYS  active, row, ...
-- ARGV  id, token, base, by, retention in ms ('0': none), result
-- Does  takes the job; frees its unique key; deletes it, or keeps it as completed until the retention
--       has passed. A completion that comes before a cancellation wins.
-- Gives 1; 0 gone; 2 this token has been used; EMQSTALE. Safe to repeat: a 0 or 2 after a lost reply
--       means that the first call landed.
-- By    the worker, when the handler has returned nil
--@keys active row pending completed schedule meta wake wake_pump dead dead_at m_completed m_stale m_failed m_cancelled ring paused glimit gweight
local base = ARGV[3]
--@use now row lane parked ready announce place unique ending take
local function complete(id, row, token, by, retain, result)
  local status, job = take(id, row, token, by)
  if status ~= 'ok' then
    return status
  end
  announce('completed', row, job)
  retain = tonumber(retain)
  if retain > 0 then
    local t = now()
    redis.call('HSET', row, 'state', 'completed', 'settled_at', t)
    if result ~= '' then
      redis.call('HSET', row, 'result', result)
    end
    redis.call('ZADD', completed, t + retain, id)
    if job.holds then
      free(job.unique)
    end
  else
    erase(row, job)
  end
  redis.call('HINCRBY', m_completed, 'count', '1')
  return 'completed'
end
--@main
local status = complete(ARGV[1], row, ARGV[2], ARGV[4], ARGV[5], ARGV[6])
if status == 'completed' then
  return 1
end
if status == 'gone' then
  return 0
end
if status == 'stale' then
  return verdict(status, ARGV[1])
end
return 2
