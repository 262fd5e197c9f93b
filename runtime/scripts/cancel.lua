-- cancel: a job is not to run, or not to run on.
--
-- KEYS  row, pending, schedule, ...
-- ARGV  id, base
-- Does  deletes a job that waits; marks one that runs, for its worker's next heartbeat, and publishes its
--       id on the channel cancel, which brings that heartbeat forward. Reap and every settle that would
--       let a marked job wait again end it instead; a completion that comes first wins.
-- Gives 'cancelled', 'cancelling'; EMQGONE; EMQSTATE if it has ended already. Safe to repeat.
-- By    Client.Cancel
--@keys row pending schedule active meta wake wake_pump dead dead_at m_cancelled m_failed ring
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
  redis.call('HDEL', row, '-') -- accepted without memory
  redis.call('HSET', row, 'cancel', 1)
  redis.pcall('PUBLISH', base .. 'cancel', id)
  return 'cancelling'
end
if state ~= 'pending' and state ~= 'scheduled' then
  return redis.error_reply('EMQSTATE ended already as ' .. state)
end
if r[3] then
  ledger().reach(r[3])
end
local job = { unique = r[2], holds = held(id, r[2]), awaited = r[4], logs = logged(row, r[5]) }
if state == 'pending' then
  unready(id, r[3])
else
  redis.call('ZREM', schedule, id)
end
withdraw(row, job)
return 'cancelled'
