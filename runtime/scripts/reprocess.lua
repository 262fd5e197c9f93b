-- reprocess: a dead letter gets a new life.
--
-- KEYS  row, dead, pending, ...
-- ARGV  id, base
-- Does  takes its unique key again; clears the error and forgives every attempt and lapse; lists the
--       job, in its lane, and wakes a worker.
-- Gives 1; -1 gone; EMQSTATE not dead; EMQLOCK with the id that holds the unique key.
--       Safe to repeat: the second call answers EMQSTATE.
-- By    Queue.Reprocess
--@keys row dead pending dead_at meta wake ring paused glimit gweight
local base = ARGV[2]
--@use now row lane parked ready announce unique
-- reprocess answers 'revived', 'gone', 'state' and the state, or 'held' and the holder of its unique key.
local function reprocess(id, row)
  local r = read(row, 'state', 'attempts', 'unique', 'group')
  if not r[1] then
    return 'gone'
  end
  if r[1] ~= 'dead' then
    return 'state', r[1]
  end
  local other = r[3] and holder(r[3])
  if other and other ~= id then
    return 'held', other
  end
  if r[4] then
    ledger().reach(r[4])
  end
  redis.call('ZREM', dead, id)
  redis.call('ZREM', dead_at, id)
  redis.call('HDEL', row, 'last_error', 'settled_at', 'lapsed', 'cancel')
  redis.call('HSET', row, 'state', 'pending', 'forgiven', r[2], 'lapses', 0)
  if r[3] then
    redis.call('SET', base .. 'de:' .. r[3], id)
  end
  ready(id, r[4])
  wake_workers()
  announce('reprocessed', row, {})
  return 'revived'
end
--@main
local status, what = reprocess(ARGV[1], row)
if status == 'gone' then
  return -1
end
if status == 'state' then
  return redis.error_reply('EMQSTATE not dead but ' .. what)
end
if status == 'held' then
  return redis.error_reply('EMQLOCK its unique key is held by ' .. what)
end
return 1
