-- lanes: a page of lanes, or one lane.
--
-- KEYS  ring, paused, glimit, gweight, ...
-- ARGV  base, stage, cursor, count (about so many in one page, at most 500). The stages are 'ring' (lanes
--       in which jobs wait), then 'paused', 'glimit' and 'gweight' (idle lanes with a control of their
--       own); a browse begins with 'ring' and '0'. Stage 'one' answers the lane that cursor names
-- Does  reads only. A lane that changes while it is browsed may come twice or not at all.
-- Gives {next stage or '', next cursor, lane, waiting, active, weight, limit or '', paused 1 or 0, ...}.
--       Safe to repeat.
-- By    Queue.Lanes, Queue.Lane
--@keys ring paused glimit gweight meta pending
local base = ARGV[1]
--@use lane
--@main
local stage, cursor = ARGV[2], ARGV[3]
local stages = {
  ring = { 'ZSCAN', ring, 2, 'paused' },
  paused = { 'SSCAN', paused, 1, 'glimit' },
  glimit = { 'HSCAN', glimit, 2, 'gweight' },
  gweight = { 'HSCAN', gweight, 2, '' },
}

-- seen tells whether an earlier stage lists the lane
local function seen(lane)
  return lane == ''
    or (stage ~= 'ring' and redis.call('ZSCORE', ring, lane))
    or ((stage == 'glimit' or stage == 'gweight') and redis.call('SISMEMBER', paused, lane) == 1)
    or (stage == 'gweight' and redis.call('HEXISTS', glimit, lane) == 1)
end

local names, s = {}, stages[stage]
if s then
  local page = redis.call(s[1], s[2], cursor, 'COUNT', ARGV[4])
  cursor = page[1]
  for i = 1, #page[2], s[3] do
    if not seen(page[2][i]) then
      names[#names + 1] = page[2][i]
    end
  end
  if cursor == '0' then
    stage = s[4]
  end
else
  names, stage, cursor = { cursor }, '', '0'
end

local answer = { stage, cursor }
for _, lane in ipairs(names) do
  for _, v in ipairs({
    lane,
    redis.call('ZCARD', ledger().waiting(lane)),
    redis.call('SCARD', ledger().running(lane)),
    redis.call('HGET', gweight, lane) or '1',
    redis.call('HGET', glimit, lane) or '',
    redis.call('SISMEMBER', paused, lane),
  }) do
    answer[#answer + 1] = v
  end
end
return answer
