"""Tables of results, for data frames."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from . import _native

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Table"]

_SHOWN_ROWS = 10


class Table:
    """Named columns. Any library that reads the Arrow PyCapsule interface takes it without a copy:
    `polars.DataFrame(table)`, `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)`, DuckDB.
    """

    def __init__(self, native: _native.Table) -> None:
        """Tables come from `Results`."""
        self._native = native

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self._native)

    @property
    def columns(self) -> list[str]:
        """The names of the columns: the swept keys, `cell`, `seed`, then those of docs/reference/results.md."""
        return self._native.columns

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists; None for a missing value. Needs no other package."""
        return self._native.to_dict()

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas; repeated strings are categories."""
        import pandas

        columns = self.to_dict()
        texts = {name for name, values in columns.items() if any(isinstance(value, str) for value in values)}
        data = {
            name: pandas.Categorical(values, list(dict.fromkeys(value for value in values if value is not None)))
            if name in texts
            else pandas.Series(values, dtype="uint64" if values and isinstance(values[0], int) else "float64")
            for name, values in columns.items()
        }
        return pandas.DataFrame(data)

    def to_polars(self) -> polars.DataFrame:
        """As a data frame of Polars; repeated strings are categories."""
        import polars

        return polars.DataFrame(self)

    def __repr__(self) -> str:
        return f"<ropewalk.Table: {len(self)} rows, {len(self.columns)} columns: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        columns = self._native.to_dict(_SHOWN_ROWS)
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{_shown(value)}</td>' for value in row)}</tr>\n"
            for row in zip(*columns.values(), strict=True)
        )
        note = f"{len(self)} rows, {len(columns)} columns"
        return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n<p>{note}</p>\n"


def _shown(value: object) -> str:
    if value is None:
        return "&ndash;"
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))
