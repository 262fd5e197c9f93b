-- shards: how many shards a queue has changes.
--
-- KEYS  meta of the first shard
-- ARGV  how many it has, as far as the caller knows; how many it is to have
-- Does  writes the number, unless another one stands there than the caller knows.
-- Gives the number that stands there then. Safe to repeat.
-- By    the first use of a queue by a client that declares more; Queue.SetShards
--@keys meta
--@use
--@main
local n = tonumber(redis.call('HGET', meta, 'shards') or '1')
if n == tonumber(ARGV[1]) and ARGV[1] ~= ARGV[2] then
  redis.call('HDEL', meta, '-') -- accepted without memory
  redis.call('HSET', meta, 'shards', ARGV[2])
  return tonumber(ARGV[2])
end
return n
