-- enqueue_all: many jobs without lane, unique key or delay enter the queue at once, as enqueue takes one.
--
-- KEYS  pending, schedule, meta, wake
-- ARGV  base, then for each job (at most 128): id, payload, src, how many further arguments are its own,
--       and these: the row's other fields and their values in pairs
-- Does  admits each job by itself: one that is refused changes nothing for the others. Wakes a worker.
-- Gives one answer for each: 1 enqueued; {'duplicate', src of the row that is there}; {'EMQKIND', text};
--       {'EMQFULL', text}; {'again'} for a row that is out of reach while a slot moves: send that one
--       alone. Safe to repeat, as enqueue is.
-- By    Client.Enqueue, for a batch, or for what many goroutines enqueue at once
--@keys pending schedule meta wake
local base = ARGV[1]
--@use row parked
--@main
local m = redis.call('HMGET', meta, 'max_len', 'laned')
local room = math.huge
if m[1] then
  room = tonumber(m[1]) - redis.call('ZCARD', pending) - (m[2] or 0) - redis.call('ZCARD', schedule)
end

local answers, listed = {}, {}
local i = 2
while i <= #ARGV do
  local id, n = ARGV[i], tonumber(ARGV[i + 3])
  local row = base .. 'job:' .. id
  local there = redis.pcall('EXISTS', row)
  local answer = 1
  if string.sub(id, 1, 3) ~= 'JOB' then
    answer = { 'EMQKIND', string.sub(id, 1, 64) .. ' is not the id of a job' }
  elseif there == 1 then
    answer = { 'duplicate', read(row, 'src')[1] or '' }
  elseif there ~= 0 then
    answer = { 'again' }
  elseif room <= 0 then
    answer = { 'EMQFULL', m[1] .. ' jobs wait already' }
  else
    redis.call('HSET', row, 'state', 'pending', 'attempts', '0', 'payload', ARGV[i + 1], 'src', ARGV[i + 2],
      unpack(ARGV, i + 4, i + 3 + n))
    listed[#listed + 1] = '0'
    listed[#listed + 1] = id
    room = room - 1
  end
  answers[#answers + 1] = answer
  i = i + 4 + n
end
if #listed > 0 then
  redis.call('ZADD', pending, unpack(listed))
  wake_workers()
end
return answers
