package declare

import (
	"strings"

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
	if _, err := cron.ParseStandard(spec); err != nil {
		return err.Error()
	}
	return ""
}

func cronHint(spec string) string {
	switch {
	case strings.Contains(spec, "TZ="):
		return "give the zone as an option: tz=Europe/Berlin"
	case strings.HasPrefix(spec, "@every"):
		return `write a step: "*/10 * * * *"`
	case len(strings.Fields(spec)) == 6:
		return "there is no field for seconds"
	}
	return "it has five fields (minute, hour, day of month, month, day of week) or is @hourly, @daily, @weekly, @monthly or @yearly"
}
