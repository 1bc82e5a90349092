"""Endpoints for webhooks (URLs to which the service sends events) and the log of deliveries."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from catalog.records import Delivery, EventType, Webhook
from service.access import Workspace
from service.bodies import PageBody, RequestBody
from service.http.json_bodies import JsonRoute
from service.http.pages import Cursor, Limit, page_body
from service.resources import Shared

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=JsonRoute)

_HAPPENING: list[EventType] = [event for event in EventType if event != EventType.PING]


class NewWebhookBody(RequestBody):
    """A request to create a webhook: a URL to which events are sent."""

    url: str = Field(min_length=1, max_length=2000, pattern=r"^[^\x00-\x20\x7f]+$")
    events: list[EventType] = Field(
        default=_HAPPENING, min_length=1, description="types of the events; default: all"
    )


class WebhookBody(BaseModel):
    """A webhook: a URL to which events are sent."""

    id: str
    url: str
    events: list[EventType]
    created_at: datetime


class CreatedWebhookBody(WebhookBody):
    """A new webhook with its secret, which is shown only once."""

    secret: str = Field(description="signs deliveries by the Standard Webhooks specification")


class DeliveryBody(BaseModel):
    """The delivery of one event to one webhook, with its latest result."""

    id: str = Field(description="id of the event; the receiver gets it in `webhook-id`")
    webhook_id: str
    type: EventType
    subject: str = Field(description="id of the job, key, schedule or webhook")
    attempts: int
    next_attempt_at: datetime | None = Field(
        description="null if the delivery succeeded or was given up"
    )
    status_code: int | None = Field(description="status of the last response")
    error: str | None = Field(description="what went wrong in the last attempt")
    delivered_at: datetime | None = Field(description="null if the receiver has not accepted it")
    created_at: datetime


@router.post("", status_code=201)
def create_webhook(
    body: NewWebhookBody, workspace: Workspace, resources: Shared, response: Response
) -> CreatedWebhookBody:
    """Create a webhook: a URL to which an event is sent when a job or run ends, a report is ready,
    or a key expires within a week. The operator must have allowed its host. Requires the scope
    `admin`."""
    resources.allowed_hosts.require_allowed(body.url, "/url")
    webhook, secret = workspace.webhooks.create(body.url, body.events)
    response.headers["Location"] = f"/v1/webhooks/{webhook.id}"
    return CreatedWebhookBody(**vars(webhook), secret=secret)


@router.get("")
def list_webhooks(
    workspace: Workspace, limit: Limit = 50, cursor: Cursor = None
) -> PageBody[WebhookBody]:
    """List the webhooks of the workspace, newest first. Requires the scope `admin`."""
    return page_body(workspace.webhooks.list(limit=limit, cursor=cursor), _webhook)


@router.get("/{webhook_id}")
def read_webhook(webhook_id: str, workspace: Workspace) -> WebhookBody:
    """Read a webhook, without its secret. Requires the scope `admin`."""
    return _webhook(workspace.webhooks.get(webhook_id))


@router.delete("/{webhook_id}", status_code=204)
def delete_webhook(webhook_id: str, workspace: Workspace) -> None:
    """Delete a webhook with its deliveries. Requires the scope `admin`."""
    workspace.webhooks.delete(webhook_id)


@router.post("/{webhook_id}/ping", status_code=202)
def ping_webhook(webhook_id: str, workspace: Workspace) -> DeliveryBody:
    """Send an event of type `ping`, to test a webhook. Requires the scope `admin`."""
    return _delivery(workspace.webhooks.ping(webhook_id))


@router.get("/{webhook_id}/deliveries")
def list_deliveries(
    webhook_id: str, workspace: Workspace, limit: Limit = 50, cursor: Cursor = None
) -> PageBody[DeliveryBody]:
    """List the deliveries of a webhook in the last 30 days, newest first. Requires the scope
    `admin`."""
    found = workspace.webhooks.deliveries(webhook_id, limit=limit, cursor=cursor)
    return page_body(found, _delivery)


@router.post("/{webhook_id}/deliveries/{delivery_id}/retry", status_code=202)
def retry_delivery(webhook_id: str, delivery_id: str, workspace: Workspace) -> DeliveryBody:
    """Deliver an event again, even if it was delivered or given up. Requires the scope `admin`."""
    return _delivery(workspace.webhooks.retry(webhook_id, delivery_id))


def _webhook(webhook: Webhook) -> WebhookBody:
    return WebhookBody.model_validate(vars(webhook))


def _delivery(delivery: Delivery) -> DeliveryBody:
    return DeliveryBody.model_validate(vars(delivery))
