"""Personal columns: made-up cells of the table's form, of one identity a row, none an original."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from gcvae.cells.values import parse_table
from gcvae.codec.check_digits import is_card, is_iban, with_check_digits
from gcvae.codec.name_forms import read_name
from gcvae.codec.name_lists import locales, names_of
from gcvae.codec.personal import ip_of
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import TableError
from gcvae.profiling.infer import infer_schema
from gcvae.schema.personal import PersonalKind

Cells = list[str]


def people(rows: int = 400, locale: str = "en_US") -> list[tuple[str, str]]:
    """First and last names of a locale, no two rows alike."""
    names, draw = names_of(locale), np.random.default_rng(0)
    numbers = draw.choice(names.n_pairs, rows, replace=False).astype(np.uint64)
    found: list[tuple[str, str]] = []
    for sex, _, first, last in names.split(numbers):
        found += zip(sex.first[first], sex.last[last], strict=True)
    return [found[i] for i in draw.permutation(rows)]


def codec_of(kinds: dict[str, str] | None = None, **columns: Cells) -> TableCodec:
    """The codec of a table with a number, after a save and a load."""
    table = pd.DataFrame(columns)
    table["n"] = np.arange(len(table)) % 7
    members = [{"name": name, "personal": kind} for name, kind in (kinds or {}).items()]
    schema = infer_schema(table, {"columns": members}, rules=False).schema
    codec = TableCodec.fit(parse_table(table, schema), schema)
    return TableCodec.from_json(json.loads(json.dumps(codec.to_json())))


def drawn_of(codec: TableCodec, rows: int = 1000, first: int = 0, seed: int = 3) -> pd.DataFrame:
    """Rows from a number on."""
    numbers = pd.DataFrame({"n": np.zeros(rows, dtype=np.int64)})
    return codec.decode(codec.encode(numbers), first, seed)


def _stems(accounts: pd.Series) -> pd.Series:
    """What stands before a number and an @."""
    return accounts.str.partition("@")[0].str.replace(r"\d+$", "", regex=True)


def split(found: list[tuple[str, str]]) -> dict[str, Cells]:
    return {"first_name": [a for a, _ in found], "last_name": [b for _, b in found]}


def test_a_row_has_one_identity_and_none_is_the_tables() -> None:
    found = people(2000)
    names = [f"{a} {b}" for a, b in found]
    mails = [f"{a}.{b}@web.de".lower() for a, b in found]
    users = [f"{a[0]}{b}{i % 90 + 10}".lower() for i, (a, b) in enumerate(found)]
    codec = codec_of(**split(found), full_name=names, email=mails, user_name=users)
    drawn = drawn_of(codec, 20_000)
    assert (drawn["full_name"] == drawn["first_name"] + " " + drawn["last_name"]).all()
    parts = drawn["first_name"].str.lower() + "." + drawn["last_name"].str.lower()
    assert (_stems(drawn["email"]) == parts).mean() > 0.99
    initials = drawn["first_name"].str[0].str.lower() + drawn["last_name"].str.lower()
    assert (_stems(drawn["user_name"]) == initials).all()
    assert drawn["email"].is_unique
    for name, originals in (("full_name", names), ("email", mails), ("user_name", users)):
        assert not set(drawn[name].astype(str)) & set(originals)


def test_a_row_has_its_identity_however_the_rows_are_cut_and_each_seed_others() -> None:
    found = people()
    codec = codec_of(**split(found), phone=[f"+49 30 {i:07d}" for i in range(len(found))])
    whole = drawn_of(codec, 70_000)
    part = drawn_of(codec, 100, first=65_536)
    pd.testing.assert_frame_equal(part, whole[65_536:65_636].reset_index(drop=True))
    other = drawn_of(codec, 400, seed=4)
    assert (other["first_name"] != whole["first_name"][:400]).mean() > 0.9


def test_a_model_holds_no_name_of_the_table() -> None:
    found = people()
    codec = codec_of(
        **split(found),
        email=[f"{a}_{b}@firm.com".lower() for a, b in found],
        street=[f"{i} {b} Crescent" for i, (_, b) in enumerate(found)],
    )
    document = codec.to_json()
    del document["columns"]["street"]["places"]  # of names that are Faker's
    text = json.dumps(document).casefold()
    said = set(re.findall(r'"([^"]+)"(?!:)', text))
    assert not said & {name.casefold() for pair in found for name in pair}
    assert "firm.com" not in text


@pytest.mark.parametrize("locale", ["de_DE", "ru_RU", "ja_JP", "zh_CN", "el_GR", "ar_SA", "es_ES"])
def test_names_are_of_the_locale_and_the_form_of_the_tables(locale: str) -> None:
    names = names_of(locale)
    order = "{1}{2}{0}" if names.is_last_name_first else "{0}{2}{1}"
    texts = [order.format(a, b, names.separator) for a, b in people(300, locale)]
    codec = codec_of({"name": "name"}, name=texts)
    drawn = drawn_of(codec, 300)["name"]
    read, known = ([read_name(text, names) for text in cells] for cells in (drawn, texts))
    assert not set(drawn) & set(texts)
    assert None not in read
    assert {own.form for own in read if own} <= {own.form for own in known if own}


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        ("{1}, {0}", r"\S.*, \S.*"),
        ("{0[0]}. {1}", r"[A-Z]\. \S+"),
        ("Dr. {0} {1}", r"Dr\. \S+ \S+"),
        ("{0} {1}-Smith", r"\S+ \S+-\S+"),
    ],
)
def test_names_have_the_tables_form(written: str, pattern: str) -> None:
    texts = [written.format(a, b) for a, b in people()]
    drawn = drawn_of(codec_of({"name": "name"}, name=texts), 500)["name"]
    assert drawn.str.fullmatch(pattern).all(), drawn.head()
    assert not set(drawn) & set(texts)


@pytest.mark.parametrize(
    ("locale", "titles", "written"),
    [
        ("fr_FR", ["M.", "Mme"], "{1} {0}"),
        ("de_DE", ["Herr", "Frau"], "{0} {1}"),
        ("es_ES", ["Sr.", "Sra."], "{0} {1}"),
        ("it_IT", ["Sig.", "Sig.ra"], "{1} {0}"),
        ("pl_PL", ["Pan", "Pani"], "{0} {1}"),
        ("en_GB", ["Mr", "Mrs"], "{1}, {0}"),
    ],
)
def test_titles_and_last_names_in_capitals_keep_their_form(
    locale: str, titles: list[str], written: str
) -> None:
    names = names_of(locale)
    texts = []
    for i in range(300):
        first = names.sexes[i % 2].first[i * 7 % len(names.sexes[i % 2].first)]
        last = "Xyrqov" if i % 3 == 0 else names.sexes[0].last[i * 11 % len(names.sexes[0].last)]
        texts.append(f"{titles[i % 2]} {written.format(first, last.upper())}")
    frame = pd.DataFrame({"Client": texts, "n": [i % 7 for i in range(300)]})
    assert infer_schema(frame, rules=False).schema["Client"].personal is PersonalKind.NAME
    drawn = drawn_of(codec_of({"Client": "name"}, Client=texts), 500)["Client"]
    assert not set(drawn) & set(texts)
    shape = (
        re.escape(written).replace(r"\{0\}", "(?P<first>.+?)").replace(r"\{1\}", "(?P<last>.+?)")
    )
    for title, sex in zip(titles, names.sexes, strict=True):
        own = drawn[drawn.str.startswith(f"{title} ")]
        parts = own.str.extract(f"^{re.escape(title)} {shape}$".replace("last>.+?", "last>[^a-z]+"))
        assert parts["last"].str.isupper().all()
        assert set(parts["first"]) <= set(sex.first)
        assert 0.3 < len(own) / len(drawn) < 0.7


def test_capitals_stay_capitals() -> None:
    texts = [f"{a} {b}".upper() for a, b in people()]
    assert drawn_of(codec_of({"name": "name"}, name=texts), 100)["name"].str.isupper().all()


def test_two_people_of_a_row_are_two() -> None:
    buyers, sellers = people(), people()[::-1]
    codec = codec_of(
        buyer_name=[" ".join(pair) for pair in buyers],
        seller_name=[" ".join(pair) for pair in sellers],
        buyer_email=[f"{a}.{b}@web.de".lower() for a, b in buyers],
    )
    drawn = drawn_of(codec)
    assert (drawn["buyer_name"] != drawn["seller_name"]).all()
    of_buyer = drawn["buyer_name"].str.lower().str.replace(" ", ".")
    assert (_stems(drawn["buyer_email"]) == of_buyer).all()


@pytest.mark.parametrize(
    "pattern", ["{0}.{1}", "{0[0]}{1}", "{1}-{0}", "{0}_{1[0]}", "{0}{2:02d}", "{0}{1}"]
)
def test_e_mails_are_formed_as_the_tables_and_unique(pattern: str) -> None:
    found = people()
    mails = [
        f"{pattern.format(a, b, i)}@mail.org".lower()
        for i, (a, b) in enumerate((re.sub(r"\W", "", x), re.sub(r"\W", "", y)) for x, y in found)
    ]
    unique = [mail if mails.index(mail) == i else f"{i}{mail}" for i, mail in enumerate(mails)]
    codec = codec_of(**split(found), email=unique)
    drawn = drawn_of(codec, 20_000)
    assert drawn["email"].is_unique
    first, last = (drawn[c].str.lower().str.replace(r"\W", "", regex=True) for c in split(found))
    stems = _stems(drawn["email"])
    wanted = [re.sub(r"\d+$", "", pattern.format(*row, 0)) for row in zip(first, last, strict=True)]
    assert (stems == wanted).mean() > 0.99
    assert not set(drawn["email"]) & set(unique)


def test_e_mails_are_unique_beyond_the_pairs_of_names() -> None:
    mails = [f"{a}.{b}@web.de".lower() for a, b in people(2000)]
    drawn = drawn_of(codec_of(email=mails), 1_000_000)["email"]
    assert drawn.is_unique


def test_umlauts_are_spelled_as_the_tables() -> None:
    found = [(a, b) for a, b in people(3000, "de_DE") if re.search("[äöüß]", a + b)]
    transliterated = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})
    mails = [f"{a}.{b}@web.de".lower().translate(transliterated) for a, b in found]
    drawn = drawn_of(codec_of(**split(found), email=mails), 5000)
    with_umlaut = drawn[drawn["last_name"].str.contains("ü")]
    assert with_umlaut["email"].str.contains("ue").all()


def test_e_mails_shun_a_reserved_domain_that_the_table_uses() -> None:
    for own, drawn in (
        (["example.org", "EXAMPLE.net"], {"example.com"}),
        (["example.org", "example.net", "example.com"], {"mail1.example"}),
    ):
        codec = codec_of(email=[f"u{i}.a@{own[i % len(own)]}" for i in range(300)])
        assert set(drawn_of(codec)["email"].str.rpartition("@")[2]) == drawn


def test_ibans_and_cards_have_their_check_digits_and_none_is_the_tables() -> None:
    draw = np.random.default_rng(1)
    numbers = ["".join(map(str, draw.integers(0, 10, 18))) for _ in range(400)]
    ibans = [with_check_digits(f"DE00{n}", PersonalKind.IBAN) for n in numbers]
    spaced = [" ".join(iban[i : i + 4] for i in range(0, 22, 4)) for iban in ibans]
    cards = [with_check_digits(f"4{n[:14]}0", PersonalKind.CARD) for n in numbers]
    drawn = drawn_of(codec_of(iban=ibans, spaced=spaced, card=cards), 20_000)
    assert all(map(is_iban, drawn["iban"]))
    assert drawn["iban"].str.startswith("DE").all()
    assert drawn["spaced"].str.fullmatch(r"DE\d\d( \d{4}){4} \d\d").all()
    assert drawn["card"].astype(str).map(is_card).all()
    for name, originals in (("iban", ibans), ("spaced", spaced), ("card", cards)):
        assert drawn[name].is_unique
        assert not set(drawn[name].astype(str)) & set(originals)


def test_cards_that_are_numbers_stay_numbers() -> None:
    texts = [
        with_check_digits(f"51{i * 7919 % 10**13:013d}0", PersonalKind.CARD) for i in range(90)
    ]
    table = pd.DataFrame({"card": pd.Series(texts).astype("int64"), "n": np.arange(90) % 7})
    schema = infer_schema(table, rules=False).schema
    assert schema["card"].personal is PersonalKind.CARD
    drawn = drawn_of(TableCodec.fit(parse_table(table, schema), schema))["card"]
    assert drawn.dtype == "int64"
    assert drawn.astype(str).map(is_card).all()


@pytest.mark.parametrize("form", ["{} {} {}", "{}{}{}", "{}-{}-{}", "00{} {} {}", "({}) {} {}"])
def test_phone_numbers_have_country_codes_of_the_table_with_their_shares(form: str) -> None:
    random, shares = np.random.default_rng(0), {"+33": 0.5, "+41": 0.3, "+48": 0.15, "+1": 0.05}
    codes = random.choice([*shares], 800, p=[*shares.values()])
    codes = [code.strip("+") if form.startswith("00") else code for code in codes]
    local = [(random.integers(150, 799), random.integers(10**6, 10**7)) for _ in codes]
    texts = [form.format(code, *number) for code, number in zip(codes, local, strict=True)]
    drawn = drawn_of(codec_of(phone=texts), 4000)["phone"]
    for code, share in shares.items():
        start = form.partition("}")[0].replace("{", code.strip("+") if "00" in form else code)
        assert abs(drawn.str.startswith(start).mean() - share) < 0.05
    assert not set(drawn) & set(texts)


def test_area_codes_that_recur_are_those_of_the_table() -> None:
    random = np.random.default_rng(0)
    areas = random.choice(["030", "089", "0221"], 600, p=[0.6, 0.3, 0.1])
    texts = [f"{area} {random.integers(10**6, 10**7)}" for area in areas]
    drawn = drawn_of(codec_of(phone=texts), 2000)["phone"].str.split(" ").str[0]
    found = drawn.value_counts(normalize=True)
    assert set(found.index) == {"030", "089", "0221"}
    assert abs(found["030"] - (areas == "030").mean()) < 0.03


def test_a_country_determines_the_country_code() -> None:
    random, codes = np.random.default_rng(0), {"DE": "+49", "CH": "+41", "FR": "+33"}
    country = random.choice([*codes], 600)
    texts = [
        f"{codes[place]} {random.integers(150, 799)} {10**6 + 7 * i}"
        for i, place in enumerate(country)
    ]
    table = pd.DataFrame({"phone": texts, "country": country})
    schema = infer_schema(table, rules=False).schema
    codec = TableCodec.fit(parse_table(table, schema), schema)
    cells = pd.DataFrame({"country": random.choice([*codes], 300)})
    drawn = codec.decode(codec.encode(cells), 0, 1)
    assert (drawn["phone"].str[:3] == drawn["country"].map(codes)).all()
    assert not set(drawn["phone"]) & set(texts)


def test_phone_numbers_keep_each_form_and_its_share() -> None:
    draw = np.random.default_rng(1)
    forms = ["+49 (0)30 #######", "0171-#######", "030/######"]
    texts = []
    for i in range(900):
        digits = iter(draw.integers(1, 10, 9).astype(str))
        form = forms[0] if i % 2 else forms[1 + i % 4 // 2]
        texts.append("".join(next(digits) if c == "#" else c for c in form))
    drawn = drawn_of(codec_of(phone=texts), 5000)["phone"]
    shares = [drawn.str.fullmatch(re.escape(f).replace(r"\#", r"\d")).mean() for f in forms]
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.02)
    assert drawn.is_unique
    assert not set(drawn) & set(texts)


def test_ip_addresses_are_of_reserved_ranges_that_no_original_is_of() -> None:
    few = [f"10.0.{i % 200}.{i % 250}" for i in range(150)]
    many = [f"192.0.2.{i}" for i in range(100)] + [f"8.8.{i}.1" for i in range(200)]
    six = [f"2001:db8::{i:x}" for i in range(1, 300)]
    assert (
        drawn_of(codec_of(ip=few))["ip"].str.match(r"(192\.0\.2|198\.51\.100|203\.0\.113)\.").all()
    )
    assert drawn_of(codec_of(ip=many))["ip"].str.match(r"198\.1[89]\.").all()
    drawn = drawn_of(codec_of(ip=six))["ip"]
    assert drawn.str.startswith("3fff:").all()
    assert all(ip_of(text) is not None for text in drawn)


def test_a_table_with_an_address_of_every_reserved_range_is_refused() -> None:
    every = ["192.0.2.1", "198.18.0.1", *(f"{i}.200.1.1" for i in range(240, 255))]
    with pytest.raises(TableError, match="column 'ip' has IP addresses in all reserved ranges"):
        codec_of(ip=every)


def test_urls_have_the_tables_form_under_a_reserved_ending() -> None:
    urls = [f"https://www.shop{i}.com/" for i in range(100)]
    drawn = drawn_of(codec_of(url=urls))["url"]
    assert drawn.str.fullmatch(r"https://www\.[a-z]+\d*\.example/").all()
    assert drawn.is_unique
    other = drawn_of(codec_of(url=[f"http://a{i}.example/me" for i in range(100)]))["url"]
    assert other.str.fullmatch(r"http://[a-z]+\d*\.test/[a-z]+").all()


def test_streets_have_their_number_where_the_tables_have_it() -> None:
    before = [f"{i} {b} Avenue" for i, (_, b) in enumerate(people())]
    behind = [f"{b}straße {i}" for i, (_, b) in enumerate(people(400, "de_DE"))]
    drawn = drawn_of(codec_of(street=before, strasse=behind))
    assert drawn["street"].str.fullmatch(r"\d+ \D+").all()
    assert drawn["strasse"].str.fullmatch(r"\D+ \d+").all()
    assert not set(drawn["street"]) & set(before)


def test_addresses_that_all_stand_in_the_table_get_wider_numbers() -> None:
    codec = codec_of({"street": "street"}, street=[f"Main Street {i}" for i in range(300)])
    [(_, document)] = [(c, codec.to_json()["columns"][c]) for c in ["street"]]
    again = [place.replace("0", "1") for place in document["places"]]
    other = codec_of({"street": "street"}, street=again)
    drawn = drawn_of(other)["street"]
    assert not set(drawn) & set(again)


def test_blank_cells_keep_their_share() -> None:
    mails = [f"a{i}.b@web.de" if i % 5 else "" for i in range(1000)]
    drawn = drawn_of(codec_of(email=mails), 10_000)["email"]
    assert drawn.isna().mean() == pytest.approx(0.2, abs=0.002)


def test_where_all_pairs_of_names_are_taken_identities_have_two_last_names() -> None:
    names = names_of("ja_JP")
    every = np.arange(names.n_pairs, dtype=np.uint64)
    found: list[tuple[str, str]] = []
    for sex, _, first, last in names.split(every):
        found += zip(sex.first[first], sex.last[last], strict=True)
    texts = [f"{b} {a}" for a, b in found]
    drawn = drawn_of(codec_of(氏名=texts), 500)["氏名"]
    assert not set(drawn) & set(texts)


def test_every_locale_has_names_and_letters_for_them() -> None:
    for locale in locales():
        names = names_of(locale)
        assert names.n_pairs >= 100
        for sex in names.sexes:
            assert re.fullmatch("[a-z]+", names.ascii(str(sex.first[0])))
            assert re.fullmatch("[a-z]+", names.ascii(str(sex.last[-1])))
