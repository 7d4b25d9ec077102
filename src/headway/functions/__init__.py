"""Function jobs inside their host process: the journal, the host, and what a function may ask."""
