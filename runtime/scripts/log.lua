-- log: a line about a running job.
--
-- KEYS  row
-- ARGV  id, token, by, how many lines are kept (at most 1000), line
-- Does  puts the line at the head of the job's list, which ends with its row, and drops the oldest ones, if
--       the caller holds the job. The row's field logs counts the lines that were ever written.
-- Gives 1; EMQGONE, EMQSTALE. Not safe to repeat: the line would stand there twice.
-- By    AppendLog, in a handler
--@keys row
--@use row fence
--@main
local r = read(row, 'state', 'attempts', 'by', 'logs')
local refused = outside(ARGV[1], r, ARGV[2], ARGV[3])
if refused then
  return refused
end
local list = row .. ':logs'
redis.call('EXISTS', list) -- not declared: read before the first write
redis.call('HDEL', row, '-') -- accepted without memory
if not r[4] then
  redis.call('DEL', list) -- of a row that somebody has deleted by hand
end
redis.call('HINCRBY', row, 'logs', 1)
redis.call('LPUSH', list, ARGV[5])
redis.call('LTRIM', list, 0, math.max(1, math.min(tonumber(ARGV[4]), 1000)) - 1)
return 1
