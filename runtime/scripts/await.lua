-- await: how a job has ended, or that somebody waits for its end.
--
-- KEYS  row
-- ARGV  id
-- Does  marks a job that has not ended, by the row's field awaited: its end is then published on the
--       channel ended.
-- Gives {state, result, last error, kind}, nil for what is not there; EMQGONE. Safe to repeat.
-- By    Client.AwaitResult
--@keys row
--@use row
--@main
local r = read(row, 'state', 'result', 'last_error', 'awaited', 'kind')
if not r[1] then
  return redis.error_reply('EMQGONE no job ' .. ARGV[1])
end
if r[1] == 'completed' or r[1] == 'dead' then
  return { r[1], r[2], r[3], r[5] }
end
if not r[4] then
  redis.call('HDEL', row, '-') -- accepted without memory
  redis.call('HSET', row, 'awaited', 1)
end
return { r[1], false, false, r[5] }
