"""SQLite underneath the store. Nothing here knows a noun of the scheduler."""
