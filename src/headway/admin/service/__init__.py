"""A worker that the system keeps: a systemd user unit, or an `@reboot` line where there is none.

`plan` says what is wanted of the system, and writes it in the words of either; `systemd` and
`crontab` put that in place, look at it and take it away. None of them opens a store.
"""
