"""What each route does: one module for a noun, as in the client. A handler calls verbs and shows
their documents; it decides nothing that a verb could decide."""
