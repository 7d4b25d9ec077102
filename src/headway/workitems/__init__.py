"""Items of trackers as jobs: targets, recipes, and what `sling` makes of them.

Neither functions nor schedules may enter. Inside: users reach it through `headway.Client`.
"""
