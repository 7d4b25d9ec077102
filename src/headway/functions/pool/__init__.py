"""The worker's side of functions: start host processes, hand out calls, take in how they ended.

The user's code may not enter: it runs in the hosts.
"""
