"""Tables in databases and buckets, on web servers, and in formats other than CSV and Parquet.

They are copied from or to files in a temporary folder, which the commands read and write.
"""
