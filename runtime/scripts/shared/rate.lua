-- rate: GCRA over meta.rate_tat, the theoretical time of the next job. Needs meta.
--
-- Jobs are spaced by T = (period + slack) / max, and up to one slack of unused time may be caught up
-- in a burst. So no window of a period ever holds more than max jobs.

-- allowance answers how many jobs may be taken at t and, when none may, the ms until one may.
local function allowance(max, period, tat, t)
  local slack = period / 20
  local spacing = (period + slack) / max
  -- further away than one job can have put it: the clock stepped back, and no time has passed
  tat = math.min(tonumber(tat or 0), t + spacing)
  tat = math.max(tat, t - slack)
  if tat > t then
    return 0, math.ceil(tat - t), tat, spacing
  end
  return math.floor((t - tat) / spacing) + 1, 0, tat, spacing
end

-- spend books n taken jobs. The text has a fixed form, as servers print floats differently.
local function spend(tat, spacing, n)
  redis.call('HSET', meta, 'rate_tat', string.format('%.3f', tat + n * spacing))
end
