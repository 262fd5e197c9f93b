-- parked: how a worker that waits for jobs is told. Needs wake.

-- wake_workers leaves one token for a parked worker. One is enough: a claim that leaves jobs behind
-- passes it on.
local function wake_workers()
  if redis.call('EXISTS', wake) == 0 then
    redis.call('LPUSH', wake, 1)
  end
end
