"""Starting commands at most once and never losing how they ended.

Only the standard library may enter, and no database: whatever here runs beside a job must be small
and must outlive the worker. docs/protocols.md, sections 1 to 9, is the law of this package.
Inside: users rely on none of its modules.
"""
