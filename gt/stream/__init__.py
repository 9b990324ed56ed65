"""The instruction stream: the definitions that client, dispatcher and worker share.

Instructions and their layouts, stream modifiers, descriptions for the log, and repeats (detected sequences
that are sent as references). Imports `gt.ops`.
"""
