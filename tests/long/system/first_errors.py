"""The errors that new users make first: how each is made at every door, and what is said there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

from gcvae import Synthesizer
from gcvae_client import Client
from tests.long.system.first_pages import (
    draw,
    draw_given,
    look_at,
    score,
    sign_in,
    upload,
    upload_with_read_key,
)
from tests.long.system.first_tables import Place

WRONG_KEY = "gcv_none"
COPY_AGAIN = "copy it again from where it was written"
WHAT_A_MODEL_IS = "not a gcvae file, or a truncated one; a model is what `gcvae train`"


@dataclass(frozen=True)
class Slip:
    """One error of a new user.

    Attributes:
        says: What every message has: the place, and what would be right.
        shell: Commands that make it.
        python: Calls that make it, of the client or of the library.
        browser: What makes it on a page.
        more: What the messages of one door have beside it.
    """

    name: str
    says: tuple[str, ...]
    shell: tuple[str, ...] = ()
    python: Callable[[Place], Any] | None = None
    browser: Callable[[Page, Place], None] | None = None
    more: dict[str, tuple[str, ...]] = field(default_factory=dict)


def sample(place: Place, **options: Any) -> Any:
    return place.open.sample(place.names["M"], options.pop("rows", 5), format="csv", **options)


def upload_of(table: str, schema: dict[str, Any] | None = None) -> Callable[[Place], Any]:
    return lambda place: place.open.upload(place.folder / table, schema=schema)


def train_with(**training: Any) -> Callable[[Place], Any]:
    return lambda place: place.open.train(next(place.open.datasets()), **training)


def models_at(letter: str, path: str = "", key: str | None = None) -> Callable[[Place], Any]:
    """Lists the models of the service at an address."""

    def act(place: Place) -> Any:
        with Client(place.names[letter] + path, api_key=key, retries=0) as client:
            return list(client.models())

    return act


def upload_by_read_key(place: Place) -> Any:
    key = (place.folder / "read.key").read_text()
    with Client(place.names["K"], api_key=key) as client:
        return client.upload(place.folder / "cars.csv")


def column(**members: Any) -> dict[str, Any]:
    return {"columns": [members]}


IN = "--server {U}"
SAMPLE = "sample {M} --rows 5 -o - --server {U}"
SLIPS = (
    Slip(
        "a file that is not there",
        ("cras.csv",),
        shell=("train cras.csv -o m.gcvae", "train cras.csv --server {U}"),
        python=upload_of("cras.csv"),
        more={"shell": ("did you mean 'cars.csv'?",), "python": ("No such file",)},
    ),
    Slip(
        "a spreadsheet",
        ("an Excel workbook", 'save the sheet as "CSV UTF-8"'),
        shell=("schema book.xlsx", f"schema book.xlsx {IN}"),
        python=upload_of("book.xlsx"),
        browser=upload("book.xlsx"),
        more={"python": ("The table cannot be used",)},
    ),
    Slip(
        "an empty file",
        ("the file is empty", "a CSV file in UTF-8 with a header row"),
        shell=("schema empty.csv", f"schema empty.csv {IN}", "score cars.gcvae empty.csv -o -"),
        python=upload_of("empty.csv"),
        browser=upload("empty.csv"),
    ),
    Slip(
        "a header alone",
        ("a header but no rows", "at least one row"),
        shell=("schema header.csv", f"schema header.csv {IN}"),
        python=upload_of("header.csv"),
        browser=upload("header.csv"),
    ),
    Slip(
        "too few rows",
        ("no column is left to model", "more rows: the table has one"),
        shell=("train one_row.csv -o m.gcvae", f"train one_row.csv {IN}"),
        python=upload_of("one_row.csv"),
        browser=upload("one_row.csv"),
    ),
    Slip(
        "a row of another width",
        ("line 6", "2 cells, where the header has 4", "a ',' within a cell needs quotes"),
        shell=("schema ragged.csv", f"schema ragged.csv {IN}"),
        python=upload_of("ragged.csv"),
        browser=upload("ragged.csv"),
    ),
    Slip(
        "a file that is not UTF-8",
        ("line ", "is not UTF-8", '"CSV UTF-8"', "with encoding cp1252 this reads 'citroën'"),
        shell=("schema latin.csv", f"schema latin.csv {IN}"),
        python=upload_of("latin.csv"),
        browser=upload("latin.csv"),
    ),
    Slip(
        "a name of two columns",
        ("line 1", "'price' is used for columns 2 and 3", "every name once"),
        shell=("schema twice.csv", f"schema twice.csv {IN}"),
        python=upload_of("twice.csv"),
        browser=upload("twice.csv"),
    ),
    Slip(
        "a schema of a column that the table has not",
        ("/columns/0/name", "'mkae'", "did you mean 'make'?"),
        shell=(
            "schema cars.csv --schema misnamed.json",
            f"schema cars.csv --schema misnamed.json {IN}",
        ),
        python=upload_of("cars.csv", column(name="mkae", kind="categorical")),
    ),
    Slip(
        "a kind that the cells are not of",
        ("/columns/0/kind", "line 2", "'make'", "expected: a number"),
        shell=(
            "schema cars.csv --schema miskind.json",
            f"schema cars.csv --schema miskind.json {IN}",
        ),
        python=upload_of("cars.csv", column(name="make", kind="continuous")),
    ),
    Slip(
        "a kind as other tools call it",
        ("/columns/0/kind", "did you mean 'categorical'?"),
        shell=("schema cars.csv --schema foreign.json",),
        python=upload_of("cars.csv", column(name="make", kind="nominal")),
    ),
    Slip(
        "a text among numbers",
        ("line 8", "'price'", "'cheap'", "a number such as", "missing.markers"),
        shell=("schema cheap.csv --schema number.json",),
        python=upload_of("cheap.csv", column(name="price", kind="continuous")),
    ),
    Slip(
        "dates in no known format",
        ("'bought'", "no one format fits", 'datetime_format, as strptime has it, such as "%d.'),
        shell=("schema dates.csv --schema date.json",),
        python=upload_of("dates.csv", column(name="bought", kind="datetime")),
    ),
    Slip(
        "a hard rule that no row fulfils",
        ("/rules/0", "60 of 60 rows break price <= doors", "a rule that every row keeps"),
        shell=("schema cars.csv --schema never.json", f"train cars.csv --schema never.json {IN}"),
        python=upload_of(
            "cars.csv", {"rules": [{"rule": "price <= doors", "keep": "hard"}], "find_rules": True}
        ),
    ),
    Slip(
        "a misspelt preset",
        ("unknown preset 'fats'", "did you mean 'fast'?"),
        shell=("train cars.csv -o m.gcvae --preset fats", f"train cars.csv --preset fats {IN}"),
        python=train_with(preset="fats"),
    ),
    Slip(
        "a misspelt setting",
        ("unknown setting 'max_step'", "did you mean 'max_steps'?"),
        shell=(
            "train cars.csv -o m.gcvae --set max_step=5",
            f"train cars.csv --set max_step=5 {IN}",
        ),
        python=train_with(max_step=5),
    ),
    Slip(
        "no rows",
        ("rows", "greater than or equal to 1"),
        shell=("sample cars.gcvae --rows 0 -o -", f"sample {{M}} --rows 0 -o - {IN}"),
        python=lambda place: sample(place, rows=0),
        browser=draw("0"),
    ),
    Slip(
        "more rows than the service draws",
        ("5000 rows are requested", "the limit is 1000", "GCVAE_MAX_SAMPLE_ROWS"),
        shell=(f"sample {{M}} --rows 5000 -o - {IN}",),
        python=lambda place: sample(place, rows=5000),
        browser=draw("5000"),
    ),
    Slip(
        "a condition on a misspelt column",
        ("/given/mkae", "did you mean 'make'?"),
        shell=(
            "sample cars.gcvae --rows 5 -o - --given '{\"mkae\": \"audi\"}'",
            f"{SAMPLE} --given '{{\"mkae\": \"audi\"}}'",
        ),
        python=lambda place: sample(place, given={"mkae": "audi"}),
    ),
    Slip(
        "a condition on a misspelt level",
        ("/given/make", "no level 'Audi'", "did you mean 'audi'?"),
        shell=("sample cars.gcvae --rows 5 -o - --given '{\"make\": \"Audi\"}'",),
        python=lambda place: sample(place, given={"make": "Audi"}),
    ),
    Slip(
        "a condition on a level that was not in training",
        ("/given/make", "no level 'tesla'", "expected: one of audi, bmw, fiat"),
        shell=(
            "sample cars.gcvae --rows 5 -o - --given '{\"make\": \"tesla\"}'",
            f"{SAMPLE} --given '{{\"make\": \"tesla\"}}'",
        ),
        python=lambda place: sample(place, given={"make": "tesla"}),
    ),
    Slip(
        "a condition that nothing fulfils",
        ("price", "no number of the column is in the range", "a range that meets its numbers from"),
        shell=("sample cars.gcvae --rows 5 -o - --given '{\"price\": {\"min\": 9e9}}'",),
        python=lambda place: sample(place, given={"price": {"min": 9e9}}),
        browser=draw_given("price", "9000000000"),
    ),
    Slip(
        "a date of a condition in another format",
        ("bought", "01/02/2020", "a date of the format %Y-%m-%d"),
        shell=(
            "sample cars.gcvae --rows 5 -o - --given '{\"bought\": {\"min\": \"01/02/2020\"}}'",
        ),
        python=lambda place: sample(place, given={"bought": {"min": "01/02/2020"}}),
        browser=draw_given("bought", "01/02/2020"),
    ),
    Slip(
        "a condition that is no JSON",
        ("--given", """write it as '{"age": 40}'"""),
        shell=("sample cars.gcvae --rows 5 -o - --given make=audi", f"{SAMPLE} --given make=audi"),
    ),
    Slip(
        "a table with a column more",
        ("colour", "no such column", "one of make, price, doors, bought; leave others out"),
        shell=("score cars.gcvae wider.csv -o -", f"score {{M}} wider.csv -o - {IN}"),
        python=lambda place: place.open.score(place.names["M"], place.folder / "wider.csv"),
        browser=score("wider.csv"),
    ),
    Slip(
        "a table with a renamed column",
        ("prise", "no such column"),
        shell=("score cars.gcvae renamed.csv -o -", f"score {{M}} renamed.csv -o - {IN}"),
        python=lambda place: place.open.score(place.names["M"], place.folder / "renamed.csv"),
        browser=score("renamed.csv"),
        more={
            "shell": ("did you mean 'price'?",),
            "python": ("did you mean 'price'?",),
            "browser": ("Did you mean “price”?",),
        },
    ),
    Slip(
        "a report on a misspelt column",
        ("'mkae'", "did you mean 'make'?"),
        shell=("report cars.gcvae --real cars.csv --target mkae -o -",),
        python=lambda place: place.open.make_report(place.names["M"], columns=["mkae"]),
    ),
    Slip(
        "a file that is no model",
        (WHAT_A_MODEL_IS,),
        shell=("sample cars.csv --rows 5 -o -", "sample cut.gcvae --rows 5 -o -",
               f"import text.gcvae {IN}"),
        python=lambda place: place.open.import_model(place.folder / "cut.gcvae"),
    ),
    Slip(
        "a model file that was altered",
        ("its content does not match its checksum", COPY_AGAIN),
        shell=("sample bent.gcvae --rows 5 -o -", f"import bent.gcvae {IN}"),
        python=lambda place: place.open.import_model(place.folder / "bent.gcvae"),
    ),
    Slip(
        "a model file of a newer version",
        ("this library reads gcvae-model version", "a newer gcvae wrote it: upgrade this one"),
        shell=("sample newer.gcvae --rows 5 -o -", f"import newer.gcvae {IN}"),
        python=lambda place: Synthesizer.load(place.folder / "newer.gcvae"),
        more={"python": ("newer.gcvae",)},
    ),
    Slip(
        "an id of a service without the service",
        ("mdl_1", "add --server URL"),
        shell=("sample mdl_1 --rows 5 -o -",),
    ),
    Slip(
        "a folder that is not there",
        ("none",),
        shell=("train cars.csv -o none/m.gcvae", f"sample {{M}} --rows 5 -o none/rows.csv {IN}"),
        python=lambda place: place.open.sample(
            place.names["M"], 5, to=place.folder / "none" / "rows.csv"
        ),
        more={"shell": ("there is no folder", "create it first"), "python": ("folder not found",)},
    ),
    Slip(
        "an output of an unknown kind",
        ("rows.xlsx", "name must end in .csv"),
        shell=(
            "sample cars.gcvae --rows 5 -o rows.xlsx",
            f"sample {{M}} --rows 5 -o rows.xlsx {IN}",
        ),
        python=lambda place: place.open.sample(place.names["M"], 5, to="rows.xlsx"),
    ),
    Slip(
        "a service that does not run",
        ("{S}", "does not respond", "`gcvae serve` starts one"),
        shell=("list models --server {S}",),
        python=models_at("S"),
    ),
    Slip(
        "an address without http",
        ("127.0.0.1:8000", "it must begin with http:// or https://"),
        shell=("list models --server 127.0.0.1:8000",),
        python=lambda place: Client("127.0.0.1:8000"),
    ),
    Slip(
        "an address with a path",
        ("/v1/v1/models does not exist", "a base URL without a path"),
        shell=("list models --server {U}/v1",),
        python=models_at("U", "/v1"),
    ),
    Slip(
        "https where http is spoken",
        ("does not respond", "uses http:// and not https://"),
        shell=("list models --server {H}",),
        python=models_at("H"),
    ),
    Slip(
        "no key",
        ("the request has no API key",),
        shell=("list models --server {K}", "train cars.csv --server {K}"),
        python=models_at("K"),
        more={"shell": ("--key-file FILE",), "python": ("api_key=",)},
    ),
    Slip(
        "a wrong key",
        ("this is not an API key; a key begins with gcv_",),
        shell=("list models --server {K} --key-file wrong.key",),
        python=models_at("K", key=WRONG_KEY),
        browser=sign_in(WRONG_KEY),
        more={
            "shell": ("--key-file FILE",),
            "python": ("api_key=",),
            "browser": ("This key is not valid", "Paste the whole key"),
        },
    ),
    Slip(
        "a key without the scope",
        ("a key with the scope 'write'; the given key has: read",),
        shell=("train cars.csv --server {K} --key-file read.key",),
        python=upload_by_read_key,
        browser=upload_with_read_key,
        more={
            "shell": ("--key-file FILE",),
            "python": ("api_key=",),
            "browser": ("use such a key", "--workspace NAME --scopes read,write"),
        },
    ),
    Slip(
        "a model that is not ready",
        ("{T} is training",),
        shell=("sample {T} --rows 5 -o - --server {K} --key-file full.key",),
        python=lambda place: place.waiting.sample(place.names["T"], 5, format="csv"),
        more={"shell": ("`gcvae list jobs`",), "python": ("client.wait(model) returns after",)},
    ),
    Slip(
        "an unknown id",
        ("there is no model 'mdl_typo'",),
        shell=(f"sample mdl_typo --rows 5 -o - {IN}",),
        python=lambda place: place.open.sample("mdl_typo", 5, format="csv"),
        browser=look_at("/models/mdl_typo"),
        more={
            "shell": ("`gcvae list datasets`",),
            "python": ("client.datasets(), .models() and .jobs() list",),
            "browser": ("It may have been deleted", "Go to the home page"),
        },
    ),
    Slip(
        "a report that was not made",
        ("There is no report",),
        shell=(f"report {{M}} -o - {IN}",),
        python=lambda place: place.open.report(place.names["M"]),
        browser=look_at("/models/{M}/report"),
        more={
            "shell": ("create one with --seed 0",),
            "python": ("create one with client.make_report(model)",),
            "browser": ("Make report",),
        },
    ),
    Slip(
        "a file that is too large",
        ("the limit is 200000", "GCVAE_MAX_UPLOAD_BYTES"),
        shell=(f"train large.csv {IN}",),
        python=upload_of("large.csv"),
        browser=upload("large.csv"),
    ),
)  # fmt: skip
