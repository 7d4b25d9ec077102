"""Views of jobs for people and programs: documents, lists, reasons, the graph, the queue.

Nothing here changes anything.
"""
