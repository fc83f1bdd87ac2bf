"""The questions that the shell asks are those of docs/questions.md, word for word."""

from __future__ import annotations

import re

from tests.flows.test_docs_queries import SECTIONS, blocks, heading
from warehouse import questions


def test_the_shells_questions_are_the_documents() -> None:
    documents = {
        str(number): (re.sub(r"^\d+\. ", "", heading(section)), blocks(section, "sql")[0])
        for number, section in enumerate(SECTIONS)
    }
    assert {number: (q.title, q.sql) for number, q in questions.read().items()} == documents
    assert list(questions.read()) == [str(number) for number in range(11)]


def test_the_cluster_of_the_documents_gives_way_to_one_that_is_there() -> None:
    sql = questions.read()["1"].sql
    assert "'atlas'" in sql
    assert questions.fitted(sql, ["atlas", "b"]) == questions.fitted(sql, []) == sql
    assert "'it''s'" in questions.fitted(sql, ["it's"])
    assert "'atlas'" not in questions.fitted(sql, ["it's"])
