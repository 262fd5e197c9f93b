-- debounce: a job enters the queue, or takes the place of the one that waits under its unique key.
--
-- KEYS  row, schedule, pending, ...
-- ARGV  id, payload, base, src, unique key, '', lane or '', 'in', 'at' or 'now', ms or '', then the row's
--       other fields and values in pairs
-- Does  as enqueue and schedule. But if the key's holder is of the same kind and waits, it takes over the
--       payload, version, headers, lane and time of this job; its attempts and lapses are forgiven, and a
--       lapsed claim may settle it no more. No other holder is changed.
-- Gives {'enqueued'}; {'replaced', id of the holder}; {'duplicate', src}; {'conflict', id of the holder};
--       EMQKIND, EMQFULL. Safe to repeat: the holder knows the id that replaced it last.
-- By    Client.Enqueue of a job whose uniqueness is debounced
--@keys row schedule pending meta wake wake_pump ring paused glimit gweight unique_key
local base = ARGV[3]
--@use now row lane announce parked ready place unique admit
--@main
local id, lane, fields = ARGV[1], ARGV[7] ~= '' and ARGV[7], { unpack(ARGV, 10) }
local due = tonumber(ARGV[9])
if ARGV[8] == 'in' then
  due = now() + due
end
local state = due and 'scheduled' or 'pending'

local function wait(id, its_row)
  if due then
    park(id, due)
    announce('scheduled', its_row, {})
  else
    ready(id, lane)
    wake_workers()
  end
end

local refused = admit(state, id, ARGV[2], ARGV[4], ARGV[5], '', lane, fields)
if not refused then
  wait(id, row)
  return { 'enqueued' }
end
if refused[1] ~= 'conflict' then
  return refused
end

local kind
for i = 1, #fields, 2 do
  if fields[i] == 'kind' then
    kind = fields[i + 1]
  end
end
local first = refused[2]
local its_row = base .. 'job:' .. first
local r = read(its_row, 'state', 'kind', 'unique', 'group', 'attempts', 'replaced')
local was = r[4]
if r[6] == id then
  return { 'replaced', first }
end
if (r[1] ~= 'pending' and r[1] ~= 'scheduled') or r[2] ~= kind or r[3] ~= ARGV[5] then
  return refused
end
if was then
  ledger().reach(was)
end
if lane then
  ledger().reach(lane)
end
redis.call('HSET', its_row, 'payload', ARGV[2], 'replaced', id) -- refused without memory, before anything has changed
redis.call('HDEL', its_row, 'v', 'headers', 'max', 'group', 'unique_until', 'due', 'lapses', 'lapsed', 'last_error')
redis.call('HSET', its_row, 'state', state, unpack(fields))
if r[5] ~= '0' then
  redis.call('HSET', its_row, 'forgiven', r[5])
end
if lane then
  redis.call('HSET', its_row, 'group', lane)
end
if r[1] == 'scheduled' then
  redis.call('ZREM', schedule, first)
elseif due or was ~= lane then
  unready(first, was)
end
wait(first, its_row)
return { 'replaced', first }
