"""Detects columns with personal data, by their cells and names.

The cells alone identify kinds that have a form or check digits: e-mail addresses, URLs, IP
addresses, IBANs, card numbers, phone numbers with country codes, and tax numbers. A column has tax
numbers if its cells pass a country's check, and random rearrangements of their digits fail it.
Names of people are looked up in the lists of the package Faker, for all its locales. Ambiguous
cells, such as user names, are personal only if the column's name suggests it; a column name such as
`city` or `brand` excludes names of people.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from gcvae.cells.distinct_cells import Cells
from gcvae.codec.check_digits import is_card, is_iban
from gcvae.codec.name_forms import names_in, read_name
from gcvae.codec.name_lists import NameList, names_of
from gcvae.codec.people import best_locales
from gcvae.codec.personal import ip_of
from gcvae.schema.columns import Draft
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.personal import PersonalKind

_LOOKED_AT = 1_000
"""Maximum number of distinct texts that are checked."""
_NEARLY_ALL = 0.9
"""Minimum share of texts that match a kind of personal data, if the cells alone decide."""
_MOSTLY = 0.8
"""Minimum share of matching texts if the column's name suggests the kind, and for full names."""
_LISTED = 0.3
"""Minimum share of texts in the incomplete lists of names if the column's name suggests names."""
_LIKELY = 0.6
"""Minimum share of texts in these lists if the column's name is ambiguous, or if names of other
columns suggest names of people."""
_FEWEST = 10
"""Minimum number of distinct texts if the cells alone decide."""
_FEWEST_NAMED = 3
_FEWEST_SINGLE = 20
"""Minimum number of distinct first or last names, or tax numbers, if the cells alone decide."""
_MOST_LOCALES = 4
_LEAST_ADDED = 0.1
"""Minimum share of a column's full names that each locale after the best one must add."""
_MOST_CHARACTERS = 200
_MOST_WORDS = 5
"""Maximum number of words of a name."""
_LEAST_DISTINCT = 0.2
"""Minimum number of distinct user names per row."""
_MOST_BY_CHANCE = 0.25
"""Maximum share of tax numbers with rearranged digits that pass a country's check."""


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("\n", ""), re.IGNORECASE)


