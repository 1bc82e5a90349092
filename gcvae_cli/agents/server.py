"""MCP server whose tools call a gcvae service through the Python client.

Tools that only read are always available. Tools that create or change something need `write`, and
tools that return rows need `rows`; otherwise they are not listed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations
from pydantic import Field, ValidationError

from gcvae.errors import Problem, json_pointer
from gcvae.schema.suggestions import unknown_name
from gcvae_cli.agents.answers import (
    Document,
    dataset_answer,
    error_text,
    job_answer,
    model_answer,
    profile_answer,
    report_answer,
    rules_answer,
    schema_answer,
    scores_answer,
)
from gcvae_client import Client, ClientError

_MOST_ROWS = 1000
_INSTRUCTIONS = """\
gcvae learns a table and generates synthetic rows, scores rows and maps dependencies. Ids begin with
ds_ (dataset), mdl_ (model) and job_ (job). A training is a job: call `status` until it has
succeeded. Missing tools were not allowed by the person who started this server."""

DatasetId = Annotated[str, Field(pattern=r"^ds_\w+$", description="Id of a dataset, ds_…")]
ModelId = Annotated[str, Field(pattern=r"^mdl_\w+$", description="Id of a model, mdl_…")]
Rows = Annotated[
    list[dict[str, Any]],
    Field(min_length=1, max_length=_MOST_ROWS, description="Rows: objects of cells by column"),
]
NumberOfRows = Annotated[int, Field(ge=1, le=_MOST_ROWS, description="Number of rows")]
Seed = Annotated[int, Field(ge=0, description="Random seed; equal seeds give equal results")]
Known = Annotated[
    dict[str, Any] | None,
    Field(description='Condition by column: a value, a list, or {"min": …, "max": …}'),
]
FileName = Annotated[str, Field(description="Name of a file in the folder of this server")]


def agent_server(client: Client, *, write: bool, rows: bool, folder: Path) -> MCPServer:
    """Returns the MCP server for one service.

    Args:
        client: Client of the service; its API key determines what the tools may do there.
        write: Whether agents may upload tables, change schemas, train, request reports and write
            files.
        rows: Whether answers may contain cells of tables and synthetic rows.
        folder: The only folder whose files tools read and write.
    """
    tools: list[Tool] = []

    def tool(*, writes: bool = False, gives_rows: bool = False) -> Callable[[Any], Any]:
        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(function)
            def call(*given: Any, **named: Any) -> Any:
                try:
                    return function(*given, **named)
                except (ClientError, OSError, ValueError, TypeError) as error:
                    raise ToolError(error_text(error, rows)) from None

            if (write or not writes) and (rows or not gives_rows):
                hints = ToolAnnotations(read_only_hint=not writes, destructive_hint=False)
                tools.append(_strict(Tool.from_function(call, annotations=hints)))
            return function

        return add

    @tool()
    def datasets(
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
    ) -> list[dict[str, Any]]:
        """List the newest datasets (uploaded tables and databases)."""
        return [dataset_answer(found) for found in islice(client.datasets(), limit)]

    @tool()
    def models(limit: Annotated[int, Field(ge=1, le=200)] = 50) -> list[dict[str, Any]]:
        """List the newest models."""
        return [model_answer(found) for found in islice(client.models(), limit)]

    @tool()
    def status(
        of: Annotated[str, Field(pattern=r"^(job|mdl)_\w+$", description="Id of a job or model")],
    ) -> dict[str, Any]:
        """Get the state, progress and remaining seconds of a job, or of a model's training."""
        if of.startswith("job_"):
            return job_answer(client.job(of), rows)
        model = client.model(of)
        job = {} if model["job_id"] is None else job_answer(client.job(model["job_id"]), rows)
        return model_answer(model) | {"job": job}

    @tool()
    def schema(dataset: DatasetId) -> dict[str, Any]:
        """Get the columns of a dataset with their kinds, and the rules between them."""
        return schema_answer(client.dataset(dataset), rows)

    @tool()
    def profile(dataset: DatasetId, table: str | None = None) -> dict[str, Any]:
        """Get statistics of a dataset's columns; name the table of a database."""
        return profile_answer(client.profile(dataset, table=table), rows)

    @tool()
    def rules(dataset: DatasetId, table: str | None = None) -> dict[str, Any]:
        """Get the rules between columns that most rows satisfy, such as a == b * c."""
        return rules_answer(client.rules(dataset, table=table), rows)

    @tool()
    def report(model: ModelId) -> dict[str, Any]:
        """Get the report of a model: fidelity, utility, likelihood and privacy of its rows."""
        return report_answer(_object(client.report(model)), rows)

    @tool()
    def dependencies(
        model: ModelId,
        kind: Literal["total", "data", "difference", "expected"] = "expected",
    ) -> dict[str, Any]:
        """Get the pairwise dependence between columns (Kendall's tau)."""
        found = _object(client.dependencies(model, kind))
        return {name: found[name] for name in ("columns", "kind", "tau", "unsigned")}

    @tool()
    def score(model: ModelId, of: Rows, seed: Seed = 0) -> dict[str, Any]:
        """Score rows: log-likelihood in nats, p-value (anomaly) and most unusual cell of each."""
        return scores_answer(json.loads(_bytes(client.score(model, of, seed=seed, format="json"))))

    @tool(gives_rows=True)
    def first_rows(
        dataset: DatasetId,
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
        table: str | None = None,
    ) -> list[dict[str, Any]]:
        """Get the first rows of a dataset; name the table of a database."""
        return list(client.first_rows(dataset, limit, table=table))

    @tool(gives_rows=True)
    def sample(
        model: ModelId, n_rows: NumberOfRows = 10, given: Known = None, seed: Seed = 0
    ) -> list[dict[str, Any]]:
        """Generate synthetic rows of a table, optionally given values of columns."""
        made = client.sample(model, n_rows, seed=seed, given=given, format="json")
        return list(json.loads(_bytes(made)))

    @tool(gives_rows=True)
    def impute(model: ModelId, of: Rows, seed: Seed = 0) -> list[dict[str, Any]]:
        """Fill the missing cells (null) of rows; known cells stay as they are."""
        return list(json.loads(_bytes(client.impute(model, of, seed=seed, format="json"))))

    @tool(writes=True)
    def upload(
        file: FileName, name: str | None = None, encoding: str | None = None
    ) -> dict[str, Any]:
        """Upload a table (CSV, Parquet) or a database (ZIP) from the folder of this server."""
        path = _inside(folder, file)
        if not path.is_file():
            raise ToolError(f"{file} does not exist in the folder of this server")
        return dataset_answer(client.upload(path, name=name, encoding=encoding))

    @tool(writes=True)
    def patch_schema(dataset: DatasetId, patch: dict[str, Any]) -> dict[str, Any]:
        """Change a schema by a JSON merge patch, as in {"columns": {"note": {"drop": true}}}."""
        return schema_answer(client.patch_schema(dataset, patch), rows)

    @tool(writes=True)
    def train(
        dataset: DatasetId,
        preset: str = "default",
        seed: Seed = 0,
        name: str | None = None,
        settings: Annotated[
            dict[str, Any] | None, Field(description="Settings that override those of the preset")
        ] = None,
    ) -> dict[str, Any]:
        """Start the training of a model; `status` tells when it is ready."""
        model = client.train(dataset, name=name, preset=preset, seed=seed, **(settings or {}))
        return model_answer(model)

    @tool(writes=True)
    def make_report(model: ModelId, seed: Seed = 0) -> dict[str, Any]:
        """Start a job that makes the report of a model; `report` returns it afterwards."""
        return {"job_id": client.make_report(model, seed=seed)["job_id"]}

    @tool(writes=True)
    def save_sample(
        model: ModelId,
        file: FileName,
        n_rows: Annotated[int, Field(ge=1)],
        given: Known = None,
        seed: Seed = 0,
    ) -> dict[str, Any]:
        """Generate synthetic rows into a new file (.csv, .parquet, .jsonl) of the folder."""
        path = _inside(folder, file)
        if path.exists():
            raise ToolError(f"{file} exists; give the name of a new file")
        client.sample(model, n_rows, seed=seed, given=given, to=path)
        return {"file": file, "rows": n_rows, "bytes": path.stat().st_size}

    return _Server("gcvae", instructions=_INSTRUCTIONS, log_level="WARNING", tools=tools)


