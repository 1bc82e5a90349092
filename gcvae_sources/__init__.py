"""Reads and writes tables in databases, and reads files in formats other than CSV and Parquet.

A table is read in batches into a Parquet file, and is written from a Parquet file.
"""
