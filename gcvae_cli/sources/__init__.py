"""Tables in databases and buckets, on web servers, and in formats other than CSV and Parquet.

Input tables are copied to files in a temporary folder, which the commands read. Output tables are
written to such files and then copied to their destination.
"""
