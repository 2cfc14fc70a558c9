"""Runs the statements of standard input, a JSON list of texts, in DuckDB, and prints for each its columns
(name and type) and its rows."""

import json
import sys

import duckdb

answers = []
for statement in json.load(sys.stdin):
    answer = duckdb.sql(statement)
    if answer is None:
        answers.append(None)
        continue
    columns = [[name, str(kind)] for name, kind in zip(answer.columns, answer.types)]
    answers.append({"columns": columns, "rows": answer.fetchall()})
json.dump(answers, sys.stdout, default=str)
