-- progress: how far a running job is.
--
-- KEYS  row, meta
-- ARGV  id, token, by, progress (JSON), base
-- Does  writes it over the last one and tells those who listen, if the caller holds the job
-- Gives 1; EMQGONE, EMQSTALE. Safe to repeat.
-- By    SetProgress, in a handler
--@keys row meta
local base = ARGV[5]
--@use now row announce fence
--@main
local r = read(row, 'state', 'attempts', 'by', 'forgiven')
local refused = outside(ARGV[1], r, ARGV[2], ARGV[3])
if refused then
  return refused
end
redis.call('HDEL', row, '-') -- accepted without memory
redis.call('HSET', row, 'progress', ARGV[4])
announce('progress', row, { attempts = r[2], forgiven = r[4] or 0 }, nil, ARGV[4])
return 1
