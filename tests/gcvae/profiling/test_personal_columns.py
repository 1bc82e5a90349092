"""Personal columns are found by their cells and names, and nothing else is taken for one."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from benchmarks.personal_columns import LOCALES, measure
from gcvae import infer_schema
from gcvae.errors import SchemaError
from gcvae.schema.columns import TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.personal import PersonalKind
from tests.lengths import first_of

PORTUGUESE = ["José", "João", "Antônio", "Luiz", "Maria", "Ana", "Márcia", "Letícia", "Aline"]
SPANISH = [
    "Carmen",
    "José",
    "María",
    "Ana",
    "Pilar",
    "Luis",
    "Pedro",
    "Marta",
    "Rosa",
    "Iván",
    "Xiomara",
    "Yurena",
    "Txomin",
]
COMPOSED = [
    "da Silva Santos",
    "dos Santos Costa",
    "Pereira da Cruz",
    "van der Berg",
    "von der Heide",
    "Rodrigues de Almeida",
    "Souza e Silva",
    "van den Broek-Smit",
    "de la Cruz García",
    "D'Artois de Villepin",
]
RESIDENTS = [
    "Ναταλίνα Αναστασίου",
    "Σωφρονία Παπαδοπούλου",
    "Βάιος Θεοδωρίδης",
    "Анна Константиновна Белякова",
    "Федот Фролович Савельев",
    "Светозар Анатольевич Сорокин",
    "Karoline Schmidt",
    "Hans Müller",
]
NAMES = "ad", "ime", "imię", "isim", "jméno", "név", "nom", "nombre", "nome", "имя", "όνομα"
MAILS = [f"anna.meier{i % 40}@web.de" for i in range(200)]


def inferred(cells: list[str] | list[int], name: str = "x", **members: Any) -> TableSchema:
    frame = pd.DataFrame({name: cells, "n": [i % 7 for i in range(len(cells))]})
    return infer_schema(frame, {"columns": [{"name": name, **members}]}, rules=False).schema


@pytest.mark.parametrize("locale", first_of(*LOCALES))
def test_every_personal_column_of_a_locale_is_found_and_no_other(locale: str) -> None:
    found = measure((locale,), 1)
    assert found.missed == []
    assert found.taken == []
    assert found.replayed == 0
    assert min(found.rows_of_one) == 1.0
    assert min(found.formed) > 0.99


def test_e_mails_of_people_who_come_again_are_personal() -> None:
    schema = inferred(MAILS)
    assert schema["x"].personal is PersonalKind.EMAIL
    assert schema["x"].kind is ColumnKind.IDENTIFIER
    assert TableSchema.from_json(schema.to_json()) == schema


def test_the_reason_is_a_warning() -> None:
    frame = pd.DataFrame({"x": MAILS, "n": [i % 7 for i in range(200)]})
    [warning] = infer_schema(frame, rules=False).warnings
    assert warning == (
        "column 'x': contains e-mail addresses (100% of its texts are e-mail addresses): its"
        ' values are replaced by generated ones in synthetic rows; "personal": false in the schema'
        " treats it like any other column"
    )


def test_a_user_can_say_that_a_column_is_not_personal() -> None:
    schema = inferred(MAILS, personal=False)
    assert schema["x"].personal is False
    assert schema["x"].kind is ColumnKind.CATEGORICAL
    assert schema["x"].to_json()["personal"] is False
    assert TableSchema.from_json(schema.to_json())["x"].personal is False


@pytest.mark.parametrize("said", [{"kind": "categorical"}, {"levels": sorted(set(MAILS))}])
def test_levels_that_are_declared_stay_levels(said: dict[str, Any]) -> None:
    schema = inferred(MAILS, **said)
    assert schema["x"].personal is None
    assert schema["x"].kind is ColumnKind.CATEGORICAL


def test_a_user_can_say_what_a_column_holds() -> None:
    schema = inferred([f"Q{i % 9}" for i in range(90)], personal="username")
    assert schema["x"].personal is PersonalKind.USERNAME


@pytest.mark.parametrize(
    ("member", "expected"),
    [("people", "false, or one of first_name, last_name, name, email"), (True, "false, or one of")],
)
def test_another_word_is_refused(member: object, expected: str) -> None:
    with pytest.raises(SchemaError, match="personal cannot be") as caught:
        inferred(MAILS, personal=member)
    [problem] = caught.value.problems
    assert problem.pointer == "/columns/0/personal"
    assert expected in str(problem.expected)


def test_a_kind_that_contradicts_is_refused() -> None:
    with pytest.raises(
        SchemaError, match="personal is email, but the kind is categorical"
    ) as found:
        inferred(MAILS, personal="email", kind="categorical")
    assert found.value.problems[0].pointer == "/columns/0/personal"
    assert found.value.problems[0].expected == "kind identifier, or personal false"
    with pytest.raises(SchemaError, match="personal is birth_date, but the kind is categorical"):
        inferred(MAILS, personal="birth_date")


@pytest.mark.parametrize("name", ["birth_date", "Geburtsdatum", "dateOfBirth", "дата рождения"])
def test_a_date_of_birth_is_a_date(name: str) -> None:
    schema = inferred([f"19{60 + i % 40}-0{1 + i % 9}-1{i % 9}" for i in range(200)], name)
    assert schema[name].personal is PersonalKind.BIRTH_DATE
    assert schema[name].kind is ColumnKind.DATETIME


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("city", ["Paris", "Florence", "Austin", "Madison", "Jackson", "Lincoln", "Houston"]),
        ("make", ["Ford", "Morgan", "Lincoln", "Dodge", "Austin", "Bentley", "Royce"]),
        ("flower", ["Rose", "Violet", "Lily", "Daisy", "Iris", "Jasmine", "Heather"]),
        ("month", ["April", "May", "June", "August", "January", "March", "July"]),
        ("version", [f"{i % 3}.{i % 7}.{i % 11}" for i in range(77)]),
        ("sku", [f"{i:05d}-{i % 9}" for i in range(90)]),
        ("ean", [f"40{i * 7919 % 10**10:010d}{i % 10}" for i in range(90)]),
        ("day", [f"0{1 + i % 9}/1{i % 9}/2020" for i in range(99)]),
        ("code", [f"{i % 10}{i % 7}-{i % 100:02d}-{i % 50:02d}" for i in range(99)]),
        ("file", [f"img{i}.png" for i in range(99)]),
        ("invoice", [f"{i:05d}/24" for i in range(990, 1090)]),
        ("Rechnung", [f"0{i:04d}/2024" for i in range(990, 1090)]),
        ("account", [f"0{1 + i % 9}-{i * 97 % 10**5:05d}" for i in range(250)]),
        ("x", [f"0{1 + i % 9}-{i * 97 % 10**5:05d}" for i in range(250)]),
        ("Vertragsnummer", [f"0{310 + i % 9}/{i * 9973 % 10**7:07d}" for i in range(250)]),
        ("ticket", [f"00{i:08d}" for i in range(99)]),
        ("nom", ["Paris", "Lyon", "Laval", "Nancy", "Tours", "Dijon", "Brest", "Nice", "Lille"]),
        ("nombre", ["León", "Toledo", "Córdoba", "Sevilla", "Granada", "Burgos", "Soria", "Lugo"]),
        ("nombre", ["Rosa", "Clavel", "Margarita", "Violeta", "Tomate", "Miel", "Queso", "Pan"]),
        ("nombre_producto", PORTUGUESE),
        ("last_name", ["not known yet", "the same as before", "changed by marriage"]),
        ("surname", [f"He was called {name}, they said." for name in PORTUGUESE]),
        ("epoch", [str(1_600_000_000 + 7919 * i) for i in range(99)]),
    ],
)
def test_what_is_like_a_personal_column_is_none(name: str, cells: list[str]) -> None:
    assert inferred((cells * 15)[:300], name)[name].personal is None


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("manager", ["Anna Smith", "John Miller", "Mary Jones"], PersonalKind.NAME),
        ("x", [f"+49 30 {i:06d}" for i in range(99)], PersonalKind.PHONE),
        ("telefono", [f"{600_000_000 + i * 7919}" for i in range(99)], PersonalKind.PHONE),
        ("x", [f"10.0.{i}.7" for i in range(99)], PersonalKind.IP),
        ("nombre", PORTUGUESE, PersonalKind.FIRST_NAME),
        ("nome_cliente", PORTUGUESE, PersonalKind.FIRST_NAME),
        ("adı", ["Mehmet", "Ayşe", "Hüseyin", "Zeynep", "Elif"], PersonalKind.FIRST_NAME),
        ("nom_prenom", ["Martin Claire", "Durand Paul", "Petit Anne"], PersonalKind.NAME),
        ("příjmení", ["Novák", "Svoboda", "Dvořák"], PersonalKind.LAST_NAME),
        ("surname", [f"Xyrq{chr(97 + i % 26)}" for i in range(99)], PersonalKind.LAST_NAME),
        ("last_name", COMPOSED, PersonalKind.LAST_NAME),
        ("last_name", [name.upper() for name in COMPOSED], PersonalKind.LAST_NAME),
        ("last_name", COMPOSED[3:5] * 2 + ["de la Cruz"], PersonalKind.LAST_NAME),
        ("full_name", [f"Maria {name}" for name in COMPOSED], PersonalKind.NAME),
        ("x", [f"https://a{i % 20}.org/b" for i in range(99)], PersonalKind.URL),
        ("όνομα", RESIDENTS[:3], PersonalKind.NAME),
        ("όνομα", [name.split()[0] for name in RESIDENTS[:3]], PersonalKind.FIRST_NAME),
        *((name, RESIDENTS, PersonalKind.NAME) for name in NAMES),
    ],
)
def test_by_cells_or_by_name(name: str, cells: list[str], kind: PersonalKind) -> None:
    assert inferred((cells * 40)[:300], name)[name].personal is kind


@pytest.mark.parametrize(
    ("name", "cells", "beside", "kind"),
    [
        ("nombre", ["Nezahual", "Yolotzin", "Ximhuic"], "apellidos", PersonalKind.FIRST_NAME),
        ("nom", ["Xyrqa", "Xyrqb", "Xyrqc"], "prénom", PersonalKind.LAST_NAME),
        ("x", SPANISH, "cognome", PersonalKind.FIRST_NAME),
    ],
)
def test_the_other_part_of_a_name_is_found_beside_a_part(
    name: str, cells: list[str], beside: str, kind: PersonalKind
) -> None:
    cells = (cells * 100)[:300]
    lasts = [f"Yq{chr(97 + i % 26)}" for i in range(300)]
    frame = pd.DataFrame({name: cells, beside: lasts, "n": [i % 7 for i in range(300)]})
    assert inferred(cells, name)[name].personal is None
    assert infer_schema(frame, rules=False).schema[name].personal is kind


def test_the_schema_of_a_personal_column_is_shown() -> None:
    assert "made-up e-mail addresses" in inferred(MAILS)._repr_html_()
