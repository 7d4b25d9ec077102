"""`headway schedules ...`: one module for each command of the group."""
