"""Programs of others: git, coding agents, trackers, and the probes that ask the world outside.

Neither a store nor a job's row may enter: what is asked is handed in, and answers go out.
Inside: users rely on none of its modules.
"""
