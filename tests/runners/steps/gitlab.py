"""Runs the script of an included file of GitLab as it is written, as GitLab's runner does it.

    gitlab.py FILE.yml INPUTS.json FOLDER

Takes the inputs that are given, fills them in, writes what GitLab would read to FOLDER/job.yml, for
its schema, and runs the commands of the only job in FOLDER by bash, one after another as one script.
Prints what came out as JSON: the `name` of the job, its `code` and its `artifacts`. Where GitLab would
not take the inputs, the exit code is 2.
"""

import json
import os
import re
import subprocess
import sys

import yaml

INPUT = re.compile(r"\$\[\[\s*inputs\.([\w-]+)\s*\]\]")
KINDS = {"string": str, "boolean": bool, "array": list, "number": (int, float)}


class Wrong(Exception):
    """GitLab would not take it."""


def inputs_of(spec, given):
    for name in given:
        if name not in spec:
            raise Wrong(f"there is no input {name}")
    inputs = {}
    for name, declared in spec.items():
        if name not in given and "default" not in declared:
            raise Wrong(f"the input {name} is missing")
        value = given.get(name, declared.get("default"))
        if not isinstance(value, KINDS[declared.get("type", "string")]):
            raise Wrong(f"the input {name} is no {declared.get('type', 'string')}")
        if value not in declared.get("options", [value]):
            raise Wrong(f"the input {name} is not one of its options")
        inputs[name] = value
    return inputs


def filled(node, inputs):
    """What GitLab does after it has read the file: an input alone keeps its type."""
    if isinstance(node, dict):
        return {filled(key, inputs): filled(value, inputs) for key, value in node.items()}
    if isinstance(node, list):
        return [filled(value, inputs) for value in node]
    if not isinstance(node, str):
        return node
    alone = INPUT.fullmatch(node)
    if alone:
        return inputs[alone.group(1)]
    return INPUT.sub(lambda match: str(inputs[match.group(1)]), node)


def main():
    with open(sys.argv[1]) as file:
        head, body = yaml.safe_load_all(file)
    with open(sys.argv[2]) as file:
        given = json.load(file)
    folder = sys.argv[3]
    try:
        body = filled(body, inputs_of(head["spec"]["inputs"], given))
    except Wrong as error:
        print(error, file=sys.stderr)
        return 2
    with open(os.path.join(folder, "job.yml"), "w") as file:
        yaml.safe_dump(body, file)
    ((name, job),) = body.items()
    variables = dict(os.environ)
    for variable, value in job["variables"].items():
        value = value["value"] if isinstance(value, dict) else value
        # GitLab takes texts and numbers.
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            raise SystemExit(f"{variable} is {value!r}, which GitLab refuses")
        variables[variable] = str(value)
    script = os.path.join(folder, "script.sh")
    with open(script, "w") as file:
        file.write("\n".join(job["script"]) + "\n")
    words = ["bash", "-eo", "pipefail", script]
    code = subprocess.call(words, cwd=folder, env=variables, stdout=sys.stderr)
    print(json.dumps({"name": name, "code": code, "artifacts": job["artifacts"]}))
    return 0


sys.exit(main())
