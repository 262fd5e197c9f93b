-- extend: the heartbeat of the jobs that a process runs.
--
-- KEYS  active, ...
-- ARGV  base, lease in ms, then id, token, by for each job (at most 166)
-- Does  gives every job whose fence is the current one a new lease from now; never puts a job back.
--       Notes in meta.seen that somebody is alive; after a silence it starts the grace (see reap).
-- Gives one number for each job: 1 extended, 2 extended and cancelled meanwhile, 0 lost.
--       Safe to repeat.
-- By    the worker's heartbeat
--@keys active meta
local base, lease = ARGV[1], tonumber(ARGV[2])
--@use now row grace
--@main
local t = now()
local ends = string.format('%.0f', t + lease) -- a text, as in claim
local extended, answers = {}, {}
for i = 3, #ARGV, 3 do
  local id, token, by = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local r = read(base .. 'job:' .. id, 'state', 'attempts', 'by', 'cancel')
  local answer = 0
  if r[1] == 'active' and r[2] == token and (by == '' or r[3] == by) and redis.call('ZSCORE', active, id) then
    answer = r[4] and 2 or 1
    extended[#extended + 1] = ends
    extended[#extended + 1] = id
  end
  answers[#answers + 1] = answer
end
alive(t, lease)
if #extended > 0 then
  redis.call('ZADD', active, 'XX', unpack(extended))
end
return answers
