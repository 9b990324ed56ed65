"""What travels between client, dispatcher and worker (`protocol`), and how (`connection`).

Imported by every other layer; imports none of them.
"""
