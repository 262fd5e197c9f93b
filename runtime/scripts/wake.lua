-- wake: a token that its taker could not use goes to another parked worker.
--
-- KEYS  wake, ...
-- ARGV  none
-- Does  leaves one token if there is none.
-- Gives 1. Safe to repeat.
-- By    the worker whose slots filled up while it was waiting
--@keys wake meta
--@use parked ready
--@main
redis.call('HDEL', meta, '-') -- accepted without memory
wake_workers()
return 1
