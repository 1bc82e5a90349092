"""Tables of databases and of files in other formats than CSV and Parquet, for commands and service.

A table is read in batches into one Parquet file, and written from one.
"""
