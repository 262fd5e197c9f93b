-- announce: tells those who listen what has become of a job. Needs base, meta, now.
--
-- Call it at each transition, while the row is still there. It publishes, at most once,
--   on the channel events  while meta.events is set: JSON of id, kind, event, ts (the server's ms) and,
--                          where they are known, attempt (counted), reason (cut), progress (JSON as text)
--   on the channel ended   'ID EVENT' at the end of a job that somebody waits for (its row has awaited)
-- A job is what take or a read of the row gives: awaited, attempts, forgiven; what is not known may lack.
-- A user who may not publish loses the message and nothing else: a script must not break off half way.
local loud -- meta.events: nil until somebody has read it, false when it is off

local function announce(event, row, job, reason, progress)
  if job.awaited and (event == 'completed' or event == 'dead' or event == 'cancelled' or event == 'discarded' or event == 'removed') then
    redis.pcall('PUBLISH', base .. 'ended', string.sub(row, #base + 5) .. ' ' .. event)
  end
  if loud == nil then
    loud = redis.call('HGET', meta, 'events')
  end
  if loud then
    redis.pcall('PUBLISH', base .. 'events', cjson.encode({
      id = string.sub(row, #base + 5), -- behind 'job:'
      kind = redis.call('HGET', row, 'kind') or nil,
      event = event,
      ts = now(),
      attempt = job.attempts and job.attempts - (job.forgiven or 0) or nil,
      reason = reason and string.sub(reason, 1, 1000) or nil,
      progress = progress,
    }))
  end
end
