"""`headway jobs ...`: one module for each command of the group."""
