"""The earlier name of a package."""
