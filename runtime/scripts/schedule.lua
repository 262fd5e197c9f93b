-- schedule: a job enters the queue and waits for its time.
--
-- KEYS  row, schedule, ...
-- ARGV  id, payload, base, src, unique key or '', its window in ms or '', lane or '', 'in' or 'at', ms (a
--       delay on the server's clock, or an absolute time), then the row's other fields and values in pairs
-- Does  as enqueue, but parks the job; wakes the pump if it is the earliest.
-- Gives {'enqueued'}; {'duplicate', src}; {'conflict', id}; EMQKIND, EMQFULL. Safe to repeat.
-- By    Client.Enqueue with In or At
--@keys row schedule pending meta wake_pump unique_key
local base = ARGV[3]
--@use now row lane announce place unique admit
--@main
local refused, on = admit('scheduled', ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], ARGV[7] ~= '' and ARGV[7],
  { unpack(ARGV, 10) })
if refused then
  return refused
end
local due = tonumber(ARGV[9])
if ARGV[8] == 'in' then
  due = now() + due
end
park(ARGV[1], due)
loud = on
announce('scheduled', row, {})
return { 'enqueued' }
