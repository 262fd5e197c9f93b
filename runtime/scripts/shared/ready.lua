-- ready: where a job is listed that may be claimed. Needs lane. A lane is false for a job without one.

-- ready lists a job for claims.
local function ready(id, lane)
  if not lane then
    redis.call('ZADD', pending, '0', id)
    return
  end
  local b = ledger()
  local added = redis.call('ZADD', b.waiting(lane), '0', id)
  if not redis.call('ZSCORE', ring, lane) then
    b.rank(lane)
  end
  if added == 1 then
    b.count(1)
  end
end
