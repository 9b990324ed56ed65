"""Code that the clients' commands share: running a script under a client, and writing reports."""
