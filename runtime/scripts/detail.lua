-- detail: everything that is known of one job.
--
-- KEYS  row, pending, active, schedule, dead, completed, kinds
-- ARGV  base, id
-- Does  reads only
-- Gives {state (as state tells it), score in its list or '', the registry's entry of its kind or '', the
--       row's fields and values}; EMQGONE. Safe to repeat.
-- By    Queue.Job
--@keys row pending active schedule dead completed kinds
local base = ARGV[1]
--@use row lane listed
--@main
local id = ARGV[2]
local r = read(row, 'state', 'group', 'kind')
if not r[1] then
  return redis.error_reply('EMQGONE no job ' .. id)
end
local state, score = listed(id, r[1], r[2])
if type(score) ~= 'string' then
  score = ''
end
return { state, score, r[3] and redis.call('HGET', kinds, r[3]) or '', redis.call('HGETALL', row) }
