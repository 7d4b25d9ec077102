"""The imperative shell: loads facts, asks the core, applies the answer in one transaction.

`Engine.step` is one pass over everything; `Worker` repeats it for as long as it lives. No rule of
scheduling may enter, nor a feature but by its part of the step, nor the client.
Inside: users start it by `headway work`.
"""