_E = r"(?![^\W\d_])"  # no letter follows
_B = r"(?<![^\W\d_])"  # no letter before
_KIND_PATTERNS: dict[PersonalKind, re.Pattern[str]] = {
    PersonalKind.FIRST_NAME: _pattern(
        r"first.?name|given.?name|fore.?name|middle.?name|vorname|rufname|pr[ée]nom|primer.?nombre"
        r"|nombre.?de.?pila|nome.?(proprio|di.?battesimo)|primeiro.?nome|voornaam|roepnaam|f[öo]rnamn"
        r"|fornavn|etunimi|imi(ę|e|ona)$|křestní|prenume|keresztn[ée]v|ut[óo]n[ée]v|nama.?depan|\bfname"
        rf"|{_B}имя$|имя.?(клиент|сотрудн|пользов)|отчество|^名$|名前.?名|^名字$|الاسم.?الأول|^[οό]νομα$"
        r"|पहला.?नाम|^ім.?я$"
    ),
    PersonalKind.LAST_NAME: _pattern(
        r"last.?name|sur.?name|family.?name|maiden.?name|nachname|familienname|geburtsname"
        r"|nom.?de.?famille|nume.?de.?familie|apellido|cognom|sobrenome|apelido|achternaam|familienaam"
        r"|efternamn|etternavn|efternavn|sukunimi|nazwisko|p[řr][íi]jmen[íi]|vezet[ée]kn[ée]v|soyad|soyisim|nama.?belakang|\blname"
        r"|фамилия|прізвище|^姓$|^姓氏$|苗字|名字.?姓|^성$|اسم.?العائلة|اللقب|^επώνυμο|επίθετο|उपनाम"
    ),
    PersonalKind.NAME: _pattern(
        r"full.?name|(customer|client|patient|employee|person|contact|user|member|owner|author|student"
        r"|teacher|doctor|driver|passenger|guest|buyer|seller|agent|manager|recipient|sender|holder"
        r"|signer|subscriber|applicant|insured|tenant).?name|card.?holder|inhaber"
        r"|(kunden|mitarbeiter|patienten|ansprech).{0,8}name|^name|nom.?complet|nom.?(et.?)?pr[ée]nom"
        r"|pr[ée]noms?.?(et.?)?nom$"
        r"|nombres?.?(completo|y.?ap)|apellidos?.?(y.?)?nombre|nome.?(complet|e.?(cog|sobre))|nominativo"
        r"|cognome.?(e.?)?nome|imi[eę].?i?.?nazwisko|nazwisko.?i?.?imi|volledige.?naam|nama.?lengkap"
        r"|ad.?soyad|ф\.?и\.?о\.?$|полное.?имя|имя.?и.?фамилия|姓名|氏名|お?名前|성명|성함|الاسم.?الكامل"
        r"|^الاسم$|ονοματεπώνυμο|पूरा.?नाम|họ.?(và.?)?tên"
    ),
    PersonalKind.EMAIL: _pattern(r"e.?mail|courriel|correo|почта|邮箱|电子邮件|メール|بريد"),
    PersonalKind.PHONE: _pattern(
        rf"phone|mobile|{_B}(tel|cell|fax|gsm|handy){_E}|telefon|t[ée]l[ée]fono|t[ée]l[ée]ph|portable"
        r"|rufnummer|телефон|мобильн|电话|手机|電話|携帯|هاتف|جوال|τηλ|κινητό"
    ),
    PersonalKind.STREET: _pattern(
        rf"street|stra(ss|ß)e|{_B}(rue|calle|via|rua|addr|str){_E}|address|adress|direcci[óo]n"
        r"|indirizzo|endere[çc]o|улица|адрес|街道|地址|住所|番地|عنوان|شارع|οδός|διεύθυνση|anschrift"
    ),
    PersonalKind.TAX_ID: _pattern(
        rf"{_B}(ssn|tin|itin|nin|nino|sin|nif|nie|dni|cpf|bsn|nir|insee|pesel|curp|rfc|pan|aadhaar"
        rf"|cnp|oib|egn|svnr|ahv){_E}|social.?sec|national.?id|tax.?(id|no|num)|passport|reisepass"
        r"|steuer.{0,6}(nr|num|id)|sozialvers|personalausweis|s[ée]curit[ée].?soc|n.?ss$|инн|снилс"
        r"|паспорт|身份证|身分證|マイナンバー|الهوية|αφμ|αμκα|codice.?fiscale|personnummer"
    ),
    PersonalKind.USERNAME: _pattern(
        rf"user.?name|{_B}(login|nick|handle|user){_E}|screen.?name|nickname|benutzer.?(name|kennung)"
        r"|anmeldename|identifiant|usuario|utente|логин|имя.?пользователя|用户名|用戶名|ユーザ|اسم.?المستخدم"
        r"|όνομα.?χρήστη"
    ),
    PersonalKind.BIRTH_DATE: _pattern(
        rf"birth|{_B}dob{_E}|geburt|naissance|nacimiento|nascita|nascimento|geboorte|рожд|出生|生年月日"
        r"|誕生日?|生日|ميلاد|γέννησ"
    ),
}  # fmt: skip
_ANY_NAME_PATTERN = _pattern(
    rf"{_B}(nom(bre|e)?s?|name|naam|na[mv]n|nama|nimi|ad[ıi]?|isim|jm[ée]no|meno|nume|n[ée]v|이름|नाम|নাম"
    rf"|tên|имя|ім.?я|imi[ęe]|ime|[οό]νομα|名字){_E}"
)
"""Ambiguous words for a name, which may be of a person, product or place, and be first or full."""
_NO_PERSON_PATTERN = _pattern(
    r"city|town|village|place|stadt|ort$|ville|commune|ciudad|citt[àa]|cidade|город|населенн|城市|市区"
    r"|都市|市町村|مدينة|πόλη|country|land$|pays|pa[íi]s|paese|страна|国|国家|بلد|χώρα|state|region|province|county"
    r"|product|produkt|produit|producto|item|article|artikel|товар|продукт|产品|商品|منتج|προϊόν"
    r"|company|firma|employer|arbeitgeber|entreprise|soci[ée]t[ée]|empresa|azienda|компания|公司|会社|شركة"
    r"|εταιρ|organi[sz]ation|brand|make|model|marke|marque|marca|бренд|品牌|ブランド|علامة|store|shop|branch"
    r"|filiale|colou?r|farbe|couleur|цвет|颜色|色|لون|χρώμα|day|month|tag$|monat|jour|mois|день|месяц|曜日"
    r"|species|breed|title|genre|category|categor|kategor|type|status|job|position|beruf|m[ée]tier"
    r"|профессия|должность|职|職|وظيفة|επάγγελμα|department|abteilung|team|school|university|hospital"
    r"|street|stra(ss|ß)e|rue|language|sprache|langue|word|tag|label|server|host"
)
_PERSON_PATTERN = _pattern(
    r"manager|agent|sales.?(rep|person)|doctor|author|owner|customer|client|patient|employee|teacher"
    r"|student|driver|person|contact|kunde|mitarbeiter|verk[äa]ufer|клиент|сотрудник|менеджер|客户|顧客|担当"
    r"|عميل|موظف|πελάτης|υπάλληλος|assignee|reporter|supervisor|officer|nurse|passenger|pa[cz]ient|emplead|dipendent|funcion[áa]ri"
    r"|alumn|aluno|studente|titular|klient|pracownik|klant|medewerk|müşteri|pelanggan|고객|ग्राहक"
)
_OTHER_NUMBER_PATTERN = _pattern(
    r"account|konto|compte|cuenta|conto|conta|rekening|konta|contract|vertrag|contrat|policy|police|polic"
    r"|p[óo]liza|polizza|order|auftrag|bestell|commande|pedido|ordine|invoice|rechnung|facture|factura"
    r"|fattura|fatura|faktur|article|artikel|art[íi]culo|articolo|product|produ[kc]t|item|sku|serial|batch"
    rf"|charge|booking|buchung|ticket|claim|case|akten|customer.?(no|num|id)|kunden.?(nr|nummer)|{_B}(ref"
    rf"|iban|ean|isbn|zip|plz|po|code|id){_E}|reference|referenz|договор|счет|заказ|артикул|订单|合同|账户|注文"
)
"""Words for other numbers, which may have the form of phone numbers by chance."""
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")
_URL = re.compile(r"(https?://|www\.)[^\s/]+\.[^\s]+|https?://\S+", re.IGNORECASE)
_PHONE = re.compile(r"\(?\+?\d[\d\s().\-/]*(\s*(x|ext\.?)\s*\d+)?", re.IGNORECASE)
_PHONE_FORM = re.compile(
    r"\+\d[\d\s().\-/x]{7,}|00[1-9]\d*[\s().\-/][\d\s().\-/x]{6,}|\(\+?\d{1,5}\)[\d\s.\-/x]{5,}|\d{3}[-.]\d{3}[-.]\d{4}(x\d+)?"
    r"|(?!.*/(19|20)\d\d$)(?=(\D*\d){9})0[1-9]\d{0,3}([\s/-]\d{2,}){1,5}|8[\s(-]+\d{3}[\s)-]+\d{3}[\s-]?\d\d[\s-]?\d\d|1[3-9]\d{9}"
)
_PLACE_WITHOUT_SIGN = re.compile(r"[都道府県省市区郡县區縣].*(\d{6}$|[都道府県市区郡町村].*\d)|^〒")
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")
_USER = re.compile(r"[^\W\d_][\w.\-]{1,39}")
_STREET = _pattern(
    r"stra(ss|ß)e|str\.|\bstreet|\bave(nue)?\b|\broad\b|\bdrive\b|\blane\b|\bboulevard\b|\brue\b|\bcalle\b"
    r"|\bvia\b|platz|gasse|weg\b|\bул\.|\bпер\.|\bпр\.|\bнаб\.|街|路|丁目|番地|οδός|شارع"
)


