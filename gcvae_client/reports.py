"""Reports of models: read once they are there, made again when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gcvae_client.connection import Call
from gcvae_client.errors import Document, NotFoundError
from gcvae_client.resources import Resource, dataset_id_of, model_id_of
from gcvae_client.service import Place, Service, document_of

_FORMS = (".json", ".html")


class Reports(Service):
    """The calls of a service that concern reports."""

    def report(
        self,
        model: Resource,
        *,
        format: str | None = None,
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Document | bytes | Path:
        """What a model is worth: fidelity, utility, likelihood and privacy, each with a verdict.

        Where the report is still to be made, or the model to be trained, this waits for the jobs.

        Args:
            format: json (a document) or html (bytes); of a file, what its name ends in, else json.
            to: a file to save it in; the answer is then its path.
            on_progress: called with the job that is waited for each time it has changed.

        Raises:
            NotFoundError: the model has none, and nothing makes one.
            JobFailedError, JobCancelledError: the job that was to make it failed meanwhile, or was
                cancelled.
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
        """Have the report of a model made, or made again; what `wait` waits for.

        Args:
            dataset: the table that the model was trained on; to be given where it was imported, or
                its dataset is deleted.
            holdout: a dataset of rows that nothing in training saw, in place of those that
                training held back (`report_share`).
            columns: those that are predicted; else each that has the rows for it.

        Raises:
            InvalidError: a table is needed, or does not fit the model.
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
    """The form of the report: named, or by the file's ending; else JSON.

    Raises:
        ValueError: The ending stands for no form.
    """
    if format is not None or to is None:
        return format or "json"
    ending = Path(to).suffix.lower()
    if ending not in _FORMS:
        known = ", ".join(_FORMS)
        raise ValueError(f"{to}: the file's name must end in {known}, or `format` say what it is")
    return ending.removeprefix(".")
