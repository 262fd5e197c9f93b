-- unique: the lock of a job that is the only one of its key. Needs base, row.

-- held tells whether the key is this job's. It reads, so call it before the first write.
local function held(id, unique)
  return unique and redis.call('GET', base .. 'de:' .. unique) == id
end

-- free gives up the key. Only a holder that held() has confirmed may be freed, so an old job never
-- frees a newer one's lock.
local function free(unique)
  redis.call('DEL', base .. 'de:' .. unique)
end

-- holder answers the job that holds the key, or false. A holder whose row is gone, or names another
-- key, has vanished without an ending; only a window outlives its job on purpose.
local function holder(unique)
  local key = base .. 'de:' .. unique
  local id = redis.call('GET', key)
  if not id then
    return false
  end
  if redis.call('PTTL', key) >= 0 then
    return id
  end
  return read(base .. 'job:' .. id, 'unique')[1] == unique and id
end
