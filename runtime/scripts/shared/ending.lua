-- ending: the ways in which a job ends. A job is what take or a read of the row gives: unique, holds, logs.
-- Needs base, announce, dead, dead_at and the metrics of the endings.

-- erase deletes everything that a job owns.
local function erase(row, job)
  redis.call('DEL', row)
  if job.logs then
    redis.call('DEL', row .. ':logs')
  end
  if job.holds then
    free(job.unique)
  end
end

-- bury sends a job to the morgue; its row stays with the reason.
local function bury(id, row, job, reason, at)
  announce('dead', row, job, reason)
  redis.call('HSET', row, 'state', 'dead', 'last_error', reason, 'settled_at', at)
  redis.call('ZADD', dead, '0', id)
  redis.call('ZADD', dead_at, at, id)
  redis.call('HINCRBY', m_failed, 'count', '1')
  if job.holds then
    free(job.unique)
  end
end

-- withdraw ends a job that was cancelled instead of letting it wait again.
local function withdraw(row, job)
  announce('cancelled', row, job)
  erase(row, job)
  redis.call('HINCRBY', m_cancelled, 'count', '1')
end