class DetectedPersonal(NamedTuple):
    """Kind of personal data that was detected in a column, and the reason as a text."""

    kind: PersonalKind
    reason: str


def find_personal(cells: Cells, draft: Draft, names: Iterable[str] = ()) -> DetectedPersonal | None:
    """Returns the kind of personal data in a column and the reason; None if there is none.

    `cells` are those that are not missing. If the user specified `personal` in `draft`, that value
    decides. Otherwise a column has no personal data if `draft` contains levels, limits, a format,
    or a kind that is not identifier.

    `names` are the column names of the table: if one of them suggests last names and none suggests
    first names, other columns are likely to contain first names, and vice versa.
    """
    said = draft.get("personal")
    if said is not None:
        return DetectedPersonal(said, "the schema says so") if said else None
    if {"levels", "datetime_format", "minimum", "maximum", "number_format"} & set(draft):
        return None
    if cells.source not in ("text", "integer") or not len(cells.texts):
        return None
    if draft.get("kind") not in (None, ColumnKind.IDENTIFIER):
        return None
    if cells.source == "text" and cells.inferred_date_format is not None:
        return None
    found = next(_detected_kinds(_Column(cells, names)), None)
    return found and DetectedPersonal(*found)


def is_birth_date_name(name: str) -> bool:
    """Returns whether a column's name suggests that it contains dates of birth."""
    return _KIND_PATTERNS[PersonalKind.BIRTH_DATE].search(name) is not None


