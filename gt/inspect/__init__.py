"""Tools that read logs and running servers: the tape, timelines, `gt.top`, and the live page."""
