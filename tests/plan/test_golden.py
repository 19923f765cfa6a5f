"""Plans and errors as texts: ``NAME.sql`` in, ``NAME.txt`` out. Set UPDATE_GOLDEN=1 to write the expected texts."""

import os
from pathlib import Path

import pytest

from slackwater.errors import SlackwaterError
from slackwater.language import parse_script
from slackwater.plan import Catalog, explain_query

GOLDEN = Path(__file__).parent / "golden"
PAPERS = Path(__file__).parent.parent / "language" / "papers"
CATALOG = Catalog.from_sql(
    """CREATE TABLE Sensors (ts TIMESTAMP, sensor STRING, value DOUBLE, host STRING, beat TIMESTAMP, at TIMESTAMP);
    CREATE TABLE Services (orderID BIGINT, store STRING, serviceTime DOUBLE);
    CREATE TABLE Traffic (timestamp TIMESTAMP, speed DOUBLE);
    CREATE TABLE Local (ts TIMESTAMP_NTZ)"""
)


def outcome(text: str) -> str:
    try:
        return "\n".join(explain_query(query, CATALOG) for query in parse_script(text))
    except SlackwaterError as error:
        return f"{error}\n"


@pytest.mark.parametrize("file", sorted([*GOLDEN.glob("*.sql"), *PAPERS.glob("*.sql")]), ids=lambda file: file.stem)
def test_golden(file: Path) -> None:
    found = "\n---\n".join(outcome(text) for text in file.read_text(encoding="utf-8").split("\n---\n"))
    expected = GOLDEN / f"{file.stem}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        expected.write_text(found, encoding="utf-8")
    assert found == expected.read_text(encoding="utf-8")
