"""Servers: a dispatcher and its workers, ready for clients.

`embedded` is a server inside the user's program, `server` one behind a socket (`python -m gt.server`);
`local` starts one of the latter and workers as child processes, which end with the program.
"""
