"""The imperative shell: loads facts, asks the core, applies the answer in one transaction.

`Engine.step` is one pass over everything; `Worker` repeats it for as long as it lives.
"""
