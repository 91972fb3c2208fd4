"""Collecting whole records: protocols for the client and the server."""
