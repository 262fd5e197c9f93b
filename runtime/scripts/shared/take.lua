-- take: the shared first step of every settle. It proves that the caller holds the job by the fence,
-- the pair attempts and by, and takes the job out of flight. Needs active, pending, m_stale, base.
--
-- Answers a status and the job:
--   ok     the caller held it, and now nobody does
--   gone   there is no such row
--   stale  another claim has the job; counted, nothing else changed
--   again  this token has been used: 'again STATE', nothing changed
-- A claim is settled once, counted once and forgiven at most once, however often a settle is sent.
local function take(id, row, token, by)
  local r = read(row, 'state', 'attempts', 'by', 'lapsed', 'forgiven', 'unique', 'cancel', 'max', 'group', 'awaited', 'logs')
  local state = r[1]
  if not state then
    return 'gone'
  end
  if r[2] ~= token or (by ~= '' and r[3] ~= by) then
    redis.call('HDEL', m_stale, '-') -- accepted without memory, so that the count is too
    redis.call('HINCRBY', m_stale, 'count', '1')
    return 'stale'
  end
  local job = {
    attempts = tonumber(r[2]),
    forgiven = tonumber(r[5] or 0),
    unique = r[6],
    holds = held(id, r[6]),
    cancel = r[7],
    max = tonumber(r[8]),
    lane = r[9],
    awaited = r[10],
    logs = logged(row, r[11]),
  }
  if job.lane then
    ledger().reach(job.lane)
  end
  if state == 'active' then
    vacate(id, job.lane)
  elseif state == 'pending' and r[4] == token then
    -- reap took the lease and nobody has claimed since: the job is still this caller's to settle, and
    -- the lapse that reap forgave counts as an attempt after all
    unready(id, job.lane)
    redis.call('HDEL', row, 'lapsed')
    job.forgiven = redis.call('HINCRBY', row, 'forgiven', -1)
  else
    return 'again ' .. state
  end
  return 'ok', job
end

-- hold is take for every settle but complete: a job that was cancelled ends here instead of waiting
-- again or being buried. Needs ending.
local function hold(id, row, token, by)
  local status, job = take(id, row, token, by)
  if status == 'ok' and job.cancel then
    withdraw(row, job)
    return 'cancelled'
  end
  return status, job
end

-- verdict turns the statuses that are refusals into error replies of the single calls.
local function verdict(status, id)
  if status == 'gone' then
    return redis.error_reply('EMQGONE no job ' .. id)
  end
  if status == 'stale' then
    return redis.error_reply('EMQSTALE job ' .. id .. ' is under another claim')
  end
  return status
end
