"""Where the texts of a table may come out: the table of `docs/privacy.md`, cell by cell.

The page is what is tested: a row is a role that a cell may have, a column a place, and "yes" says
that a text of this role stands there. What the page says of the whole service is made by
`gcvae serve`, with its worker; what it says of models is tried with the library too.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import numpy.typing as npt
import pytest

from gcvae import Synthesizer, TableReader, infer_schema, read_table
from gcvae.artifact.file import unpack_tensors
from gcvae.cells.values import format_table
from gcvae.dependence.notes import MAPS_OF_MODEL
from gcvae.schema.expressions import quoted_name
from gcvae_client import Client
from gcvae_client.errors import InvalidError, JobFailedError
from tests.long.system.planted_table import PLANTS, TIED, Plant, dropped, frame, said, token
from tests.long.system.test_serve import serving
from tests.servers.trace_collector import trace_collector

PAGE = Path(__file__).parents[3] / "docs" / "privacy.md"
SETTINGS = {"max_steps": 20, "evaluate_every_steps": 10, "d_hidden": 16, "d_sum": 8, "d_column": 6}


def _read_page() -> dict[tuple[str, str], bool]:
    """(role, place): whether a text of the role stands in the place."""
    lines = [
        line for line in PAGE.read_text().split("\n## ")[0].splitlines() if line.startswith("|")
    ]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    places = rows[0][1:]
    for row in rows[2:]:
        assert set(row[1:]) <= {"yes", "–"}, row
    return {
        (row[0], place): cell == "yes"
        for row in rows[2:]
        for place, cell in zip(places, row[1:], strict=True)
    }


EXPECTED = _read_page()
PLACES = list(dict.fromkeys(place for _, place in EXPECTED))
OF_LIBRARY = ("schema", "training record", "model file", "samples", "maps")


@dataclass
class Content:
    """What stands in a place: its texts, decoded, and its numbers."""

    texts: list[str] = field(default_factory=list)
    numbers: list[npt.NDArray[np.float64]] = field(default_factory=list)

    def add(self, document: Any) -> None:
        """Adds a JSON document; texts in it that are JSON are read too."""
        if isinstance(document, dict):
            for name, value in document.items():
                self.add(name)
                self.add(value)
        elif isinstance(document, list | tuple):
            for item in document:
                self.add(item)
        elif isinstance(document, str):
            self.texts.append(document)
            if document.startswith(("{", "[")):
                self.add(json.loads(document))
        elif isinstance(document, int | float) and not isinstance(document, bool):
            self.numbers.append(np.array([document], dtype=np.float64))

    def holds(self, plant: Plant) -> bool:
        """Whether a text of the plant stands anywhere in a text, or is one of the numbers."""
        whole = "\n".join(self.texts)
        if any(text in whole for text in plant.texts):
            return True
        numbers = np.unique(np.concatenate([np.empty(0), *self.numbers]))
        return any(np.isclose(numbers, n, rtol=1e-10, atol=0).any() for n in plant.numbers)


def _of_model_file(data: bytes) -> Content:
    """The bytes as text, the manifest, its numbers in their columns' own units too, also those
    that stand there in parts, and the tensors."""
    content = Content([data.decode("latin-1")])
    tensors, manifest = unpack_tensors(data)
    content.add(manifest)
    in_units: dict[str, np.ndarray[Any, Any]] = {}
    for name, column in manifest["codec"]["columns"].items():
        line = column.get("line", column)
        if "scale" in line:
            own = Content()
            own.add(column)
            numbers = np.concatenate(own.numbers)
            in_units[name] = numbers * line["scale"] + line["offset"]
    content.numbers += in_units.values()
    for split in manifest["codec"]["rules"]:
        parts = [n for n in in_units if n.split(" (")[0] == split["split"]]
        joined = np.array([float(split["ending"])])
        for name, step in zip(sorted(parts), split["steps"], strict=True):
            joined = np.add.outer(joined, in_units[name] * step).ravel()
        content.numbers.append(joined)
    content.numbers += [tensor.double().numpy().ravel() for tensor in tensors.values()]
    return content


def _of(*documents: Any) -> Content:
    content = Content()
    for document in documents:
        content.add(document)
    return content


def _of_log(text: str) -> Content:
    """Lines, which are JSON or not."""
    content = Content([text])
    for line in text.splitlines():
        if line.startswith("{"):
            content.add(json.loads(line))
    return content


def _of_csv(data: Any) -> Content:
    cells = read_table(data)
    return Content([*cells.columns, *cells.to_numpy().ravel().tolist()])


# The service


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Content]:
    """What stands in every place after a table was uploaded, changed, learnt and used."""
    folder = tmp_path_factory.mktemp("places")
    with ExitStack() as stack:
        environment = stack.enter_context(pytest.MonkeyPatch.context())
        environment.setenv("GCVAE_LOG_LEVEL", "debug")
        collector = stack.enter_context(trace_collector())
        environment.setenv("GCVAE_TRACES_ENDPOINT", collector.endpoint)
        with serving(folder) as (process, url), Client(url) as client:
            found = _used(client, url)
            found["metrics"] = Content([httpx.get(f"{url}/metrics", timeout=60).text])
            found["audit"] = _of(_every_page(f"{url}/v1/audit"))
            process.terminate()
            process.wait(60)
    found["log"] = _of_log((folder / "output.log").read_text())
    found["traces"] = Content([str(span) for span in collector.spans])
    return found


def _used(client: Client, url: str) -> dict[str, Content]:
    table = frame().to_csv(index=False).encode()
    dataset = client.upload(table, schema={"columns": said(all_dropped=False)})
    later = {name: {"drop": True} for name in dropped("later")}
    changed = client.patch_schema(dataset["id"], {"columns": later})
    errors = [_refused(client, url, dataset["id"], plant) for plant in PLANTS.values()]
    model = client.train(dataset["id"], seed=1, device="cpu", **SETTINGS)
    events = list(client.events(model))
    job = client.wait(model)
    failed = _failed_job(client, dataset["id"])
    trained = client.model(model["id"])
    artifact = httpx.get(f"{url}/v1/models/{model['id']}/artifact", timeout=60).content
    maps = [client.dependencies(model["id"], kind=kind) for kind in MAPS_OF_MODEL]
    errors += [_ask(url, model["id"], name) for name in frame().columns]
    sent = [_send(url, model["id"], name) for name in ("scores", "imputations", "encodings")]
    others = client.upload(table, schema={"columns": said(all_dropped=True)})
    assert trained["record"]["rows_of_withheld_levels"]
    client.wait(client.make_report(model, holdout=others, columns=["units"]))
    page = client.report(model, format="html")
    assert isinstance(page, bytes)
    return {
        "model": _of({"model": model["id"], "job": model["job_id"]}),
        "schema": _of(client.dataset(dataset["id"]), changed, trained["schema"]),
        "profile": _of(client.profile(dataset["id"])),
        "job": _of(job, events, failed),
        "training record": _of({**trained, "schema": None}),
        "model file": _of_model_file(artifact),
        "samples": _of_csv(client.sample(model["id"], rows=5000, seed=1, format="csv")),
        "maps": _of(maps),
        "errors": _of(errors),
        "errors of tables that were sent": _of(sent),
        "report": _of(client.report(model), page.decode()),
        "model's schema": _of(trained["schema"]),
    }


def _failed_job(client: Client, dataset_id: str) -> Any:
    """A training that fails in the worker: its model meets a hard rule too seldom."""
    tied = {"rule": f"{TIED} < 2000000 and {TIED} > -2000000", "keep": "hard"}
    client.patch_schema(dataset_id, {"rules": [tied], "find_rules": True})
    untrained = SETTINGS | {"max_steps": 1}
    model = client.train(dataset_id, seed=1, device="cpu", **untrained)
    with pytest.raises(JobFailedError) as caught:
        client.wait(model)
    client.patch_schema(dataset_id, {"rules": None, "find_rules": None})
    return caught.value.job


def _refused(client: Client, url: str, dataset_id: str, plant: Plant) -> Any:
    """The error of a schema that this cell does not fit; of a dropped column, that names it."""
    if plant.misfit:
        with pytest.raises(InvalidError) as caught:
            client.patch_schema(dataset_id, {"columns": {plant.columns[0]: dict(plant.misfit)}})
        return caught.value.problem
    problems = []
    for name in plant.columns:
        ignored = {"kind": "boolean", "levels": ["a"], "missing": {"allowed": False}}
        answer = client.patch_schema(dataset_id, {"columns": {name: ignored}})
        assert answer["changes"]["summary"] == ["nothing changed"]
        broken = {"rule": f"{quoted_name(name)} <= units", "keep": "hard"}
        with pytest.raises(InvalidError) as caught:
            client.patch_schema(dataset_id, {"rules": [broken], "find_rules": True})
        problems.append(caught.value.problem)
    return problems


def _ask(url: str, model_id: str, name: str) -> Any:
    """The error of a condition that no row of the column meets."""
    body = {"rows": 5, "given": {name: ["no such level"]}}
    answer = httpx.post(f"{url}/v1/models/{model_id}/samples", json=body, timeout=60)
    assert answer.status_code == 422, answer.text
    return answer.json()


SENT = token("sent to a model")


def _send(url: str, model_id: str, kind: str) -> Any:
    """The error of a table to score, complete or encode, of which one cell does not fit."""
    table = frame()
    table.loc[5, "units"] = SENT
    place = f"{url}/v1/models/{model_id}/{kind}"
    csv = {"Content-Type": "text/csv"}
    answer = httpx.post(place, content=table.to_csv(index=False), headers=csv, timeout=60)
    assert answer.status_code == 422, answer.text
    return answer.json()


def _every_page(address: str) -> list[Any]:
    pages: list[Any] = []
    cursor: str | None = None
    while cursor is not None or not pages:
        given = {"limit": 200} if cursor is None else {"limit": 200, "cursor": cursor}
        pages.append(httpx.get(address, params=given, timeout=60).json())
        cursor = pages[-1]["next_cursor"]
    return pages


def test_the_page_has_a_row_for_every_plant_and_a_column_for_every_place() -> None:
    assert list(dict.fromkeys(role for role, _ in EXPECTED)) == list(PLANTS)
    assert PLACES == [
        "schema", "profile", "job", "training record", "model file", "samples", "maps", "errors",
        "log",
    ]  # fmt: skip


def test_every_place_was_looked_into(served: dict[str, Content]) -> None:
    _, model_id, _, job_id = served["model"].texts
    for place, text in {
        "schema": "given_schema", "profile": "quantiles", "job": "keep all hard rules",
        "training record": "bound_held_out", "model file": "gcvae-model", "samples": "client_id",
        "maps": "units", "errors": "no such level", "log": job_id, "traces": job_id,
        "metrics": "gcvae_jobs", "audit": model_id,
    }.items():  # fmt: skip
        assert served[place].holds(Plant((), (text,))), place
    assert served["log"].holds(Plant((), (f"/v1/models/{model_id}/samples",)))


@pytest.mark.parametrize(("role", "place"), EXPECTED)
def test_a_text_of_this_role_stands_in_this_place_of_the_service_as_the_page_says(
    served: dict[str, Content], role: str, place: str
) -> None:
    assert served[place].holds(PLANTS[role]) == EXPECTED[role, place]


OPERATORS_PLACES = ("log", "metrics", "traces", "audit")


@pytest.mark.parametrize("place", OPERATORS_PLACES)
def test_what_operators_read_holds_nothing_of_a_table(
    served: dict[str, Content], place: str
) -> None:
    assert served["errors of tables that were sent"].holds(Plant((), (SENT,)))
    planted = PLANTS | {"a cell of a table that was sent": Plant((), (SENT,))}
    assert [role for role, plant in planted.items() if served[place].holds(plant)] == []


NEVER_IN_A_REPORT = [
    role
    for role in PLANTS
    if role.startswith(("dropped: ", "identifier: ", "free text, taken"))
    or role.endswith((": value of one row", ": largest value"))
]
RARE = ["categorical: level of one row", "free text, declared categorical"]


@pytest.mark.parametrize("role", RARE)
def test_a_model_does_not_list_the_levels_of_few_rows(
    served: dict[str, Content], role: str
) -> None:
    assert served["model's schema"].holds(PLANTS["categorical: level of many rows"])
    assert not served["model's schema"].holds(PLANTS[role])


@pytest.mark.parametrize("role", ["name of a dropped column", *NEVER_IN_A_REPORT, *RARE])
def test_a_report_names_levels_and_no_text_of_these_roles(
    served: dict[str, Content], role: str
) -> None:
    """Which columns it pictures is for the rows to say: no cell of these is in any of them."""
    assert len(NEVER_IN_A_REPORT) >= 15
    assert served["report"].holds(Plant((), ("units",)))
    assert not served["report"].holds(PLANTS[role])


# The library


@pytest.fixture(scope="module", params=["frame", "file"])
def fitted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Content]:
    """The same of a synthesizer that was fitted, saved and loaded."""
    path = tmp_path_factory.mktemp("places") / "table.csv"
    frame().to_csv(path, index=False)
    table = frame() if request.param == "frame" else TableReader(path)
    given = {"columns": said(all_dropped=True)}
    model = Synthesizer.fit(table, schema=given, settings=SETTINGS, seed=1)
    model.save(path.with_suffix(".gcvae"))
    model = Synthesizer.load(path.with_suffix(".gcvae"))
    inferred = infer_schema(table, given)
    rows = format_table(model.sample(5000, seed=1), model.schema)
    return {
        "schema": _of(inferred.schema.to_json(), list(inferred.warnings), model.schema.to_json()),
        "training record": _of(model.training_record),
        "model file": _of_model_file(model.to_bytes()),
        "samples": Content([*rows.columns, *rows.to_numpy().ravel().tolist()]),
        "maps": _of([model.dependencies(kind).to_json() for kind in MAPS_OF_MODEL]),
    }


@pytest.mark.parametrize(("role", "place"), [key for key in EXPECTED if key[1] in OF_LIBRARY])
def test_a_text_of_this_role_stands_in_this_place_of_the_library_as_the_page_says(
    fitted: dict[str, Content], role: str, place: str
) -> None:
    assert fitted[place].holds(PLANTS[role]) == EXPECTED[role, place]


@pytest.fixture(scope="module")
def forms() -> dict[str, dict[str, Any]]:
    """The manifest of a model file in both forms."""
    given = {"columns": said(all_dropped=True)}
    model = Synthesizer.fit(frame(), schema=given, settings=SETTINGS, seed=1)
    files = {"whole": model.to_bytes(), "minimal": model.to_bytes(minimal=True)}
    return {form: unpack_tensors(content)[1] for form, content in files.items()}


def _what_a_model_file_holds() -> str:
    return PAGE.read_text().split("## What a model file holds")[1].split("\n## ")[0]


@pytest.mark.parametrize("form", ["whole", "minimal"])
def test_the_page_names_every_member_of_a_model_file(
    forms: dict[str, dict[str, Any]], form: str
) -> None:
    """Whoever adds a member to the manifest has to say what it holds."""
    manifest, page = forms[form], _what_a_model_file_holds()
    columns = manifest["codec"]["columns"].values()
    members = {*manifest, *manifest["codec"], *manifest["hard_rules"]}
    members |= {member for column in columns for member in column}
    members |= {*manifest["training_record"]} if form == "minimal" else set()
    assert len(members) > 25
    assert [member for member in sorted(members) if f"`{member}`" not in page] == []


def test_a_minimal_file_lacks_what_the_page_says_that_it_does(
    forms: dict[str, dict[str, Any]],
) -> None:
    lines = [line for line in _what_a_model_file_holds().splitlines() if "**(whole)**" in line]
    of_file, of_record = lines[1:]  # the first one says what the mark means
    record = forms["whole"]["training_record"]
    gone = set(re.findall("`([a-z0-9_]+)`", of_record)) - {"training_record"}
    assert {"rows", "table_sha256", "held_out_scores", "memory_gap", "bound_train"} <= gone
    assert len(gone & set(record)) > 10
    assert not gone & set(forms["minimal"]["training_record"])
    assert "`data_map`" in of_file
    assert forms["whole"]["data_map"] is not None
    assert forms["minimal"]["data_map"] is None
    assert record["table_sha256"] not in json.dumps(forms["minimal"])
    counts = [c["counts"] for c in forms["minimal"]["codec"]["columns"].values() if "counts" in c]
    assert counts
    assert max(share for shares in counts for share in shares) <= 1.0
