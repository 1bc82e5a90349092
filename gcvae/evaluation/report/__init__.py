"""The report on a synthetic table: is it realistic, is it useful, is it safe to share?"""
