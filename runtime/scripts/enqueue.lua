-- enqueue: a job enters the queue and may be claimed at once.
--
-- KEYS  row, pending, ...
-- ARGV  id, payload, base, src, unique key or '', its window in ms or '', then the row's other fields
--       and their values in pairs
-- Does  admits the job (kind, existence, uniqueness, length), writes its row, lists it, wakes a worker.
-- Gives {'enqueued'}; {'duplicate', src of the row that is there}; {'conflict', id of the holder};
--       EMQKIND, EMQFULL. Safe to repeat: the src tells the caller's own resend from another job.
-- By    Client.Enqueue
--@keys row pending schedule meta wake wake_pump active unique_key
local base = ARGV[3]
--@use row place unique admit
--@main
local refused = admit('pending', ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], { unpack(ARGV, 7) })
if refused then
  return refused
end
ready(ARGV[1])
wake_workers()
return { 'enqueued' }
