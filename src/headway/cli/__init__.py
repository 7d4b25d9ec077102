"""The command line: one module per command, loaded only when that command is used.

No rule may enter: a command reads its words, calls a verb of the client and shows what comes back.
Inside: users have `headway` and its `--json`, and rely on none of its modules.
"""
