"""When things are due: cron expressions, intervals and single instants, in any time zone."""
