"""The fast lane: plain calls are claimed and settled together, with a few statements for many.

Only this package speaks of it. The worker's step sees a `ShortcutPart`, and `PARTS` in
`worker/step.py` has it as one line: without that line every call takes the general way, with the
same rows.
"""
