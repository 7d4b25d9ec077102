"""Names of modules as they were before: in stored commands, in claims, and in users' imports.

`headway` searches here for modules that it has no longer. Nothing new may enter, and nothing of
Headway imports from here. What users imported warns for one release.
"""
