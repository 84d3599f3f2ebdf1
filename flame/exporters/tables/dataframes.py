"""Hand columns over to data frames: Arrow, pandas, polars, each imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from flame.core.columns import Column
from flame.core.errors import UsageError
from flame.exporters.tables.columns import Categories, Columns, Numbers


def imported(module: str, what: str) -> Any:
    """Import ``module``, which ``what`` needs; UsageError where it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise UsageError(f"{what} needs {package}: pip install {package}") from None


def as_arrow(columns: Columns) -> Any:
    """Make a ``pyarrow.Table`` of ``columns``; UsageError without pyarrow."""
    arrow = imported("pyarrow", "to_arrow")

    def column(values: Categories | Numbers) -> Any:
        if isinstance(values, Numbers):
            return arrow.array(values.values, mask=_absent(values))
        codes = arrow.array(values.code, mask=values.code < 0)
        return arrow.DictionaryArray.from_arrays(codes, arrow.array(values.names, arrow.string()))

    return arrow.table({name: column(values) for name, values in columns.items()})


def as_pandas(columns: Columns) -> Any:
    """Make a ``pandas.DataFrame`` of ``columns``, texts as categories; UsageError without pandas.

    Numbers that are not known of every row are of pandas' type ``Int64``.
    """
    pandas = imported("pandas", "to_pandas")

    def column(values: Categories | Numbers) -> Any:
        if isinstance(values, Categories):
            return pandas.Categorical.from_codes(values.code, values.names)
        absent = _absent(values)
        if absent is None:
            return values.values
        whole = values.values.astype(np.int64)
        return pandas.arrays.IntegerArray(whole, absent)

    return pandas.DataFrame({name: column(values) for name, values in columns.items()})


def as_polars(columns: Columns) -> Any:
    """Make a ``polars.DataFrame`` of ``columns``, texts as ``Enum``; UsageError without polars."""
    polars = imported("polars", "to_polars")

    def column(name: str, values: Categories | Numbers) -> Any:
        if isinstance(values, Categories):
            names = polars.Series(name, values.names, dtype=polars.Enum([*values.names]))
            if not values.names:
                return polars.Series(name, [None] * len(values.code), dtype=names.dtype)
            texts = names.gather(np.maximum(values.code, 0).astype(np.uint32))
            return _unknown(polars, texts, values.code < 0)
        return _unknown(polars, polars.Series(name, values.values), _absent(values))

    return polars.DataFrame([column(name, values) for name, values in columns.items()])


def _unknown(polars: Any, series: Any, absent: Column | None) -> Any:
    """``series`` without what is ``absent``, bool[n]."""
    if absent is None or not absent.any():
        return series
    known = polars.Series(~absent)
    return polars.select(polars.when(known).then(series).alias(series.name)).to_series()


def _absent(values: Numbers) -> Column | None:
    return None if values.known is None or values.known.all() else ~values.known
