-- place: the one place that knows where a job that waits or runs is listed. Needs lane, active,
-- schedule, wake, wake_pump. A lane is false for a job without one.

-- wake_workers leaves one token for a parked worker. One is enough: a claim that leaves jobs behind
-- passes it on.
local function wake_workers()
  if redis.call('EXISTS', wake) == 0 then
    redis.call('LPUSH', wake, 1)
  end
end

-- ready lists a job for claims.
local function ready(id, lane)
  if not lane then
    redis.call('ZADD', pending, 0, id)
    return
  end
  local added = redis.call('ZADD', waiting_of(lane), 0, id)
  if not redis.call('ZSCORE', ring, lane) then
    rank(lane)
  end
  if added == 1 then
    count(1)
  end
end

-- unready takes a waiting job out of the claims' sight.
local function unready(id, lane)
  if not lane then
    redis.call('ZREM', pending, id)
  elseif redis.call('ZREM', waiting_of(lane), id) == 1 then
    if redis.call('ZCARD', waiting_of(lane)) == 0 then
      redis.call('ZREM', ring, lane)
    end
    count(-1)
  end
end

-- park lists a job for a later time. The process that pumps sleeps until the earliest one, so it is
-- woken when this is the earliest now.
local function park(id, due)
  redis.call('ZADD', schedule, due, id)
  if redis.call('ZRANK', schedule, id) == 0 and redis.call('EXISTS', wake_pump) == 0 then
    redis.call('LPUSH', wake_pump, 1)
  end
end

-- vacate takes a job out of flight. Workers park at the limits of the queue and of lanes, so the first
-- slot below one wakes one of them.
local function vacate(id, lane)
  local vacated = redis.call('ZREM', active, id)
  if lane then
    redis.call('SREM', running_of(lane), id)
    if redis.call('HEXISTS', glimit, lane) == 1 and rank(lane) then
      wake_workers()
    end
  end
  if vacated == 0 then
    return
  end
  local limit = redis.call('HGET', meta, 'concurrency')
  if limit and redis.call('ZCARD', active) == limit - 1 and servable() then
    wake_workers()
  end
end
