-- logs: a page of the lines that a job's handlers wrote.
--
-- KEYS  row
-- ARGV  id, from, n (at most 500). Lines are numbered from 0, also those that are kept no longer; a negative
--       from counts from the end
-- Does  reads only
-- Gives {the number of the first line that follows, how many were ever written, line, ...}; EMQGONE.
--       Safe to repeat.
-- By    Queue.Logs
--@keys row
--@use row
--@main
local r = read(row, 'state', 'logs')
if not r[1] then
  return redis.error_reply('EMQGONE no job ' .. ARGV[1])
end
local from, n = tonumber(ARGV[2]), math.min(tonumber(ARGV[3]), 500)
local total, kept = tonumber(r[2] or 0) or 0, 0
if total > 0 then
  kept = math.min(redis.call('LLEN', row .. ':logs'), total)
end
local first = math.min(math.max(from < 0 and total + from or from, total - kept), total)
local last = math.min(first + n, total) - 1
local answer = { first, total }
if first <= last then
  local lines = redis.call('LRANGE', row .. ':logs', total - 1 - last, total - 1 - first)
  for i = #lines, 1, -1 do
    answer[#answer + 1] = lines[i]
  end
end
return answer
