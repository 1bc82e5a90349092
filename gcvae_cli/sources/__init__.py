"""Tables of databases, buckets, web servers and other formats than CSV and Parquet.

Commands read and write them as files in a temporary folder.
"""
