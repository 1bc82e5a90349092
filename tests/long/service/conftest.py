"""What the long tests of the service share with the others."""

from __future__ import annotations

from tests.service.conftest import cars, dataset_id, model, service, start

__all__ = ["cars", "dataset_id", "model", "service", "start"]
