package declare

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// checkSpec says what is wrong with a cron spec; the runtime uses the same parser.
func checkSpec(spec string) string {
	switch {
	case strings.HasPrefix(spec, "TZ=") || strings.HasPrefix(spec, "CRON_TZ="):
		return "the zone stands in the spec"
	case strings.HasPrefix(spec, "@every"):
		return "@every counts from a start that no two processes share"
	}
	parsed, err := cron.ParseStandard(spec)
	switch {
	case err != nil:
		return err.Error()
	case parsed.Next(leapYear).IsZero():
		return neverComes
	}
	return ""
}

const neverComes = "it never comes: none of its months has a day that it names"

// leapYear is the start of a year that has every day there is; a spec without a tick in the five years
// from here has none.
var leapYear = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(-1)

// zoneHint finds the zone that is written in other letters than the database has it.
func zoneHint(zone string) string {
	plain := strings.NewReplacer(" ", "_", "\\", "/").Replace(zone)
	for _, form := range []string{strings.ToUpper(plain), capitals(plain)} {
		if _, err := time.LoadLocation(form); err == nil && form != "" && form != "LOCAL" && form != "Local" {
			return "did you mean " + form + "?"
		}
	}
	if plain == "Z" || plain == "z" {
		return "did you mean UTC?"
	}
	return "write a name of the IANA database, like Europe/Berlin"
}

// capitals writes a zone as most have it: America/New_York.
func capitals(zone string) string {
	out := []byte(strings.ToLower(zone))
	for i := range out {
		if (i == 0 || strings.IndexByte("/_-", out[i-1]) >= 0) && 'a' <= out[i] && out[i] <= 'z' {
			out[i] -= 'a' - 'A'
		}
	}
	return string(out)
}

func cronHint(spec, fault string) string {
	switch {
	case fault == neverComes:
		return `the last day of a month has no spec: run on the first, "0 0 1 * *", or ask for the day in the handler`
	case strings.Contains(spec, "TZ="):
		return "give the zone as an option: tz=Europe/Berlin"
	case strings.HasPrefix(spec, "@every"):
		return `write a step: "*/10 * * * *"`
	case len(strings.Fields(spec)) == 6:
		return "there is no field for seconds"
	}
	return "it has five fields (minute, hour, day of month, month, day of week) or is @hourly, @daily, @weekly, @monthly or @yearly"
}
