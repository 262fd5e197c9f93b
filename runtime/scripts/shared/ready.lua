-- ready: where a job is listed that may be claimed, and who is told. Needs lane, wake. A lane is false for
-- a job without one.

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
  local b = ledger()
  local added = redis.call('ZADD', b.waiting(lane), 0, id)
  if not redis.call('ZSCORE', ring, lane) then
    b.rank(lane)
  end
  if added == 1 then
    b.count(1)
  end
end
