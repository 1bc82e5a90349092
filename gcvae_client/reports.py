"""Methods of the client that request and download quality reports of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gcvae_client.connection import Call
from gcvae_client.errors import Document, NotFoundError
from gcvae_client.resources import Resource, dataset_id_of, model_id_of
from gcvae_client.service import Place, document_of
from gcvae_client.webhooks import Webhooks

_FORMS = (".json", ".html")


class Reports(Webhooks):
    """Base class of `Client` with the methods that request and download quality reports of
    models."""

    def report(
        self,
        model: Resource,
        *,
        format: str | None = None,
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Document | bytes | Path:
        """Returns the quality report of a model: fidelity, utility, likelihood and privacy.

        If the model is in training or its report is being made, the call waits for these jobs.

        Args:
            format: json (the result is a dictionary) or html (bytes). Default: that of the
                extension of `to`, else json.
            to: Path to save the report at; the result is this path.
            on_progress: Called with the job as JSON each time it has changed.

        Raises:
            NotFoundError: The model has no report, and no job is making one; call `make_report`.
            JobFailedError, JobCancelledError: The job for the report failed or was cancelled.
        """
        format = _format(format, to)
        path = f"/v1/models/{model_id_of(model)}/report"
        call = Call("GET", path, params={"format": format})
        while True:
            try:
                return self._taken_report(call, format, to)
            except NotFoundError as error:
                if not error.problem.get("is_under_way"):
                    raise
                self.wait(error.problem["job_id"], on_progress)

    def make_report(
        self,
        model: Resource,
        *,
        dataset: Resource | None = None,
        holdout: Resource | None = None,
        columns: Sequence[str] | None = None,
        seed: int = 0,
    ) -> Document:
        """Starts a job that makes or renews the quality report of a model.

        Args:
            dataset: Dataset of the training table; required if the model was imported or its
                dataset deleted.
            holdout: Dataset of real rows that were not used in training. Default: the rows that
                training set aside (`report_share`).
            columns: Columns to predict in the utility part. Default: all with enough rows.
            seed: Seed of the report.

        Returns:
            The report as JSON, whose job `wait` waits for.

        Raises:
            InvalidError: A required table is missing, or a table does not match the model.
        """
        document: dict[str, Any] = {"seed": seed}
        tables = {"dataset_id": dataset, "holdout_dataset_id": holdout}
        document |= {name: dataset_id_of(t) for name, t in tables.items() if t is not None}
        if columns is not None:
            document["columns"] = list(columns)
        path = f"/v1/models/{model_id_of(model)}/report"
        body = {"json": document}
        made: Document = self._json("POST", path, body=lambda _: dict(body), creates=True)
        return made

    def _taken_report(self, call: Call, format: str, to: Place | None) -> Document | bytes | Path:
        if to is not None:
            return self._download(call, to)
        answer = self._connection.request(call)
        return document_of(answer) if format == "json" else answer.content


def _format(format: str | None, to: Place | None) -> str:
    """Returns the format of the report: `format`, else that of the extension of `to`, else json.

    Raises:
        ValueError: The extension is not supported.
    """
    if format is not None or to is None:
        return format or "json"
    ending = Path(to).suffix.lower()
    if ending not in _FORMS:
        known = ", ".join(_FORMS)
        raise ValueError(f"{to}: the file's name must end in {known}, or `format` say what it is")
    return ending.removeprefix(".")
