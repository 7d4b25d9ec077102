"""Inside a function host: the process that imports the user's code and calls its functions.

Neither store nor worker may enter: a host opens a store only if a function asks for one.
"""
