-- row: reads fields of a job's row. A key of another type, which only somebody else can have put
-- there, is no row: it must not stop a script that has other jobs to see to.
local function read(row, ...)
  local r = redis.pcall('HMGET', row, ...)
  if not r.err then
    return r
  end
  if string.sub(r.err, 1, 9) == 'WRONGTYPE' then
    return {}
  end
  return redis.call('HMGET', row, ...) -- a slot that moves: the server says so in its own words
end

-- logged tells whether a job has a list of log lines, by the row's field logs. The list is no declared key, so
-- call it before the first write.
local function logged(row, logs)
  return logs and redis.call('EXISTS', row .. ':logs') == 1
end
