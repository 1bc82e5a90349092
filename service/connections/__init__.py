"""Connections: databases, buckets and web servers that an administrator has named.

Their tables are read and written in a process of its own, which can reach only the host of one
connection and knows no other secret than that connection's password.
"""
