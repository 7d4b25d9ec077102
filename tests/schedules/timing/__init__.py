"""Rules of time, and an oracle of what cron would do with them."""
