-- state: the state of one job.
--
-- KEYS  row, pending, active, schedule, dead, completed, ...
-- ARGV  base, id
-- Does  reads only
-- Gives the state that the row names, if its list and no other has the job; 'absent' without a row;
--       'unknown' if row and lists disagree. Safe to repeat.
-- By    Queue.State
--@keys row pending active schedule dead completed
local base = ARGV[1]
--@use row lane listed
--@main
local r = read(row, 'state', 'group')
return (listed(ARGV[2], r[1], r[2]))
