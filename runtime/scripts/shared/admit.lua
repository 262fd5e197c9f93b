-- admit: the door of a queue, shared by enqueue and schedule. Needs row, lane, pending,
-- schedule, meta, unique_key.
--
-- Order is law: kind, existence, uniqueness, length, and only then the row is written. Answers false
-- and meta.events when the row was written, else the reply of the call. The fields are the row's other
-- ones, in pairs.
local function admit(state, id, payload, src, unique, window, lane, fields)
  if string.sub(id, 1, 3) ~= 'JOB' then
    return redis.error_reply('EMQKIND ' .. string.sub(id, 1, 64) .. ' is not the id of a job')
  end
  if redis.call('EXISTS', row) == 1 then
    return { 'duplicate', read(row, 'src')[1] or '' }
  end
  if unique ~= '' then
    local id = holder(unique)
    if id then
      return { 'conflict', id }
    end
  end
  local m = redis.call('HMGET', meta, 'max_len', 'laned', 'events')
  local most = tonumber(m[1])
  if most and redis.call('ZCARD', pending) + (m[2] or 0) + redis.call('ZCARD', schedule) >= most then
    return redis.error_reply('EMQFULL ' .. m[1] .. ' jobs wait already')
  end
  if lane then
    ledger().reach(lane)
  end
  if unique ~= '' then
    if window ~= '' then
      redis.call('SET', unique_key, id, 'PX', window)
    else
      redis.call('SET', unique_key, id)
    end
  end
  redis.call('HSET', row, 'state', state, 'attempts', '0', 'payload', payload, 'src', src, unpack(fields))
  if lane then
    redis.call('HSET', row, 'group', lane)
  end
  return false, m[3]
end
