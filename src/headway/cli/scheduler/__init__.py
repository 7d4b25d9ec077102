"""`headway scheduler ...`: one module for each command of the group."""