class _Column:
    """Name and a sample of the distinct texts of a column."""

    def __init__(self, cells: Cells, names: Iterable[str] = ()) -> None:
        self.name = _split(cells.name)
        others = [_split(name) for name in names if name != cells.name]
        self.missing_part = _part_missing_beside(others)
        self.is_text = cells.source == "text"
        self.texts: list[str] = [
            text for text in cells.stripped.slice(0, _LOOKED_AT).to_pylist() if text
        ]
        self.distinct_per_row = len(cells.texts) / max(int(cells.counts.sum()), 1)

    def is_named_like(self, kind: PersonalKind) -> bool:
        return kind in _KIND_PATTERNS and _KIND_PATTERNS[kind].search(self.name) is not None

    def share(self, is_so: Callable[[str], Any]) -> float:
        """Returns the share of the distinct texts for which `is_so` is true; 0 if it is true for
        less than a fifth of the first 40, to save time."""
        few = self.texts[:40]
        if sum(bool(is_so(text)) for text in few) < 0.2 * len(few):
            return 0.0
        return sum(bool(is_so(text)) for text in self.texts) / max(len(self.texts), 1)


def _split(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)


def _part_missing_beside(names: Sequence[str]) -> PersonalKind | None:
    """Returns FIRST_NAME if the column names suggest last names only, LAST_NAME if they suggest
    first names only, and None if they suggest both or neither."""
    parts = PersonalKind.FIRST_NAME, PersonalKind.LAST_NAME
    missing = [kind for kind in parts if not any(map(_KIND_PATTERNS[kind].search, names))]
    return missing[0] if len(missing) == 1 else None


def _detected_kinds(column: _Column) -> Iterator[tuple[PersonalKind, str]]:
    """Yields (kind, reason) for each kind of personal data that matches, the most certain first."""
    enough = len(column.texts) >= _FEWEST
    if column.is_text:
        for kind, is_so, form in _FORMS:
            least = _FEWEST_NAMED if kind in _SURE or column.is_named_like(kind) else _FEWEST
            share = column.share(is_so) if len(column.texts) >= least else 0.0
            if share >= _NEARLY_ALL:
                yield kind, f"{_percent(share)} of its texts are {form}"
    elif enough and column.share(is_card) == 1.0:
        yield PersonalKind.CARD, "all its numbers pass the check of card numbers"
    yield from _detected_numbers(column)
    if not column.is_text or column.share(_has_letters) < _MOSTLY:
        return
    yield from _detected_places(column)
    yield from _detected_names(column)
    is_distinct = column.distinct_per_row >= _LEAST_DISTINCT and len(column.texts) >= _FEWEST_NAMED
    are_users = (
        column.is_named_like(PersonalKind.USERNAME) and column.share(_USER.fullmatch) >= _MOSTLY
    )
    if is_distinct and are_users:
        yield PersonalKind.USERNAME, f"its name says so ({column.name})"


def _is_ip(text: str) -> bool:
    return ("." in text or ":" in text) and ip_of(text) is not None


