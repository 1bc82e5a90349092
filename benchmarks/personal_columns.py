"""Personal columns of generated tables: which are found, and what drawn rows hold in their place.

    python -m benchmarks.personal_columns

Thirty-five tables of Faker, five of each of seven locales in five scripts, with people, and with
columns that hold none: cities, companies, products, colours, weekdays, codes. Two of five tables
number their columns, so that the cells alone tell; those of user names, tax numbers and streets
keep their names, for no cell tells them. Five more tables, each of another locale, have last names
of several words, such as "van der Berg", which no list contains.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pandas as pd
from anyascii import anyascii
from faker import Faker

from gcvae.cells.values import parse_table
from gcvae.codec.table_codec import TableCodec
from gcvae.profiling.infer import infer_schema
from gcvae.schema.columns import TableSchema

LOCALES = "en_US", "de_DE", "fr_FR", "ru_RU", "zh_CN", "ar_SA", "el_GR"
TABLES_PER_LOCALE = 5
ROWS = 400
_HEADERS = {
    "en_US": "first_name last_name full_name email phone street address iban card ip url user_name"
    " ssn",
    "de_DE": "Vorname Nachname Name E-Mail Telefon Straße Anschrift IBAN Karte IP URL Benutzername"
    " Steuernr",
    "fr_FR": "prénom nom nom_complet courriel téléphone rue adresse iban carte ip url identifiant"
    " nir",
    "ru_RU": "имя фамилия ФИО почта телефон улица адрес iban карта ip url логин ИНН",
    "zh_CN": "名字 姓 姓名 邮箱 电话 街道 地址 iban 卡号 ip 网址 用户名 身份证",
    "ar_SA": "الاسم_الأول اسم_العائلة الاسم_الكامل بريد هاتف شارع عنوان iban بطاقة ip رابط"
    " اسم_المستخدم الهوية",
    "el_GR": "όνομα επώνυμο ονοματεπώνυμο email τηλέφωνο οδός διεύθυνση iban κάρτα ip url"
    " όνομα_χρήστη ΑΦΜ",
}
_COMPOSED = {
    "pt_BR": ("sobrenome", "{} da {}"),
    "nl_NL": ("achternaam", "van der {}-{}"),
    "de_DE": ("Nachname", "von der {}"),
    "es_ES": ("apellidos", "{} de la {}"),
    "fr_FR": ("nom_de_famille", "de {} du {}"),
}
KINDS = ("first_name", "last_name", "name", "email", "phone", "street", "postal_address", "iban",
         "card", "ip", "url", "username", "tax_id")  # fmt: skip
_NAMELESS = {"username", "tax_id", "street"}
_COLOURS = ("red", "green", "blue", "black", "white", "rose", "violet", "olive", "amber", "ivory")
_PRODUCTS = ("Chef Knife", "Tennis Racket", "Jade Lamp", "Rose Vase", "Paris Bag", "Heather Rug",
             "Austin Chair", "Morgan Desk", "Lincoln Sofa", "Ruby Ring")  # fmt: skip


@dataclass(frozen=True)
class MadeTable:
    """A table, and what its columns hold: a kind of people, or None."""

    locale: str
    frame: pd.DataFrame
    kinds: dict[str, str | None]


@dataclass
class Figures:
    """Counts over tables."""

    n_personal: int = 0
    missed: list[str] = field(default_factory=list)
    n_others: int = 0
    taken: list[str] = field(default_factory=list)
    replayed: int = 0
    rows_of_one: list[float] = field(default_factory=list)
    formed: list[float] = field(default_factory=list)


def made_table(locale: str, number: int, rows: int = ROWS) -> MadeTable:
    """The table of a locale and a number."""
    fake = Faker(locale)
    fake.seed_instance(1000 * LOCALES.index(locale) + number)
    draw = random.Random(number)
    columns: dict[str, list[object]] = {kind: [] for kind in KINDS}
    sign = draw.choice([".", "_", "-"])
    for row in range(rows):
        first, last = fake.first_name(), fake.last_name()
        letters = [re.sub("[^a-z]", "", anyascii(name).lower()) for name in (first, last)]
        number_of_row = "" if number % 2 else str(row)
        joint = "" if locale == "zh_CN" else " "
        order = (last, first) if locale == "zh_CN" else (first, last)
        of_row = {
            "first_name": first,
            "last_name": last,
            "name": joint.join(order),
            "email": f"{sign.join(letters)}{number_of_row}@{fake.free_email_domain()}",
            "phone": fake.phone_number(),
            "street": fake.street_address(),
            "postal_address": fake.address(),
            "iban": fake.iban(),
            "card": fake.credit_card_number(),
            "ip": fake.ipv4_public(),
            "url": fake.url(),
            "username": f"{letters[0][:1]}{letters[1]}{row % 90 + 10}",
            "tax_id": fake.ssn(),
        }
        for kind, cell in of_row.items():
            columns[kind].append(cell)
    frame, kinds = dict[str, list[object]](), dict[str, str | None]()
    for i, (kind, header) in enumerate(zip(KINDS, _HEADERS[locale].split(), strict=True)):
        is_numbered = number >= TABLES_PER_LOCALE - 2 and kind not in _NAMELESS
        name = f"column_{i}" if is_numbered else header
        frame[name], kinds[name] = columns[kind], kind
    for name, cells in _others(fake, draw, rows):
        is_numbered = number == TABLES_PER_LOCALE - 1 and name not in ("city", "company")
        name = f"field {name[0]}{len(frame)}" if is_numbered else name
        frame[name], kinds[name] = cells, None
    return MadeTable(locale, pd.DataFrame(frame), kinds)


def composed_table(locale: str, rows: int = ROWS) -> MadeTable:
    """The table of last names of several words of a locale."""
    fake = Faker(locale)
    fake.seed_instance(1)
    name, form = _COMPOSED[locale]
    cells = [form.format(fake.last_name(), fake.last_name()) for _ in range(rows)]
    frame = pd.DataFrame({name: cells, "amount": [row % 89 for row in range(rows)]})
    return MadeTable(locale, frame, {name: "last_name", "amount": None})


def _others(fake: Faker, draw: random.Random, rows: int) -> Iterator[tuple[str, list[object]]]:
    yield "city", [fake.city() for _ in range(rows)]
    yield "company", [fake.company() for _ in range(rows)]
    yield "job", [fake.job() for _ in range(rows)]
    yield "country", [fake.country() for _ in range(rows)]
    yield "postcode", [fake.postcode() for _ in range(rows)]
    yield "colour", [draw.choice(_COLOURS) for _ in range(rows)]
    yield "product", [draw.choice(_PRODUCTS) for _ in range(rows)]
    yield "weekday", [fake.day_of_week() for _ in range(rows)]
    yield "month", [fake.month_name() for _ in range(rows)]
    yield "sku", [f"{draw.choice('ABC')}-{draw.randrange(10**5):05d}" for _ in range(rows)]
    yield (
        "version",
        [f"{draw.randrange(4)}.{draw.randrange(9)}.{draw.randrange(30)}" for _ in range(rows)],
    )
    yield "amount", [round(draw.lognormvariate(3, 1), 2) for _ in range(rows)]
    yield "order", [f"SO-2025-{i:06d}" for i in range(rows)]
    yield "date", [fake.date() for _ in range(rows)]
    yield "currency", [fake.currency_code() for _ in range(rows)]
    yield "word", [fake.word() for _ in range(rows)]
    yield "note", [fake.sentence(6) for _ in range(rows)]
    yield "flag", [draw.choice(["yes", "no"]) for _ in range(rows)]


def judge(made: MadeTable, figures: Figures) -> None:
    """Adds what is found in a table, and what its drawn rows hold."""
    schema = infer_schema(made.frame, rules=False).schema
    for column in schema:
        kind = made.kinds[column.name]
        where = f"{made.locale} {column.name} ({kind}): {column.personal}"
        if kind is None:
            figures.n_others += 1
            figures.taken += [where] if column.personal else []
        else:
            figures.n_personal += 1
            figures.missed += [] if column.personal == kind else [where]
    _judge_drawn(made, schema, figures)


def _judge_drawn(made: MadeTable, schema: TableSchema, figures: Figures) -> None:
    personal = TableSchema(tuple(c for c in schema if c.is_made_up))
    columns = {str(column.personal): column.name for column in personal}
    typed = parse_table(made.frame[list(personal.names)], personal)
    codec = TableCodec.from_json(TableCodec.fit(typed, personal).to_json())
    drawn = codec.decode(codec.encode(typed), first_row=0, seed=1)
    for kind, name in columns.items():
        if kind not in ("first_name", "last_name"):
            figures.replayed += int(drawn[name].isin(set(typed[name])).sum())
    if {"first_name", "last_name"} <= columns.keys():
        pair = [columns["first_name"], columns["last_name"]]
        known = set(typed[pair].itertuples(index=False, name=None))
        figures.replayed += sum(p in known for p in drawn[pair].itertuples(index=False, name=None))
    if {"first_name", "last_name", "name", "email"} <= columns.keys():
        asked = "first_name", "last_name", "name", "email"
        rows = list(zip(*(drawn[columns[kind]] for kind in asked), strict=True))
        figures.rows_of_one.append(sum(a in n and b in n for a, b, n, _ in rows) / len(rows))
        figures.formed.append(sum(_is_formed(e, a, b) for a, b, _, e in rows) / len(rows))


def _is_formed(email: str, *names: str) -> bool:
    return all(re.sub("[^a-z]", "", anyascii(name).lower()) in email for name in names)


def measure(locales: tuple[str, ...] = LOCALES, tables: int = TABLES_PER_LOCALE) -> Figures:
    """The figures of so many tables of each locale."""
    figures = Figures()
    for locale in locales:
        for number in range(tables):
            judge(made_table(locale, number), figures)
    for locale in _COMPOSED:
        judge(composed_table(locale), figures)
    return figures


def main() -> None:
    """Prints the figures."""
    found = measure()
    recall = 1 - len(found.missed) / found.n_personal
    print(f"personal columns found: {recall:.3f} of {found.n_personal}")
    print(f"others taken for one: {len(found.taken)} of {found.n_others}")
    print(f"cells replayed: {found.replayed}")
    print(f"rows of one identity: {min(found.rows_of_one):.3f} at least")
    print(f"e-mails formed of the names: {min(found.formed):.3f} at least")
    for line in found.missed + found.taken:
        print(" ", line)


if __name__ == "__main__":
    main()
