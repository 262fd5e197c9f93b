-- nudge: a process ends its own blocking pop without losing a token that the pop may have taken.
--
-- KEYS  private, ...
-- ARGV  none
-- Does  leaves a token on the list that only this process waits on. It expires, so a process that dies
--       leaves nothing behind.
-- Gives 1. Safe to repeat.
-- By    the worker, when it wants to wait for more, or stops
--@keys private meta
--@use
--@main
redis.call('HDEL', meta, '-') -- accepted without memory
redis.call('LPUSH', private, 1)
redis.call('PEXPIRE', private, 60000)
return 1