_FORMS: tuple[tuple[PersonalKind, Callable[[str], Any], str], ...] = (
    (PersonalKind.EMAIL, _EMAIL.fullmatch, "e-mail addresses"),
    (PersonalKind.URL, _URL.fullmatch, "addresses of the web"),
    (PersonalKind.IBAN, is_iban, "IBANs with their check digits"),
    (PersonalKind.IP, _is_ip, "IP addresses"),
    (PersonalKind.CARD, is_card, "card numbers with their check digit"),
)
_SURE = PersonalKind.EMAIL, PersonalKind.URL, PersonalKind.IBAN


def _detected_numbers(column: _Column) -> Iterator[tuple[PersonalKind, str]]:
    """Yields (kind, reason) if the column contains phone numbers or tax numbers."""
    enough = len(column.texts) >= _FEWEST
    named = f"its name says so ({column.name})"
    digits = ((PersonalKind.PHONE, _is_phone), (PersonalKind.TAX_ID, _is_number))
    for kind, is_so in digits if len(column.texts) >= _FEWEST_NAMED else ():
        if column.is_named_like(kind) and column.share(is_so) >= _MOSTLY:
            yield kind, f"{named}, and its cells have digits like them"
    if not enough:
        return
    is_number_of_else = _OTHER_NUMBER_PATTERN.search(column.name) and not column.is_named_like(
        PersonalKind.PHONE
    )
    share = 0.0 if is_number_of_else else column.share(_is_phone)
    if share >= _NEARLY_ALL and column.share(_PHONE_FORM.fullmatch) >= _LISTED:
        yield PersonalKind.PHONE, f"{_percent(share)} of its texts have the form of phone numbers"
    country = _country_of_tax_ids(column) if len(column.texts) >= _FEWEST_SINGLE else None
    if country is not None:
        yield PersonalKind.TAX_ID, f"its texts pass the check of {country}"


def _is_phone(text: str) -> bool:
    if _DATE.fullmatch(text):
        return False
    return 6 <= sum(map(str.isdigit, text)) <= 20 and _PHONE.fullmatch(text) is not None


def _is_number(text: str) -> bool:
    n_digits = sum(map(str.isdigit, text))
    return 5 <= n_digits <= 20 and 2 * n_digits >= len(text)


def _has_letters(text: str) -> bool:
    return len(text) <= _MOST_CHARACTERS and any(map(str.isalpha, text))


@cache
def _tax_ids() -> tuple[tuple[str, Callable[[str], bool]], ...]:
    """Returns pairs (name of a country's personal tax number, function that checks a number)."""
    from stdnum.br import cpf
    from stdnum.cn import ric
    from stdnum.cz import rc
    from stdnum.de import idnr
    from stdnum.es import dni, nie
    from stdnum.fi import hetu
    from stdnum.fr import nir
    from stdnum.gr import amka
    from stdnum.it import codicefiscale
    from stdnum.jp import in_
    from stdnum.kr import rrn
    from stdnum.nl import bsn
    from stdnum.pl import pesel
    from stdnum.ru import inn
    from stdnum.se import personnummer
    from stdnum.us import ssn

    modules = (cpf, ric, rc, idnr, dni, nie, hetu, nir, amka, codicefiscale, in_, rrn, bsn, pesel,
               inn, personnummer, ssn)  # fmt: skip
    return tuple((m.__name__.removeprefix("stdnum."), m.is_valid) for m in modules)


def _country_of_tax_ids(column: _Column) -> str | None:
    """Returns the name of a country's tax number if nearly all texts pass its check, but hardly any
    after its characters were put in random order, because some checks accept any number. Else
    None."""
    if column.share(_is_number) < _NEARLY_ALL:
        return None
    draw = random.Random(0)
    exchanged = ["".join(draw.sample(text, len(text))) for text in column.texts[:200]]
    for name, is_valid in _tax_ids():
        if column.share(is_valid) >= _NEARLY_ALL:
            by_chance = sum(map(is_valid, exchanged)) / len(exchanged)
            if by_chance <= _MOST_BY_CHANCE:
                return str(name)
    return None


