"""The report on a table that is to be handed on: is it good, is it useful, is it safe?"""
