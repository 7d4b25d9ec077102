-- Whether anyone waits for a lock at all: only what is parked under a lock has a mode.
create index waits_for_locks on waits (topic) where mode is not null;