def _detected_places(column: _Column) -> Iterator[tuple[PersonalKind, str]]:
    """Yields (kind, reason) if the column contains streets or postal addresses."""
    if len(column.texts) < _FEWEST_NAMED or column.share(_EMAIL.fullmatch) > 0.5:
        return
    has_code = column.share(_is_whole_address)
    by_name = column.is_named_like(PersonalKind.STREET)
    with_number = column.share(lambda text: re.search(r"\d", text) and _STREET.search(text))
    if by_name and re.search(r"type|kind|art$", column.name, re.IGNORECASE):
        return
    if by_name and has_code >= _MOSTLY:
        yield PersonalKind.POSTAL_ADDRESS, f"its name says so ({column.name})"
    elif by_name and column.share(lambda text: len(text) > 3) >= _MOSTLY:
        if len(column.texts) >= _FEWEST:
            yield PersonalKind.STREET, f"its name says so ({column.name})"
    elif column.share(_is_address_by_form) >= _NEARLY_ALL and len(column.texts) >= _FEWEST:
        yield PersonalKind.POSTAL_ADDRESS, "its texts have streets, numbers and postal codes"
    elif with_number >= _NEARLY_ALL and len(column.texts) >= _FEWEST_SINGLE:
        kind = PersonalKind.POSTAL_ADDRESS if has_code >= _MOSTLY else PersonalKind.STREET
        yield kind, f"{_percent(with_number)} of its texts are like {kind.plural}"


def _is_whole_address(text: str) -> bool:
    """Returns whether a text may be an address with street and town: it has three or more parts
    between commas or line breaks, two parts and three consecutive digits, or one part in the form
    of an East Asian address."""
    parts = [part for part in re.split(r"\n|, ?", text) if part.strip()]
    if len(parts) > 1:
        return re.search(r"\d{3}", text) is not None or len(parts) > 2
    return _PLACE_WITHOUT_SIGN.search(text) is not None


def _is_address_by_form(text: str) -> bool:
    """Returns whether a text is an address by its form alone: it contains four digits in a row, as
    postal codes do, and several lines or more than two parts between commas, at least two of them
    with digits. Or it has one part in the form of an East Asian address."""
    parts = [part for part in re.split(r"\n|, ?", text) if part.strip()]
    n_numbers = sum(re.search(r"\d", part) is not None for part in parts)
    is_split = "\n" in text or (len(parts) > 2 and n_numbers > 1)
    has_code = re.search(r"\d{3} ?\d", text) is not None
    return (is_split and has_code) or (
        len(parts) == 1 and _PLACE_WITHOUT_SIGN.search(text) is not None
    )


def _detected_names(column: _Column) -> Iterator[tuple[PersonalKind, str]]:
    """Yields (kind, reason) if the column contains full, first or last names of people."""
    named_kinds = [kind for kind in _OF_NAMES if column.is_named_like(kind)]
    is_other = _NO_PERSON_PATTERN.search(column.name) is not None
    if (is_other and not named_kinds) or len(column.texts) < _FEWEST_NAMED:
        return
    if column.share(_is_like_name) < _MOSTLY:
        return
    of_person = _PERSON_PATTERN.search(column.name) is not None
    word = _ANY_NAME_PATTERN.search(column.name)
    may_be_name = word is not None and (of_person or word[0] == column.name)
    ranked = best_locales(column.texts[:300])[:_MOST_LOCALES]
    shares = {kind: _best(ranked, kind, column) for kind in _OF_NAMES}
    full, *parts = (shares[kind][0] for kind in _OF_NAMES)
    if may_be_name and full >= _LIKELY and full > max(parts):
        named_kinds = [PersonalKind.NAME]
    elif may_be_name and not named_kinds and column.missing_part is not None:
        named_kinds = [column.missing_part]
    are_words = column.share(_is_of_words) >= _MOSTLY and (
        len(column.texts) >= _FEWEST or column.share(_ends_in_name) >= _MOSTLY
    )
    firsts = frozenset[str]().union(*(names_of(locale).first_names for _, locale in ranked))
    for kind in named_kinds:
        share, locale = shares[kind]
        is_single = kind is not PersonalKind.NAME
        are_names = is_single or column.share(lambda text: _has_first(text, firsts)) >= _LIKELY
        if share >= _LISTED or (not is_other and are_words and are_names):
            listed = f", and {_percent(share)} of its texts are in the lists of {locale}"
            yield kind, f"its name says so ({column.name})" + (listed if share >= _LISTED else "")
            return
    suggests_person = bool(named_kinds) or may_be_name or of_person
    least = _FEWEST_NAMED if suggests_person else _FEWEST
    is_likely = may_be_name or column.missing_part is not None
    share, locale = shares[PersonalKind.NAME]
    if share >= (_LIKELY if is_likely else _MOSTLY) and len(column.texts) >= least:
        yield (
            PersonalKind.NAME,
            f"{_percent(share)} of its texts are names in the lists of {locale}",
        )
        return
    least = least if suggests_person else _FEWEST if is_likely else _FEWEST_SINGLE
    kind = max(_OF_NAMES[1:], key=lambda kind: shares[kind])
    share, locale = shares[kind]
    likely = _LIKELY if kind is PersonalKind.FIRST_NAME else _MOSTLY  # towns are last names
    if share >= (likely if is_likely else _NEARLY_ALL) and len(column.texts) >= least:
        yield kind, f"{_percent(share)} of its texts are in the lists of {locale}"


