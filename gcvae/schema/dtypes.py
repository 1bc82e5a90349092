"""Names of the data frame dtypes that a schema may specify."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd


def checked_dtype(name: str) -> str:
    """Returns the name unchanged if it names a supported dtype.

    Raises:
        ValueError: The name is not that of a supported dtype.
    """
    if name not in (*_BY_TYPE, *_STRINGS):
        if not _PANDAS_OWN.fullmatch(name):
            raise ValueError(f"no dtype is called {name!r}")
        try:
            pd.api.types.pandas_dtype(name)
        except (TypeError, LookupError) as error:  # LookupError: unknown time zone
            raise ValueError(str(error)) from None
    return name


_PANDAS_OWN = re.compile(
    r"u?int(8|16|32|64)|float(16|32|64)|bool|U?Int(8|16|32|64)|Float(32|64)|boolean"
    r"|datetime64\[(s|ms|us|ns)(, [\w/+:-]+)?\]|timedelta64\[(s|ms|us|ns)\]|period\[[\w-]+\]"
)


_STRINGS: dict[str, Any] = {
    "string[python]": pd.StringDtype("python"),
    "string[pyarrow]": pd.StringDtype("pyarrow"),
    "str": pd.StringDtype(na_value=np.nan),
}


_BY_TYPE = ("category", "object", "arrow")
