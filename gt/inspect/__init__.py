"""Tools that show what a program or a server did: the tape, timelines, `gt.top`, and the live page."""
