"""Methods of the client for schedules: trainings that the service repeats at given times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gcvae_client.bodies import present
from gcvae_client.connections import Connections
from gcvae_client.errors import Document
from gcvae_client.resources import Resource, id_of, path_of


class Schedules(Connections):
    """Base class of `Client` with the methods for schedules."""

    def create_schedule(
        self,
        name: str,
        cron: str,
        *,
        source: Document | None = None,
        dataset: Resource | None = None,
        time_zone: str = "UTC",
        training: Mapping[str, Any] | None = None,
        scoring: str = "full",
        sample: Mapping[str, Any] | None = None,
        export: Document | None = None,
        paused: bool = False,
    ) -> Document:
        """Creates a schedule, whose runs read a table, train a model on it and generate a sample.

        Args:
            name: Name of the schedule, unique in the workspace.
            cron: Times of the runs: minute, hour, day of month, month and day of week, as in cron.
            source: Table that each run reads: a JSON object with the arguments of `import_table`,
                such as `connection` and `table`.
            dataset: Existing dataset, instead of a source.
            time_zone: Time zone of `cron`, such as Europe/Berlin.
            training: Options of the training, such as `preset`.
            scoring: Limit on the scores of the models: `full`, `flag` or `off`.
            sample: Members of the request for a sample, such as `rows`. Default: no sample.
            export: Where to write the sample: `connection`, `table` or `key`, and `if_exists`
                (`append` or `replace`). Default: nowhere.
            paused: Whether the schedule has no automatic runs, only those of `run_schedule`.

        Raises:
            InvalidError: A member of the request is invalid.
            NotFoundError: The workspace has no such connection or dataset.
            ConflictError: There is a schedule with this name already.
        """
        body = present(
            name=name, cron=cron, time_zone=time_zone, paused=paused,
            source=_of_connection(source), export=_of_connection(export),
            dataset_id=None if dataset is None else id_of(dataset, "dataset"),
            training=training, scoring=scoring, sample=sample,
        )  # fmt: skip
        return self._json("POST", "/v1/schedules", json=body)

    def schedules(self) -> Iterator[Document]:
        """Yields all schedules of the workspace, the newest first."""
        return self._items("/v1/schedules")

    def schedule(self, schedule: Resource) -> Document:
        """Returns the current state of a schedule."""
        return self._json("GET", path_of("schedule", schedule))

    def change_schedule(self, /, schedule: Resource, **changes: Any) -> Document:
        """Changes a schedule and returns it.

        Args:
            changes: New `name`, `cron`, `time_zone` or `paused`; `columns=None` accepts a source
                whose columns have changed.

        Raises:
            InvalidError: A member of the request is invalid.
        """
        path = path_of("schedule", schedule)
        return self._json("PATCH", path, json=changes)

    def run_schedule(self, schedule: Resource) -> Document:
        """Starts a run of a schedule now and returns it.

        Raises:
            ConflictError: A run of the schedule is still running.
        """
        return self._json("POST", path_of("schedule", schedule, "/runs"))

    def runs(self, schedule: Resource) -> Iterator[Document]:
        """Yields the last 1,000 runs of a schedule, the newest first.

        A run is a JSON object with the members `status` (`running`, `succeeded`, `failed` or
        `skipped`), `missed` (the number of earlier scheduled times at which no run started because
        the service was not running) and `error`, and with the ids of the resources that the run
        created.
        """
        return self._items(path_of("schedule", schedule, "/runs"))


def _of_connection(place: Document | None) -> Document | None:
    if place is None:
        return None
    return {**place, "connection": id_of(place["connection"], "connection")}
