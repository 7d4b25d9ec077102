"""MCP: `headway mcp`, which gives agents the verbs of Headway as tools, over stdin and stdout.

Everything here calls the verbs of `headway.Client`, in the name of an agent; no rule of scheduling
may enter, no SQL, nothing of the worker and nothing of HTTP. `tools` is the only place that knows
which tools there are. No tool decides for a person, and none changes what others submitted. Only
`server` imports the library that speaks the protocol, and only `headway mcp` imports it. All names
are inside.
"""
