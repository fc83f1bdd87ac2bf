"""Where SQL statements begin and end, as DuckDB reads them."""

from __future__ import annotations

import duckdb


class QueryError(Exception):
    """DuckDB refuses a query; the message is DuckDB's."""


class NoStatementError(QueryError):
    """There is nothing in a query but comments and semicolons."""


def the_only(con: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Return `sql` without the semicolon and comments at its end, on which DuckDB stumbles when it reads an answer as text.

    Raises:
        QueryError: it is more than one statement.
        NoStatementError: it is none.
        duckdb.ParserException: DuckDB cannot read it.
    """
    statements = con.extract_statements(sql)
    if not statements:
        raise NoStatementError("there is no statement in the query")
    if len(statements) > 1:
        raise QueryError("several statements in one query; give one at a time")
    text = sql.encode()
    for offset, kind in reversed(duckdb.tokenize(sql)):
        if kind != duckdb.token_type.comment and text[offset : offset + 1] != b";":
            break
        text = text[:offset]
    return text.decode()


def split(con: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """Return the statements of `sql`.

    Raises:
        QueryError: DuckDB cannot read one of them.
    """
    try:
        return [statement.query.strip() for statement in con.extract_statements(sql)]
    except duckdb.Error as error:
        raise QueryError(str(error)) from error


def is_complete(sql: str) -> bool:
    """Tell whether `sql` ends with a semicolon, comments aside; one inside a text or a comment ends nothing."""
    text = sql.encode()
    for offset, kind in reversed(duckdb.tokenize(sql)):
        if kind != duckdb.token_type.comment:
            return text[offset : offset + 1] == b";"
        if text.startswith(b"/*", offset) and not text.rstrip().endswith(b"*/"):
            return False  # not closed yet
    return False
