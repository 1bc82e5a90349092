"""`gcvae mcp`, used by a real MCP client over standard input and output and over HTTP."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pandas as pd
import pytest
from mcp import Client as Agent
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from gcvae_client import Client
from tests.running_service import Running, running, settings_in, working

READERS = {
    "datasets", "models", "status", "schema", "profile", "rules", "report", "dependencies", "score",
}  # fmt: skip
WITH_ROWS = {"first_rows", "sample", "impute"}
WRITERS = {"upload", "patch_schema", "train", "make_report", "save_sample"}

CITIES = ["Kanariburg", "Kanaristadt", "Kanaridorf"]
DAYS = pd.date_range("1931-03-07", periods=90, freq="4D")
TABLE = pd.DataFrame(
    {
        "stadt": [CITIES[i % 3] for i in range(90)],
        "preis": [7_310_011.25 + 13 * i for i in range(90)],
        "tag": DAYS.strftime("%Y-%m-%d"),
        "land": [f"Kanari{i % 3}land" for i in range(90)],
        "mail": [f"kanari{i}@beispiel.ch" for i in range(90)],
    }
)
CELLS = [*{str(cell) for column in TABLE for cell in TABLE[column]}, "Kanari"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with a worker."""
    with running(settings_in(tmp_path_factory.mktemp("service"))) as found, working(found):
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an MCP server, with a table."""
    folder = tmp_path / "agents"
    folder.mkdir()
    TABLE.to_csv(folder / "table.csv", index=False)
    (tmp_path / "private.csv").write_text("a\n1\n")
    return folder


def _command(service: Running, folder: Path, *options: str) -> list[str]:
    words = ["-m", "gcvae_cli", "mcp", "--server", service.url, "--folder", str(folder)]
    return [*words, *options]


@asynccontextmanager
async def _over_stdio(service: Running, folder: Path, *options: str) -> AsyncIterator[Agent]:
    given = StdioServerParameters(
        command=sys.executable,
        args=_command(service, folder, *options),
        cwd=str(Path(__file__).parents[2]),
    )
    async with Agent(stdio_client(given)) as agent:
        yield agent


def _run(talk: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return anyio.run(talk)


async def _call(agent: Agent, tool: str, **arguments: Any) -> Any:
    """What a tool answers; an error fails the test."""
    answer = await agent.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    found = answer.structured_content
    assert found is not None
    return found["result"] if set(found) == {"result"} else found


async def _refusal(agent: Agent, tool: str, **arguments: Any) -> str:
    answer = await agent.call_tool(tool, arguments)
    assert answer.is_error
    return " ".join(getattr(part, "text", "") for part in answer.content)


async def _finished(agent: Agent, of: str) -> Any:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        found = await _call(agent, "status", of=of)
        job = found.get("job", found)
        if job["status"] in ("succeeded", "failed", "cancelled"):
            assert job["status"] == "succeeded", found
            return found
        await anyio.sleep(0.1)
    raise AssertionError(f"{of} has not finished")


async def _trained(agent: Agent) -> tuple[str, str]:
    dataset = await _call(agent, "upload", file="table.csv")
    settings = {"max_steps": 20, "report_share": 0.2}
    model = await _call(agent, "train", dataset=dataset["id"], preset="fast", settings=settings)
    await _finished(agent, model["id"])
    return dataset["id"], model["id"]


def test_an_agent_uploads_trains_and_samples_a_table(service: Running, folder: Path) -> None:
    async def talk() -> None:
        async with _over_stdio(service, folder, "--write", "--rows") as agent:
            tools = {tool.name for tool in (await agent.list_tools()).tools}
            assert tools == READERS | WITH_ROWS | WRITERS
            dataset, model = await _trained(agent)
            first = await _call(agent, "first_rows", dataset=dataset, limit=2)
            assert first[0]["stadt"] == CITIES[0]
            patch = {"columns": {"land": {"drop": True}}}
            changed = await _call(agent, "patch_schema", dataset=dataset, patch=patch)
            assert changed["schema"]["columns"][3]["drop"]
            drawn = await _call(
                agent, "sample", model=model, n_rows=5, given={"stadt": CITIES[1]}, seed=2
            )
            assert [row["stadt"] for row in drawn] == [CITIES[1]] * 5
            filled = await _call(agent, "impute", model=model, of=[{"stadt": CITIES[1]}])
            assert filled[0]["stadt"] == CITIES[1]
            assert filled[0]["preis"] is not None
            scores = await _call(agent, "score", model=model, of=drawn)
            assert len(scores["scores"]) == 5
            made = await _call(agent, "save_sample", model=model, file="drawn.csv", n_rows=50)
            assert made["rows"] == len(pd.read_csv(folder / "drawn.csv")) == 50
            again = await _refusal(agent, "save_sample", model=model, file="drawn.csv", n_rows=5)
            assert "drawn.csv exists" in again
            assert "Kanari" in json.dumps(await _call(agent, "profile", dataset=dataset))
            refused = await _refusal(agent, "sample", model=model, given={"stadt": "Ulm"})
            assert "Ulm" in refused

    _run(talk)


def test_no_cell_leaves_a_server_without_rows(service: Running, folder: Path) -> None:
    async def talk() -> None:
        async with _over_stdio(service, folder, "--write") as agent:
            dataset, model = await _trained(agent)
            job = await _call(agent, "make_report", model=model)
            await _finished(agent, job["job_id"])
            answers = [
                await _call(agent, "datasets"),
                await _call(agent, "models"),
                await _call(agent, "status", of=model),
                await _call(agent, "schema", dataset=dataset),
                await _call(agent, "profile", dataset=dataset),
                await _call(agent, "rules", dataset=dataset),
                await _call(agent, "report", model=model),
                await _call(agent, "score", model=model, of=[{"stadt": "Ulm"}]),
                await _call(agent, "save_sample", model=model, file="rows.csv", n_rows=20),
                await _refusal(agent, "score", model=model, of=[{"preis": "viel"}]),
                await _refusal(
                    agent, "save_sample", model=model, file="x.csv", n_rows=2,
                    given={"stadt": "Ulm"},
                ),
                *[
                    await _call(agent, "dependencies", model=model, kind=kind)
                    for kind in ("total", "expected")
                ],
            ]  # fmt: skip
            told = json.dumps(answers, ensure_ascii=False)
            assert [cell for cell in CELLS if cell in told] == []
            assert answers[3]["columns"][0] == {
                "name": "stadt",
                "kind": "categorical",
                "n_levels": 3,
            }
            assert answers[4]["columns"][1]["mean"] == pytest.approx(TABLE.preis.mean())
            assert "headline" in answers[6]
            assert "--rows" in answers[9]
            assert WITH_ROWS.isdisjoint(tool.name for tool in (await agent.list_tools()).tools)

    _run(talk)


def test_no_level_of_a_lookup_table_leaves_a_server_without_rows(
    service: Running, folder: Path
) -> None:
    from gcvae_cli.agents.server import agent_server

    lookup = {city: f"Kanari{i}land" for i, city in enumerate(CITIES)}
    rule = {"rule": "land == ort[stadt]", "tables": {"ort": lookup}}

    async def talk() -> None:
        with Client(service.url) as client:
            dataset = client.upload(TABLE, schema={"rules": [rule]})["id"]
            server = agent_server(client, write=False, rows=False, folder=folder)
            async with Agent(server) as agent:
                found = await _call(agent, "rules", dataset=dataset)
                schema = await _call(agent, "schema", dataset=dataset)
        words = "land == ort[stadt], ort: table of 3 levels"
        assert words in [rule["formula"] for rule in found["rules"]]
        assert words in [rule["rule"] for rule in schema["rules"]]
        assert "Kanari" not in json.dumps([found, schema])

    _run(talk)


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "sample",
            {"model": "mdl_x", "rows": 500},
            "/rows: unknown argument 'rows'; did you mean 'n_rows'?",
        ),
        (
            "sample",
            {"model": "mdl_x", "n_rows": 5000},
            "/n_rows: input should be less than or equal to 1000 (expected: Number of rows)",
        ),
        (
            "datasets",
            {"z": 1},
            "/z: unknown argument 'z' (expected: one of limit)",
        ),
        ("sample", {}, "/model: is missing (expected: Id of a model, mdl_…)"),
    ],
)
def test_invalid_arguments_are_named(
    folder: Path, tool: str, arguments: dict[str, Any], told: str
) -> None:
    from gcvae_cli.agents.server import agent_server

    async def talk() -> None:
        with Client("http://127.0.0.1:9") as client:
            server = agent_server(client, write=False, rows=True, folder=folder)
            async with Agent(server) as agent:
                assert await _refusal(agent, tool, **arguments) == told

    _run(talk)


def test_a_server_without_write_changes_nothing(service: Running, folder: Path) -> None:
    with Client(service.url) as client:
        before = len(list(client.datasets()))
        dataset = client.upload(TABLE, name="of a person")

    async def talk() -> None:
        async with _over_stdio(service, folder, "--rows") as agent:
            tools = (await agent.list_tools()).tools
            assert {tool.name for tool in tools} == READERS | WITH_ROWS
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
            for tool, arguments in {
                "upload": {"file": "table.csv"},
                "train": {"dataset": dataset["id"]},
                "patch_schema": {"dataset": dataset["id"], "patch": {"rules": []}},
                "save_sample": {"model": "mdl_x", "file": "a.csv", "n_rows": 2},
            }.items():
                assert "Unknown tool" in await _refusal(agent, tool, **arguments)

    _run(talk)
    with Client(service.url) as client:
        assert len(list(client.datasets())) == before + 1
        assert list(client.models(dataset)) == []
    assert [path.name for path in folder.iterdir()] == ["table.csv"]


@pytest.mark.parametrize("name", ["../private.csv", "/etc/passwd", ".", "link.csv", "none.csv"])
def test_files_outside_the_folder_are_refused(service: Running, folder: Path, name: str) -> None:
    (folder / "link.csv").symlink_to(folder.parent / "private.csv")
    from gcvae_cli.agents.server import agent_server

    async def talk() -> None:
        with Client(service.url) as client:
            server = agent_server(client, write=True, rows=False, folder=folder)
            async with Agent(server) as agent:
                told = await _refusal(agent, "upload", file=name)
                assert "in the folder of this server" in told

    _run(talk)


def test_a_database_has_tables_and_keys(service: Running, folder: Path) -> None:
    users = pd.DataFrame({"user_id": range(40), "tier": ["gold", "silver"] * 20})
    visits = pd.DataFrame(
        {"user_id": [i // 3 for i in range(120)], "pages": [i % 7 for i in range(120)]}
    )
    from gcvae_cli.agents.server import agent_server

    async def talk() -> None:
        with Client(service.url) as client:
            dataset = client.upload({"users": users, "visits": visits}, name="shop")["id"]
            server = agent_server(client, write=False, rows=False, folder=folder)
            async with Agent(server) as agent:
                tables = (await _call(agent, "schema", dataset=dataset))["tables"]
                assert tables["users"]["primary_key"] == ["user_id"]
                assert tables["visits"]["foreign_keys"][0]["table"] == "users"
                assert "gold" not in json.dumps(tables)
                statistics = await _call(agent, "profile", dataset=dataset, table="visits")
                assert statistics["rows"] == 120
                assert (await _call(agent, "rules", dataset=dataset, table="users")) is not None

    _run(talk)


def test_tools_are_served_over_http(service: Running, folder: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, *_command(service, folder, "--http", str(port))]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)
    try:

        async def talk() -> None:
            await _until_open(port)
            async with Agent(f"http://127.0.0.1:{port}/mcp") as agent:
                assert {tool.name for tool in (await agent.list_tools()).tools} == READERS
                assert isinstance(await _call(agent, "datasets"), list)

        _run(talk)
    finally:
        process.terminate()
        process.wait(30)


async def _until_open(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            stream = await anyio.connect_tcp("127.0.0.1", port)
        except OSError:
            assert time.monotonic() < deadline, "the server does not answer"
            await anyio.sleep(0.05)
        else:
            await stream.aclose()
            return
