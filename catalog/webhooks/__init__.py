"""Webhooks: which URLs are told of which events, and the outbox of deliveries.

An event is written to the outbox in the transaction that makes it true, so none is lost if a
process dies. A delivery is attempted until it succeeds or is given up. The deliveries of one
webhook about one job are made in the order of the events.
"""
