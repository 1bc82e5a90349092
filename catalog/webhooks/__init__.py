"""Webhooks (URLs that are notified of events), and the outbox of their deliveries.

An event is written to the outbox in the transaction of the change that it reports, so no event is
lost if a process dies. A delivery is attempted until it succeeds or is given up. Events about one
subject, such as a job, are delivered to a webhook in their order.
"""
