-- place: the one place that knows where a job that waits or runs is listed. Needs pending, active,
-- schedule, meta, wake, wake_pump.

-- wake_workers leaves one token for a parked worker. One is enough: a claim that leaves jobs behind
-- passes it on.
local function wake_workers()
  if redis.call('EXISTS', wake) == 0 then
    redis.call('LPUSH', wake, 1)
  end
end

-- ready lists a job for claims.
local function ready(id)
  redis.call('ZADD', pending, 0, id)
end

-- unready takes a waiting job out of the claims' sight.
local function unready(id)
  redis.call('ZREM', pending, id)
end

-- park lists a job for a later time. The process that pumps sleeps until the earliest one, so it is
-- woken when this is the earliest now.
local function park(id, due)
  redis.call('ZADD', schedule, due, id)
  if redis.call('ZRANK', schedule, id) == 0 and redis.call('EXISTS', wake_pump) == 0 then
    redis.call('LPUSH', wake_pump, 1)
  end
end

-- vacate takes a job out of flight. Workers park at the concurrency limit, so the first slot below it
-- wakes one of them.
local function vacate(id)
  if redis.call('ZREM', active, id) == 0 then
    return
  end
  local limit = redis.call('HGET', meta, 'concurrency')
  if limit and redis.call('ZCARD', active) == limit - 1 and redis.call('ZCARD', pending) > 0 then
    wake_workers()
  end
end
