"""Detects columns that identify rows: keys, e-mail addresses and other unique values.

Keys that are whole numbers are distinguished from quantities by two counts: pairs of rows with
equal numbers, and pairs with numbers that differ by one. For independent values with any
distribution p, the expected second count is at most twice the first, because sum p_v p_(v+1) <=
sum p_v². If many pairs differ by one and almost none are equal, each number was assigned once.
Numbers too sparse for this test are judged by the column's name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from scipy.special import pdtr

from gcvae.cells.distinct_cells import Cells
from gcvae.files.header_lines import is_unnamed
from gcvae.schema.columns import Column
from gcvae.spelling.number_text import are_whole

_ADDRESS = r"^[^@\s]+@[^@\s]+\.[^@\s]+$"
IDENTIFIER_SHARE = 0.9  # minimum number of distinct values per row of an identifier
IDENTIFIER_ROWS = 50  # with fewer rows, unique values also need the name or form of keys
FEWEST_NAMES = 3  # minimum number of distinct values of an identifier
FEWEST_DIGITS = 4  # minimum number of digits of a key, if its form decides
KEY_SPREAD = 4  # distinct whole numbers are keys if their range is below this times their number
YEARS = (1500, 2200)  # whole numbers in this range are treated as years, not as keys
EPOCH_SECONDS = (946_684_800, 2_051_222_400)  # start of 2000 and of 2035, in seconds since 1970
KEY_NAME = re.compile(
    r"(^|[_\W])(id|uuid|guid|key|idx|index|serial|row|rowid|row_?number)$|(?-i:[a-z](Id|ID)$)",
    re.IGNORECASE,
)
_NUMBER_NAME = re.compile(
    r"(^|[_\W\d])(no|n°|num|nbr|numer|núm)\.?$|(?-i:[a-z](No|Num|Nbr)$)"
    r"|(nr|number|nummer|numero|número|numéro|номер|번호|番号|番號|编号|編號|号码|號碼|رقم)\.?$"
    r"|^(номер|numero|número|numéro|n°|رقم)(?=[_\W])",
    re.IGNORECASE,
)
"""Matches names such as `order_no` and `Kundennummer` for columns of identifying numbers."""
_OWNERS = (
    r"invoice|rechnung|facture|factura|fattura|faktura|receipt|beleg|policy|police|póliza|полис"
    r"|contract|vertrag|contrat|contrato|договор|order|auftrag|bestell(ung)?|commande|pedido|заказ"
    r"|account|konto|compte|cuenta|счет|счёт|customer|kunde|client|cliente|клиент|patient|пациент"
    r"|member|mitglied|employee|ticket|claim|booking|buchung|transaction|passport|matricule"
    r"|订单|發票|发票|客户|合同|注文|顧客"
)
_OWNER_NAME = re.compile(
    rf"({_OWNERS}|code|código|код|barcode|phone|telefon)$|(^|[_\W])(ean|isbn|imei|ssn|upc)$",
    re.IGNORECASE,
)
"""Matches ambiguous column names such as `invoice`, which may mean an amount or an identifier."""
_RECORD_NAME = re.compile(
    rf"(^|[_\W]|(?<=[^\x00-\x7f]))({_OWNERS}|user|person|student|subscriber|case|akten?|mitarbeiter"
    r"|benutzer|ordine|utente|dipendente|usuario|empleado|пользовател|сотрудник|用户|会员|账户|患者|会員)"
    r"([a-zа-яё]{0,2}[_\W]*((?P<id>id|uuid|guid|key)|no|n°|num|nbr|nr|number|nummer|numero|número"
    r"|numéro|номер|번호|番号|番號|编号|編號|号码|號碼|zeichen)\.?|а|я)?$",
    re.IGNORECASE,
)
"""Matches column names of identifiers of persons, and of cases such as orders and contracts."""
_KEY_TEXT = re.compile(
    r"(?![^\w\s]?\d[\d.,' ]*(\s\D+|[^\w\s])?$)(?=.*\d)[\w./:#-]+( [A-Z\d./:#-]+)*"
)
"""Matches strings with digits, except amounts such as 12.50 or 7 EUR."""
FEWEST_KEYS = 20  # minimum number of distinct values of a recurring key
_LOOKED_AT = 1_000  # maximum number of distinct cells that are examined
_CODE_NAME = re.compile(r"code|código|код|zip|plz", re.IGNORECASE)
_ASSIGNED_ONCE_SHARE = 0.98  # minimum number of distinct values per row for `_are_assigned_once`
_CHANCE = 1e-6  # maximum probability that independent values have so few equal pairs
_APART = 8  # minimum ratio of pairs that differ by one to equal pairs; about 2 if independent
_AS_MANY = 0.5  # minimum ratio of adjacent numbers to those of randomly assigned numbers
_GROUP = 16  # number of consecutive values from which a local density is estimated
_MANY_DIGITS = 7  # numbers of equal length with at least this many digits are rarely quantities
_DATE_WIDTHS = (6, 8, 10, 12, 14)  # possible numbers of digits of a date such as 20240131
_DATE_PARTS = ((1, 12), (1, 31), (0, 23), (0, 59), (0, 59))  # limits of month, day, ..., second

KeyOrQuantity = Literal["keys", "quantities", "undecided"]
Values = npt.NDArray[Any]


def is_called_a_key(name: str) -> bool:
    """Returns whether a column is named like a key, such as `customer_id` or `Kundennummer`.

    Names of public codes, such as `zip_code`, are excluded.
    """
    name = unicodedata.normalize("NFKC", name).strip()
    if KEY_NAME.search(name) or _NUMBER_NAME.search(name):
        return True
    owner = _OWNER_NAME.search(name)
    if owner is None or _CODE_NAME.search(name):
        return False
    is_word_end = owner.start() > 0 and name[owner.start() - 1].isalpha()  # such as Acompte
    return not (is_word_end and name.isascii())


def match_record_name(name: str) -> re.Match[str] | None:
    """Returns a match if a column is named like the number of a person or of a case, such as
    `order_no`; else None. The group `id` is set if the name ends in "id", "key" or the like."""
    name = unicodedata.normalize("NFKC", name).strip()
    return _RECORD_NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))


def are_record_keys(name: str, texts: Sequence[str]) -> bool:
    """Returns whether a column contains keys of persons or of cases, such as customer numbers or
    order numbers, by its name (`match_record_name`) and the form of its distinct cells `texts`.

    Whole numbers are keys if the name ends in "id", "key" or the like, or if all have the same
    number of digits, at least four.
    """
    found, some = match_record_name(name), texts[:_LOOKED_AT]
    if found is None or len(texts) < FEWEST_KEYS:
        return False
    if all(map(str.isdecimal, some)):
        widths = {*map(len, some)}
        return found["id"] is not None or (len(widths) == 1 and min(widths) >= FEWEST_DIGITS)
    n_keys = sum(_KEY_TEXT.fullmatch(text) is not None for text in some)
    return n_keys >= IDENTIFIER_SHARE * len(some)


def is_modelled_record_key(column: Column, texts: Sequence[str]) -> bool:
    """Returns whether a column contains keys of persons or of cases that the model learns as levels
    or integers, so that synthetic rows may repeat real keys. `texts` are its distinct cells.
    Columns that the user declared not personal are excluded."""
    is_learned = column.kind.has_levels or column.kind.is_whole
    return is_learned and column.personal is not False and are_record_keys(column.name, texts)


def key_texts(keys: Cells) -> list[str]:
    """Returns the distinct cells of a column as strings; if all are whole numbers, they are written
    without decimals."""
    numbers = keys.numbers if keys.all_numbers else None
    if numbers is None or not are_whole(keys.numerals).all():
        return keys.stripped.to_pylist()  # type: ignore[no-any-return]
    return numbers.astype(np.int64).astype(str).tolist()  # type: ignore[no-any-return]


def are_row_identifiers(cells: Cells) -> bool:
    """Returns whether the cells of a text column identify rows, as keys and e-mail addresses do.

    `cells` are those that are not missing. Among 50 or more rows, at least 90 % of the cells must
    be distinct; among fewer rows, all cells must be distinct, and the column's name or the form of
    the cells must be like a key's.
    """
    n_rows, n_levels = int(cells.counts.sum()), len(cells.texts)
    if n_rows >= IDENTIFIER_ROWS:
        return n_levels >= IDENTIFIER_SHARE * n_rows
    if n_levels < max(n_rows, FEWEST_NAMES):
        return False
    if KEY_NAME.search(cells.name):
        return True
    if pc.all(pc.match_substring_regex(cells.stripped, _ADDRESS)).as_py():
        return True
    forms = pc.unique(pc.replace_substring_regex(cells.stripped, "[0-9]", "0"))
    n_digits = forms[0].as_py().count("0")
    # Cells of digits only, such as 00501, may be postal or similar codes, which can repeat.
    return len(forms) == 1 and FEWEST_DIGITS <= n_digits < len(forms[0].as_py())


def are_phrases(cells: Cells) -> bool:
    """Returns whether most distinct cells contain at least three words."""
    found = pc.match_substring_regex(cells.stripped, r"\S+\s+\S+\s+\S")
    return bool(pc.mean(found).as_py() > 0.5)


def is_row_counter(cells: Cells) -> bool:
    """Returns whether a column has no name and contains whole numbers that do not repeat, such as
    the index of a data frame that was written to the file."""
    if not is_unnamed(cells.name) or (cells.counts > 1).any():
        return False
    return bool(are_whole(cells.stripped).all())


def key_or_quantity(cells: Cells, values: Values) -> KeyOrQuantity:
    """Classifies the whole numbers of a column. Returns "keys" if they identify rows, "quantities"
    if they are amounts such as money, shares, years or times, and "undecided" if they may be
    either.

    `cells` are those that are not missing; `values` are the U distinct numbers. Shape: (U,).
    """
    number_format = cells.number_format
    if number_format is not None and (
        number_format.prefix or number_format.suffix or number_format.duration
    ):
        return "quantities"
    n_rows, n_texts = int(cells.counts.sum()), len(cells.texts)
    is_named = KEY_NAME.search(cells.name) is not None
    if n_rows < IDENTIFIER_ROWS:
        return "keys" if is_named and n_texts >= max(n_rows, FEWEST_NAMES) else "quantities"
    if n_texts < IDENTIFIER_SHARE * n_rows:
        return "quantities"
    if is_named:
        return "keys"
    low, high = int(values.min()), int(values.max())
    if (YEARS[0] <= low and high <= YEARS[1]) or are_dates(values, low, high):
        return "quantities"
    is_dense = high - low < KEY_SPREAD * n_rows
    if n_texts == n_rows and is_dense:
        return "keys"
    is_grouped = number_format is not None and bool(number_format.thousands)
    if low < 0 or is_grouped or _are_epochs(low, high):
        return "quantities"
    if n_texts >= _ASSIGNED_ONCE_SHARE * n_rows and _are_assigned_once(values, cells.counts):
        return "keys"
    name, width = unicodedata.normalize("NFKC", cells.name).strip(), _common_width(cells)
    is_number, is_unique = _NUMBER_NAME.search(name) is not None, n_texts == n_rows
    if width and (is_number or (is_unique and _OWNER_NAME.search(name))):
        return "keys"
    return "undecided" if is_number or (is_unique and width >= _MANY_DIGITS) else "quantities"


def _common_width(cells: Cells) -> int:
    """Returns the number of digits if it is equal for all cells and at least 4; else 0."""
    lengths = pc.min_max(pc.utf8_length(cells.numerals)).as_py()
    least: int = lengths["min"]
    return least if least == lengths["max"] and least >= FEWEST_DIGITS else 0


def _are_assigned_once(values: Values, counts: npt.NDArray[np.int64]) -> bool:
    """Returns whether nearly every whole number was assigned only once, as keys are: many pairs of
    rows differ by one, and almost none are equal. `counts` contains the number of rows with each of
    the distinct `values`."""
    order = np.argsort(values)
    ordered = values[order].astype(np.int64)
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    numbers = ordered[firsts]
    times = np.add.reduceat(counts[order], firsts).astype(np.float64)
    are_next = np.diff(numbers) == 1
    n_equal = (times * (times - 1) / 2).sum()
    n_apart = (times[1:] * times[:-1])[are_next].sum()
    # Expected number of pairs that differ by one among random numbers of the same density.
    n_expected = (_GROUP**2 / np.diff(numbers[::_GROUP]).astype(np.float64)).sum()
    return bool(
        n_apart >= _APART * n_equal
        and are_next.sum() >= _AS_MANY * n_expected
        and pdtr(n_equal, n_expected / 2) < _CHANCE
    )


def _are_epochs(low: int, high: int) -> bool:
    """Returns whether numbers from `low` to `high` may be times since 1970, in units from seconds
    down to nanoseconds."""
    first, last = EPOCH_SECONDS
    return any(
        first * unit <= low and high <= last * unit and high - low >= 60 * unit
        for unit in (1, 10**3, 10**6, 10**9)
    )


def are_dates(values: Values, low: int, high: int) -> bool:
    """Returns whether all whole numbers, from `low` to `high`, can be read as dates such as 202401
    and 20240131."""
    width = len(str(low))
    digits = min(width, _DATE_WIDTHS[-1])
    if len(str(high)) != width or digits not in _DATE_WIDTHS:
        return False
    rest = values.astype(np.int64) // 10 ** (width - digits)
    for least, most in reversed(_DATE_PARTS[: (digits - 4) // 2]):
        rest, part = np.divmod(rest, 100)
        if part.min() < least or part.max() > most:
            return False
    return bool(YEARS[0] <= rest.min() and rest.max() <= YEARS[1])
