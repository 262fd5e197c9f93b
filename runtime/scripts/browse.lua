-- browse: a page of the jobs of one list, in the order of its scores, and of the ids within one score.
--
-- KEYS  pending, active, schedule, dead:at, completed
-- ARGV  base, state, lane or '' (only of pending), 'up' or 'down', count (at most 500), then the score
--       and the id after which to go on
-- Does  reads only. The place of the cursor is searched by halves, so it need not be listed any more.
-- Gives {1 if there are more or 0, then for each job its id, score, and of its row state, kind, lane,
--       attempts, forgiven, lapses, cancel, the beginning of last_error}. Safe to repeat.
-- By    Queue.Browse
--@keys pending active schedule dead_at completed
local base = ARGV[1]
--@use row lane
--@main
local SCAN, EXCERPT = 500, 300
local state, lane, up, n = ARGV[2], ARGV[3], ARGV[4] == 'up', math.min(tonumber(ARGV[5]), SCAN)
local lists = { pending = pending, active = active, scheduled = schedule, dead = dead_at, completed = completed }
local list = lane ~= '' and ledger().waiting(lane) or lists[state]

-- less compares bytes; Lua's own comparison follows the server's locale
local function less(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- at reads a score; an infinite one, which only somebody's hand can have set, is no number everywhere
local function at(text)
  return tonumber(text) or (string.sub(text, 1, 1) == '-' and -math.huge or math.huge)
end

-- place counts the members before the cursor, with it on the way up
local size = redis.call('ZCARD', list)
local function place()
  if not ARGV[6] then
    return up and 0 or size
  end
  local score, id = at(ARGV[6]), ARGV[7]
  local low, high = 0, size
  while low < high do
    local mid = math.floor((low + high) / 2)
    local m = redis.call('ZRANGE', list, mid, mid, 'WITHSCORES')
    local s = at(m[2])
    if s < score or (s == score and (less(m[1], id) or (up and m[1] == id))) then
      low = mid + 1
    else
      high = mid
    end
  end
  return low
end

local from = place()
local to = math.min(from + n, size) - 1
local more = to + 1 < size
if not up then
  to = from - 1
  from = math.max(from - n, 0)
  more = from > 0
end
local answer = { more and 1 or 0 }
if from > to then
  return answer
end
local page = redis.call('ZRANGE', list, from, to, 'WITHSCORES')
for i = 1, #page, 2 do
  local k = up and i or #page - i
  local r = read(base .. 'job:' .. page[k], 'state', 'kind', 'group', 'attempts', 'forgiven', 'lapses', 'cancel', 'last_error')
  answer[#answer + 1] = page[k]
  answer[#answer + 1] = page[k + 1]
  for f = 1, 8 do
    answer[#answer + 1] = string.sub(r[f] or '', 1, EXCERPT)
  end
end
return answer