def _strict(tool: Tool) -> Tool:
    model = tool.fn_metadata.arg_model
    model.model_config["extra"] = "forbid"
    model.model_rebuild(force=True)
    tool.parameters = model.model_json_schema()
    return tool


class _Server(MCPServer):
    """MCP server whose errors name each invalid argument and the expected value."""

    async def call_tool(self, name: str, arguments: Document, context: Any = None) -> Any:
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            [known] = [each.input_schema for each in await self.list_tools() if each.name == name]
            problems = [_problem(found, known) for found in error.__cause__.errors()]
            raise ToolError("; ".join(map(str, problems))) from error.__cause__


def _problem(found: Mapping[str, Any], schema: Document) -> Problem:
    """Converts pydantic's error about an argument of a tool to a Problem.

    Args:
        found: The error, an element of pydantic's `ValidationError.errors()`.
        schema: JSON Schema of the tool's arguments.
    """
    name, *path = found["loc"]
    pointer = json_pointer(name, *path)
    if found["type"] == "extra_forbidden":
        known = schema["properties"]
        return unknown_name(f"unknown argument {name!r}", name, known, pointer=pointer)
    message = "is missing" if found["type"] == "missing" else str(found["msg"])
    expected = schema["properties"][name].get("description")
    return Problem(message[:1].lower() + message[1:], pointer, expected=expected)


def _inside(folder: Path, name: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or path == folder.resolve():
        raise ToolError(f"{name} is not the name of a file in the folder of this server")
    return path


def _object(found: object) -> Document:
    assert isinstance(found, dict)
    return found


def _bytes(found: object) -> bytes:
    assert isinstance(found, bytes)
    return found
