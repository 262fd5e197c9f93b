-- handover: a process that served the queue stops.
--
-- KEYS  pump, wake_pump, wake, ...
-- ARGV  the caller's tag
-- Does  gives the pump up if it is the caller's; leaves a token to both kinds of waiters, as the caller's
--       last blocking pop may have taken one; deletes the list that only the caller waited on.
-- Gives 1 if the pump was the caller's, else 0. Safe to repeat.
-- By    the worker, after its last blocking pop has ended
--@keys pump wake_pump wake meta private
--@use
--@main
redis.call('HDEL', meta, '-') -- accepted without memory, so that the handover is too
redis.call('DEL', private)
local mine = redis.call('GET', pump) == ARGV[1]
if mine then
  redis.call('DEL', pump)
  if redis.call('EXISTS', wake_pump) == 0 then
    redis.call('LPUSH', wake_pump, 1)
  end
end
if redis.call('EXISTS', wake) == 0 then
  redis.call('LPUSH', wake, 1)
end
return mine and 1 or 0
