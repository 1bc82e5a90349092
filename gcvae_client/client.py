"""The client: a data team's words for the calls of the service."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from gcvae_client.answers import WantedTable, copy, format_by_ending, wanted_table
from gcvae_client.bodies import (
    Rows,
    Table,
    bare_body,
    form_body,
    listed,
    name_of,
    of_table,
    rows_body,
)
from gcvae_client.connection import Body, Call
from gcvae_client.databases import database_body, is_database, wanted_database
from gcvae_client.errors import Document
from gcvae_client.frames import (
    Frame,
    condition,
    date_formats,
    is_frame,
    row_documents,
    table_format,
)
from gcvae_client.objects import Dataset, Model, bind
from gcvae_client.reports import Reports
from gcvae_client.resources import (
    Resource,
    any_id_of,
    dataset_id_of,
    model_id_of,
    place_of,
)
from gcvae_client.service import Place, document_of

_MAPS = (".json", ".png", ".svg")


class Client(Reports):
    """A connection to one service. Every answer is a document (dict) of the REST API.

    Those of datasets, models and jobs have methods of their own: `dataset.train()`. All are named
    by their ids or by their documents; a model by that of its job or of one of its results too.
    Tables are given as a path, as bytes, or as a data frame of pandas, polars or Arrow. A table
    that is asked for comes as a frame of pandas, or of the kind that was given; as bytes where
    `format` names one; as a file where `to` does.

    Args:
        base_url: where the service is.
        api_key: sent as a bearer token.
        timeout_seconds: longest silence of the service before a request counts as lost.
        retries: how often a request is sent again when the service does not answer or is busy.
    """

    # Datasets

    def upload(
        self,
        table: Table | Mapping[str, Table],
        *,
        name: str | None = None,
        schema: Document | None = None,
        encoding: str | None = None,
    ) -> Dataset:
        """Upload a table (a path, the bytes of CSV, gzipped CSV or Parquet, a frame); the dataset.

        Several are a database, whose keys are found: a dictionary of tables by name, a folder of
        files, or a ZIP file of them. Its `schema` has `tables` with their keys, and `dirty`.

        Args:
            encoding: of a text file, such as cp1252, latin-1 or utf-16; UTF-8 where not given.

        Raises:
            InvalidError: it is no table, or the schema does not fit; `errors` name the places.
        """
        fields = {
            "name": name_of(table) if name is None else name,
            "schema": None if schema is None else json.dumps(schema),
            "encoding": encoding,
        }
        given = {key: value for key, value in fields.items() if value is not None}
        kind = "database" if is_database(table) else "table"
        body = database_body(table) if kind == "database" else bare_body(table)
        call: dict[str, Any] = {"body": body, "params": given}
        if schema is not None:  # too long for an address
            call = {"body": form_body(body, given, kind)}
        found: Dataset = self._json("POST", "/v1/datasets", **call, creates=True)
        return found

    def datasets(self) -> Iterator[Dataset]:
        """Every dataset, newest first."""
        return self._items("/v1/datasets")

    def dataset(self, dataset: Resource) -> Dataset:
        """A dataset."""
        found: Dataset = self._json("GET", f"/v1/datasets/{dataset_id_of(dataset)}")
        return found

    def replace_schema(self, dataset: Resource, schema: Document) -> Dataset:
        """Replace a dataset's schema: what it does not say is inferred, whatever was said before.

        Returns:
            The dataset; `changes` says what is different now.
        """
        path = f"/v1/datasets/{dataset_id_of(dataset)}/schema"
        found: Dataset = self._json("PUT", path, body=lambda _: {"json": schema})
        return found

    def patch_schema(self, dataset: Resource, patch: Document) -> Dataset:
        """Change what a dataset's schema says of single columns; all else stays as it was said.

        Args:
            patch: A JSON merge patch: `{"columns": {"note": {"drop": True}}}`. None takes back what
                was said, and the table is asked again.

        Returns:
            The dataset; `changes` says what is different now.

        Raises:
            InvalidError: the patch does not fit the table, or what was said before.
        """
        headers = {"Content-Type": "application/merge-patch+json"}
        body = {"content": json.dumps(patch), "headers": headers}
        path = f"/v1/datasets/{dataset_id_of(dataset)}/schema"
        found: Dataset = self._json("PATCH", path, body=lambda _: dict(body))
        return found

    def profile(self, dataset: Resource, *, table: str | None = None) -> Document:
        """What a dataset's columns hold; of a database those of a `table`."""
        path = f"/v1/datasets/{dataset_id_of(dataset)}/profile"
        found: Document = self._json("GET", path, params={} if table is None else {"table": table})
        return found

    def first_rows(
        self, dataset: Resource, n_rows: int = 20, *, table: str | None = None
    ) -> list[dict[str, str | None]]:
        """The first rows of a dataset's table as they were uploaded, at most 100."""
        path = f"/v1/datasets/{dataset_id_of(dataset)}/rows"
        params = {"limit": n_rows} | ({} if table is None else {"table": table})
        found = self._json("GET", path, params=params)
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]

    def rename(self, resource: Resource, name: str) -> Any:
        """Give a dataset or a model another name; returns it as it is now."""
        return self._json(
            "PATCH", place_of(any_id_of(resource)), body=lambda _: {"json": {"name": name}}
        )

    def rules(self, dataset: Resource) -> list[Document]:
        """What holds between a dataset's columns in most rows, and where it does not.

        Each has its `formula` in words, how many `rows` have all its columns, how many of these
        `kept` it, the first `exceptions`, and the `rule` as the schema has it.
        """
        path = f"/v1/datasets/{dataset_id_of(dataset)}/rules"
        return list(self._json("GET", path)["rules"])

    def privacy(self, dataset: Resource, *, delta: float | None = None) -> Document:
        """What the private models of a dataset have spent together, and its cap.

        `spendings` has each training, failed and deleted ones too; `epsilon` is that of all at
        `delta` (the cap's, or the least of theirs, where none is given), and None where some of the
        table's models are not private (`models_without_privacy`), which has no bound.
        """
        path = f"/v1/datasets/{dataset_id_of(dataset)}/privacy"
        params = {} if delta is None else {"delta": delta}
        found: Document = self._json("GET", path, params=params)
        return found

    def cap_privacy(self, dataset: Resource, cap: Mapping[str, float] | None) -> Document:
        """Cap (`epsilon`, `delta`) what the models of a dataset may spend together; None: no cap.

        Returns: The ledger, as `privacy` has it.
        """
        path = f"/v1/datasets/{dataset_id_of(dataset)}/privacy"
        found: Document = self._json("PUT", path, body=lambda _: {"json": {"cap": cap}})
        return found

    # Models

    def train(
        self,
        /,
        dataset: Resource,
        *,
        name: str | None = None,
        preset: str = "default",
        seed: int = 0,
        device: str = "auto",
        scoring: str = "full",
        **settings: Any,
    ) -> Model:
        """Have a model trained; the model, whose job `wait` waits for.

        Args:
            scoring: what it says of rows: their scores (`full`), whether they are rare (`flag`),
                or nothing (`off`).
            settings: Settings in the place of the preset's own, such as `max_steps`.

        Raises:
            InvalidError: a preset or a setting is not known.
        """
        training = {"preset": preset, "seed": seed, "device": device, **settings}
        document = {"dataset_id": dataset_id_of(dataset), "training": training}
        document |= {} if scoring == "full" else {"scoring": scoring}
        if name is not None:
            document["name"] = name
        found: Model = self._json(
            "POST", "/v1/models", body=lambda _: {"json": document}, creates=True
        )
        return found

    def import_model(
        self, model: str | os.PathLike[str] | bytes, *, name: str | None = None
    ) -> Model:
        """Bring in a model (a file of `download_model` or of `gcvae train`, or its bytes); ready.

        Raises:
            InvalidError: it is no model, or one that can not be used.
        """
        known_as = name_of(model) if name is None else name
        params = {} if known_as is None else {"name": known_as}
        body = bare_body(model)
        found: Model = self._json(
            "POST", "/v1/models/import", body=body, params=params, creates=True
        )
        return found

    def models(self, dataset: Resource | None = None) -> Iterator[Model]:
        """Every model, newest first; of one dataset, where it is given."""
        filters = {} if dataset is None else {"dataset_id": dataset_id_of(dataset)}
        return self._items("/v1/models", filters)

    def model(self, model: Resource) -> Model:
        """A model, as it is now."""
        found: Model = self._json("GET", f"/v1/models/{model_id_of(model)}")
        return found

    def restrict_scoring(self, model: Resource, scoring: str) -> Model:
        """Have a model say less of rows: whether they are rare (`flag`), or nothing (`off`).

        Raises:
            ConflictError: it says less already, and is never made looser.
        """
        path = f"/v1/models/{model_id_of(model)}"
        found: Model = self._json("PATCH", path, body=lambda _: {"json": {"scoring": scoring}})
        return found

    def download_model(
        self, model: Resource, path: Place, *, minimal: bool = False, scoring: str | None = None
    ) -> Path:
        """Save a trained model as a file, which `gcvae.Synthesizer.load` reads; one of a database
        `gcvae.DatabaseSynthesizer.load`.

        Args:
            minimal: without what drawing, completing and the model's own maps do not need: the
                training record, scores of held-out rows, the table's map and checksum, counts.
            scoring: `flag` or `off`: the file's model says less of rows than the service's.
        """
        params: dict[str, Any] = {"minimal": "true"} if minimal else {}
        params |= {} if scoring is None else {"scoring": scoring}
        path_of_file = f"/v1/models/{model_id_of(model)}/artifact"
        return self._download(Call("GET", path_of_file, params=params), path)

        # What models do

    def sample(
        self,
        model: Resource,
        rows: int | None = None,
        *,
        seed: int | None = None,
        given: Mapping[str, Any] | None = None,
        given_rows: Sequence[Mapping[str, Any]] | Frame | None = None,
        distribution: Mapping[str, Mapping[str, float]] | None = None,
        escape_formulas: bool = False,
        scale: float | None = None,
        parents: int | None = None,
        table: str | None = None,
        format: str | None = None,
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | dict[str, Frame] | bytes | Path:
        """Synthetic rows: a frame, bytes where `format` names one, a file where `to` does.

        Of a database a dictionary of frames by table; as bytes or as a file it is a ZIP file.
        Where rows are too many for one answer, this waits for the job that draws them. A frame of
        pandas names the seed in `attrs["seed"]`.

        Args:
            rows: How many; may be left out with `given_rows`, one row for each of which is drawn.
            seed: The same seed gives the same rows; without one they are others at each call. To
                have them again, give a seed of your own.
            given: By column what every row is to be: a value, a list of values,
                {"min": ..., "max": ...}, or None for a missing cell.
            given_rows: Known cells, None where a cell is not known; documents or a frame.
            distribution: Target shares of one column's levels.
            escape_formulas: In a CSV: ' stands before texts that a spreadsheet would compute.
            scale: Of a database: how many times as many rows as the real tables have; 1 if open.
            parents: Of a database, instead: rows of each table without a parent.
            table: Of a database: this table alone.
            format: csv, parquet, json or jsonl; of a file, what its name ends in.

        Raises:
            InvalidError: a condition is malformed, or the model gives it too small a probability.
            MissingPackageError: a frame is asked for, and pandas is not installed.
        """
        model_id = model_id_of(model)
        kind = model.get("kind") if isinstance(model, Mapping) else None
        of_database = scale is not None or parents is not None or table is not None
        has_no_rows = rows is None and given_rows is None
        if kind == "database" or of_database or (has_no_rows and kind != "table"):
            asked: Document = {"scale": scale, "parents": parents, "seed": seed, "rows": rows}
            known = None if given_rows is None else row_documents(given_rows, dict)
            asked |= {"given": given, "distribution": distribution, "given_rows": known}
            asked["escape_formulas"] = True if escape_formulas else None
            in_form = wanted_database(format, to, table)
            return self._sampled_database(model_id, asked, in_form, table, on_progress)
        like = given_rows if is_frame(given_rows) else None
        wanted = wanted_table(format, to, like, table_format(like))
        formats = self._date_formats(model_id)
        known = None if given_rows is None else row_documents(given_rows, formats)
        conditions = given and {
            name: condition(asked, name, formats) for name, asked in given.items()
        }
        n_rows = len(known) if rows is None and known is not None else rows
        document: Document = {"rows": n_rows, "format": wanted.format}
        choices = {"seed": seed, "given": conditions, "given_rows": known}
        choices["distribution"] = distribution
        choices["escape_formulas"] = True if escape_formulas else None
        document |= {name: choice for name, choice in choices.items() if choice is not None}
        return self._table(
            model_id, "samples", lambda _: {"json": document}, {}, wanted, on_progress
        )

    def _sampled_database(
        self,
        model_id: str,
        asked: Document,
        wanted: WantedTable,
        table: str | None,
        on_progress: Callable[[Document], None] | None,
    ) -> Frame | dict[str, Frame] | bytes | Path:
        document = {name: value for name, value in asked.items() if value is not None}
        document["format"] = wanted.format
        params = {} if table is None else {"table": table}
        return self._table(
            model_id, "samples", lambda _: {"json": document}, params, wanted, on_progress
        )

    def score(
        self,
        model: Resource,
        rows: Rows,
        *,
        draws: int | None = None,
        tolerance: float | None = None,
        seed: int = 0,
        jitters: int = 0,
        measure: str = "density",
        score_missingness: bool = False,
        encoding: str | None = None,
        format: str | None = None,
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | bytes | Path:
        """Scores of rows (documents, a path, bytes, a frame), in a form as those of `sample`.

        Where the rows are too many for one answer, this waits for the job that scores them. Of a
        database the rows are its tables (frames or files by name, or a folder), the options `draws`
        and `seed`, and the answer has a line for each row of a table without a parent.

        Args:
            draws: of z for each row; None leaves them to the tolerance.
            tolerance: nats that the standard error of a row's score comes near; 0.1 unless `draws`
                are given.
            jitters: of a copula's discrete cells in each draw; 0 integrates exactly.
            measure: of continuous values: `density` per unit, mass of the `rounding_cell`, or of
                the quantile bin (`pmf`).
            score_missingness: blanks count with their probability; else they are integrated out.
            encoding: of rows in a text file, as of `upload`.
        """
        model_id = model_id_of(model)
        like = rows if is_frame(rows) else None
        wanted = wanted_table(format, to, like, "csv")
        if is_database(rows):
            of_database = {
                "draws": draws,
                "seed": seed,
                "format": wanted.format,
                "encoding": encoding,
            }
            asked = {name: value for name, value in of_database.items() if value is not None}
            body = database_body(rows)
            return self._table(model_id, "scores", body, asked, wanted, on_progress)
        body = rows_body(rows, self._date_formats(model_id))
        needed = {"draws": draws, "tolerance": tolerance}
        params: dict[str, Any] = {name: n for name, n in needed.items() if n is not None}
        params |= {"seed": seed, "jitters": jitters, "measure": measure}
        params |= {"score_missingness": score_missingness, "format": wanted.format}
        params |= of_table(encoding)
        return self._table(model_id, "scores", body, params, wanted, on_progress)

    def impute(
        self,
        model: Resource,
        rows: Rows,
        *,
        draws: int = 1,
        seed: int = 0,
        columns: Sequence[str] | None = None,
        keep_blanks: Sequence[str] | None = None,
        encoding: str | None = None,
        format: str | None = None,
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | bytes | Path:
        """Rows (documents, a path, bytes, a frame), blanks filled, in a form as those of `sample`.

        With more than one draw each row comes so many times, numbered in a first column `draw`.
        Where they are too many for one answer, this waits for the job that fills them.

        Args:
            columns: only these are filled; blanks of all others stay, and are integrated out.
            keep_blanks: columns whose blanks are values of their own: they stay, and the others are
                filled given that they are blank; else those of which the schema says so.
        """
        model_id = model_id_of(model)
        like = rows if is_frame(rows) else None
        wanted = wanted_table(format, to, like, table_format(like))
        body = rows_body(rows, self._date_formats(model_id))
        params = {"draws": draws, "seed": seed, "format": wanted.format} | of_table(encoding)
        lists = {"columns": columns, "keep_blanks": keep_blanks}
        params |= {name: listed(names) for name, names in lists.items() if names is not None}
        return self._table(model_id, "imputations", body, params, wanted, on_progress)

    def dependencies(
        self,
        model: Resource,
        kind: str = "expected",
        *,
        row: Mapping[str, Any] | None = None,
        z: Sequence[float] | None = None,
        seed: int = 0,
        order: str | None = None,
        format: str | None = None,
        to: Place | None = None,
    ) -> Document | bytes | Path:
        """The dependency map: a document (`json`), or a picture's bytes (`png`, `svg`).

        Args:
            row: cells by column; the map is then the local one at the row, whatever `kind` says.
            z: a place in the latent space, for the local map there.
            order: a kind of map in whose order the columns stand, so that pictures can be compared;
                else they stand in the map's own. Not of local maps.
            format: json, png or svg; of a file, what its name ends in, else json.
            to: a file to save it in; the answer is then its path.
        """
        format = _drawn_format(format, to)
        path = f"/v1/models/{model_id_of(model)}/dependencies"
        if row is None and z is None:
            params: dict[str, Any] = {"kind": kind, "seed": seed, "format": format}
            params |= {} if order is None else {"order": order}
            return self._drawn(Call("GET", path, params=params), format, to)
        formats = self._date_formats(model_id_of(model))
        cells = None if row is None else row_documents([row], formats)[0]
        given = {"row": cells, "z": z if z is None else list(z)}
        body = {"seed": seed} | {name: value for name, value in given.items() if value is not None}
        call = Call("POST", path, params={"format": format}, body=lambda _: {"json": body})
        return self._drawn(call, format, to)

    def encode(
        self,
        model: Resource,
        rows: Rows,
        *,
        encoding: str | None = None,
        format: str | None = None,
        to: Place | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> Frame | bytes | Path:
        """Posterior mean and deviation of z of rows, in a form as those of `sample`.

        Where the rows are too many for one answer, this waits for the job that encodes them.
        """
        model_id = model_id_of(model)
        like = rows if is_frame(rows) else None
        wanted = wanted_table(format, to, like, "csv")
        body = rows_body(rows, self._date_formats(model_id))
        params = {"format": wanted.format} | of_table(encoding)
        return self._table(model_id, "encodings", body, params, wanted, on_progress)

    def manifold(
        self,
        model: Resource,
        *,
        steps: int = 15,
        format: str | None = None,
        to: Place | None = None,
    ) -> Document | bytes | Path:
        """The decoder on a grid over a two-dimensional prior: a document, or a picture's bytes."""
        format = _drawn_format(format, to)
        params = {"steps": steps, "format": format}
        return self._drawn(
            Call("GET", f"/v1/models/{model_id_of(model)}/manifold", params=params), format, to
        )

    def delete(self, resource: Resource, *, cascade: bool = False) -> None:
        """Delete a dataset, a model, or what a job made, by id or by document.

        Args:
            cascade: of a dataset: with its models, and all that was made by these.
        """
        params = {"cascade": "true"} if cascade else {}
        self._connection.request(Call("DELETE", place_of(any_id_of(resource)), params=params))

    def _bound(self, document: Document) -> Any:
        return bind(document, self)

    def _drawn(self, call: Call, format: str, to: Place | None) -> Document | bytes | Path:
        if to is not None:
            return self._download(call, to)
        answer = self._connection.request(call)
        return document_of(answer) if format == "json" else answer.content

    def _table(
        self,
        model_id: str,
        kind: str,
        body: Body,
        params: dict[str, Any],
        wanted: WantedTable,
        on_progress: Callable[[Document], None] | None,
    ) -> Frame | bytes | Path:
        path = f"/v1/models/{model_id}/{kind}"
        call = Call("POST", path, body=body, params=params, creates=True)
        formats = self._date_formats(model_id)
        with self._connection.stream(call) as response:
            if response.status_code != httpx.codes.ACCEPTED:
                seed = response.headers.get("Gcvae-Seed")
                return wanted.take(lambda file: copy(response, file), formats, seed)
            result = json.loads(response.read())
        self.wait(result, on_progress)
        call = Call("GET", f"{place_of(result['id'])}/content")
        seed = result["request"].get("seed")
        return wanted.take(lambda file: self._connection.download(call, file), formats, seed)

    def _date_formats(self, model_id: str) -> Callable[[], dict[str, str]]:
        """Asks how a model's table writes its dates, by column; once, and where there are any."""
        return cache(lambda: date_formats(self.model(model_id)["schema"]))


def _drawn_format(format: str | None, to: Place | None) -> str:
    if format is not None:
        return format
    return "json" if to is None else format_by_ending(to, _MAPS)
