"""A workflow, or a run of one, as text for a terminal, as a picture, and for Mermaid and Graphviz.
Pure.

The nodes are drawn as they are written: a matrix is one node with its count, an agent is one node
with its prompt. An edge that accepts other outcomes than success alone is a *route*: it is dashed,
and names its outcomes. A loop leads back, and says how often it may. The nodes of `finally` stand
apart, because each follows all the others.

`model` says what is drawn, `forms` lists the forms, and each other module writes one of them.
"""
