"""Starting commands at most once and never losing how they ended.

Standard library only, no database: whatever here runs beside a job must be small and must outlive
the worker. docs/protocols.md, sections 1 to 9, is the law of this package.
"""