_OF_NAMES = PersonalKind.NAME, PersonalKind.FIRST_NAME, PersonalKind.LAST_NAME


def _is_like_name(text: str) -> bool:
    return len(text) <= 60 and not any(map(str.isdigit, text)) and any(map(str.isalpha, text))


def _is_of_words(text: str) -> bool:
    """Returns whether a text may be a name, such as "van der Berg", and not a sentence."""
    n_words = text.count(" ") + 1
    has_stops = re.search(r"[,;:!?/()]|[^\W\d_]{3}\.", text) is not None
    return n_words < 3 or (n_words <= _MOST_WORDS and not has_stops)


def _ends_in_name(text: str) -> bool:
    """Returns whether a text has at most two words or ends in a capitalised one; others are rather
    phrases than names."""
    words = text.split()
    return len(words) < 3 or words[-1][0].isupper()


def _has_first(text: str, firsts: frozenset[str]) -> bool:
    words = text.casefold().replace(",", " ").split()
    return len(words) > 1 and not firsts.isdisjoint((words[0], words[-1]))


def _best(
    ranked: Sequence[tuple[float, str]], kind: PersonalKind, column: _Column
) -> tuple[float, str]:
    """Returns (share of the texts in the name lists of the best locale, name of the locale).

    Because people of several countries may occur in a column of full names, further locales are
    added while each raises the share enough; the names are then separated by commas.
    """
    readers = {locale: _reader(names_of(locale), kind) for _, locale in ranked}
    shares = {locale: column.share(reader) for locale, reader in readers.items()}
    chosen = [max(shares, key=shares.__getitem__)]
    share = shares[chosen[0]]
    for locale in readers if kind is PersonalKind.NAME else ():
        joint = column.share(_any_of([readers[name] for name in (*chosen, locale)]))
        if joint >= share + _LEAST_ADDED:
            chosen, share = [*chosen, locale], joint
    return share, ", ".join(chosen)


def _any_of(readers: Sequence[Callable[[str], Any]]) -> Callable[[str], bool]:
    return lambda text: any(reader(text) for reader in readers)


def _reader(names: NameList, kind: PersonalKind) -> Callable[[str], Any]:
    if kind is PersonalKind.NAME:
        return lambda text: read_name(text, names)
    listed = names.first_names if kind is PersonalKind.FIRST_NAME else names.last_names
    if kind is PersonalKind.FIRST_NAME:
        listed = listed | names.middle_names
    return lambda text: names_in(text.casefold(), listed)


def _percent(share: float) -> str:
    return f"{share if share == 1.0 else min(share, 0.99):.0%}"


def personal_warning(found: DetectedPersonal) -> str:
    """Returns the warning that a column is treated as personal, and how to prevent it."""
    return (
        f"contains {found.kind.plural} ({found.reason}): its values are replaced by generated ones"
        ' in synthetic rows; "personal": false in the schema treats it like any other column'
    )
