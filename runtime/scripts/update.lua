-- update: a job that does not run gets another payload.
--
-- KEYS  row
-- ARGV  id, payload, its version, unique key or '', '=' and the lane, or 'any' for whichever the job has, then
--       the kinds that it may be of (1 or more)
-- Does  writes the payload and its version over the old ones. Nothing else changes: a payload that would
--       have another unique key or lane than the job's is left out.
-- Gives {'updated'}; {'kind', 'unique' or 'lane', the job's own} if that differs; EMQGONE; EMQLOCK if it
--       runs; EMQSTATE if it has completed. Safe to repeat.
-- By    UpdatePayload
--@keys row
--@use row
--@main
local id, payload, version, unique, lane = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local r = read(row, 'state', 'kind', 'unique', 'group')
local state = r[1]
if not state then
  return redis.error_reply('EMQGONE no job ' .. id)
end
if state == 'active' then
  return redis.error_reply('EMQLOCK it runs: cancel it, or wait until it waits again')
end
if state ~= 'pending' and state ~= 'scheduled' and state ~= 'dead' and state ~= 'awaiting_children' then
  return redis.error_reply('EMQSTATE its payload is not needed any more: it is ' .. state)
end
local known = false
for i = 6, #ARGV do
  known = known or ARGV[i] == r[2]
end
if not known then
  return { 'kind', r[2] or '' }
end
if r[3] and r[3] ~= unique then
  return { 'unique', r[3] }
end
if lane ~= 'any' and lane ~= '=' .. (r[4] or '') then
  return { 'lane', r[4] or '' }
end
redis.call('HDEL', row, 'v')
redis.call('HSET', row, 'payload', payload)
if version ~= '1' then
  redis.call('HSET', row, 'v', version)
end
return { 'updated' }
