"""`headway top`: a home on one screen, and keys that act on it.

`reading` makes one document of what the client's verbs say. `model` and `frame` are pure: from that
document, what is selected and the size of the terminal they make lines; from a key they make what
is selected next, and perhaps an action. `acting` does an action by the verb of the same name, and
`live` is the thin loop around all of it, the only part that knows a terminal.
"""
