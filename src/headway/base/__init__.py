"""The ground of everything else: errors, clock, units, texts, the home, the host, other programs.

Only the standard library may enter, and nothing that knows what a job is.
Inside: users rely on none of its modules; the errors are names of `headway`.
"""
