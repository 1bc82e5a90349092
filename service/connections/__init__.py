"""Connections: databases, buckets and web servers that an administrator has given a name.

Each read or write of their tables runs in a separate process, which can reach only the host of one
connection and contains no secret except the password of this connection.
"""
