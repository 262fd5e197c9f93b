-- enqueue: a job enters the queue and may be claimed at once.
--
-- KEYS  row, pending, ...
-- ARGV  id, payload, base, src, unique key or '', its window in ms or '', lane or '', then the row's
--       other fields and their values in pairs
-- Does  admits the job (kind, existence, uniqueness, length), writes its row, lists it in
--       its lane, wakes a worker.
-- Gives {'enqueued'}; {'duplicate', src of the row that is there}; {'conflict', id of the holder};
--       EMQKIND, EMQFULL. Safe to repeat: the src tells the caller's own resend from another job.
-- By    Client.Enqueue
--@keys row pending schedule meta wake ring paused glimit gweight unique_key
local base = ARGV[3]
--@use row lane parked ready unique admit
--@main
local lane = ARGV[7] ~= '' and ARGV[7]
local refused = admit('pending', ARGV[1], ARGV[2], ARGV[4], ARGV[5], ARGV[6], lane, { unpack(ARGV, 8) })
if refused then
  return refused
end
ready(ARGV[1], lane)
wake_workers()
return { 'enqueued' }
