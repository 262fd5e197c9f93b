-- place: how a job leaves the lists of ready, and flight, and where it is parked. Needs lane, ready,
-- active, schedule, wake_pump, announce. A lane is false for a job without one.

-- unready takes a waiting job out of the claims' sight.
local function unready(id, lane)
  if not lane then
    redis.call('ZREM', pending, id)
    return
  end
  local b = ledger()
  if redis.call('ZREM', b.waiting(lane), id) == 1 then
    if redis.call('ZCARD', b.waiting(lane)) == 0 then
      redis.call('ZREM', ring, lane)
    end
    b.count(-1)
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
  local m = redis.call('HMGET', meta, 'concurrency', 'events')
  local limit = m[1]
  loud = m[2]
  if lane then
    redis.call('SREM', ledger().running(lane), id)
    if redis.call('HEXISTS', glimit, lane) == 1 and ledger().rank(lane) then
      wake_workers()
    end
  end
  if vacated == 0 then
    return
  end
  if limit and redis.call('ZCARD', active) == limit - 1 and ledger().servable() then
    wake_workers()
  end
end
