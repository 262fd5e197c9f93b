-- remove: a job that does not run is deleted, whatever it waits for or has ended as.
--
-- KEYS  row, pending, schedule, dead, dead_at, completed, ...
-- ARGV  id, base
-- Does  takes the job out of the list that its state names, in its lane, frees its unique key and deletes
--       it. One that runs is left: cancelling is the way to end it.
-- Gives 'removed'; EMQGONE; EMQLOCK if it runs. Safe to repeat: the second call answers EMQGONE.
-- By    Queue.Remove
--@keys row pending schedule dead dead_at completed active meta wake wake_pump m_removed m_cancelled m_failed ring
local base = ARGV[2]
--@use now row lane parked ready announce place unique ending
--@main
local id = ARGV[1]
local r = read(row, 'state', 'unique', 'group', 'awaited', 'logs')
local state = r[1]
if not state then
  return redis.error_reply('EMQGONE no job ' .. id)
end
if state == 'active' then
  return redis.error_reply('EMQLOCK it runs: cancel it instead')
end
if r[3] then
  ledger().reach(r[3])
end
local job = { unique = r[2], holds = held(id, r[2]), awaited = r[4], logs = logged(row, r[5]) }
if state == 'pending' then
  unready(id, r[3])
end
for _, set in ipairs({ schedule, dead, dead_at, completed }) do
  redis.call('ZREM', set, id)
end
announce('removed', row, job)
erase(row, job)
redis.call('HINCRBY', m_removed, 'count', 1)
return 'removed'
