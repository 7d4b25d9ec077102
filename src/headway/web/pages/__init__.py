"""Pages for people: HTML from the server, which works without script and is live with it."""
