"""Runs the steps of a composite action as they are written, as GitHub's runner does it.

    github.py ACTION.yml SITUATION.json

The situation has the `inputs` that are given, what the context `github` has, and the folders
`workspace` and `temporary`. Steps with `run` are run by bash with the options that the runner gives
it; a step with `uses` is not run, since it needs GitHub, and told with what it would get. Prints what
came out as JSON: the action's `outputs`, each step's `name`, `code` (null: not run) and `with`, and
the `summary`. Where GitHub would not take the action, the exit code is 2.
"""

import json
import os
import re
import subprocess
import sys

import yaml

WORD = re.compile(r"\s*('(?:[^']|'')*'|!=|==|&&|\|\||!|\(|\)|[A-Za-z_][\w.-]*)")


class Wrong(Exception):
    """GitHub would not take the action."""


class Steps:
    """A composite action in a job."""

    def __init__(self, action, situation):
        self.action = action
        self.workspace = situation["workspace"]
        self.temporary = situation["temporary"]
        self.github = situation["github"]
        self.inputs = self._given(situation["inputs"])
        self.outputs = {}
        self.failed = False
        self.path = os.environ["PATH"]

    def _given(self, inputs):
        known = self.action["inputs"]
        for name in inputs:
            if name not in known:
                raise Wrong(f"there is no input {name}")
        given = {}
        for name, declared in known.items():
            if declared.get("required") and name not in inputs:
                raise Wrong(f"the input {name} is missing")
            given[name] = str(inputs.get(name, declared.get("default", "")))
        return given

    def lookup(self, name):
        parts = name.split(".")
        if parts[0] == "inputs" and len(parts) == 2:
            if parts[1] not in self.inputs:
                raise Wrong(f"there is no input {parts[1]}")
            return self.inputs[parts[1]]
        if parts[0] == "steps" and parts[2] == "outputs" and len(parts) == 4:
            return self.outputs.get(parts[1], {}).get(parts[3], "")
        if parts[0] == "github" and len(parts) == 2:
            return self.github.get(parts[1], "")
        raise Wrong(f"{name} is not known here")

    def evaluate(self, expression):
        """The value of what stands between ${{ and }}."""
        code, at = [], 0
        expression = expression.strip()
        while at < len(expression):
            match = WORD.match(expression, at)
            if not match:
                raise Wrong(f"{expression} is not understood")
            word, at = match.group(1), match.end()
            operators = {"&&": " and ", "||": " or ", "!": " not ", "!=": "!=", "==": "=="}
            if word in operators:
                code.append(operators[word])
            elif word in "()":
                code.append(word)
            elif word.startswith("'"):
                code.append(repr(word[1:-1].replace("''", "'")))
            elif word in ("cancelled", "always", "failure", "success"):
                answers = {"cancelled": False, "always": True}
                answers.update(failure=self.failed, success=not self.failed)
                code.append(f"(lambda: {answers[word]})")
            else:
                code.append(repr(self.lookup(word)))
        return eval("".join(code))  # noqa: S307 - made of the words above alone

    def text(self, value):
        """A text with its expressions replaced."""
        return re.sub(r"\$\{\{(.*?)\}\}", lambda m: str(self.evaluate(m.group(1))), str(value))

    def wanted(self, step):
        if "if" not in step:
            return not self.failed
        condition = re.sub(r"^\$\{\{(.*)\}\}$", r"\1", str(step["if"]).strip())
        answer = bool(self.evaluate(condition))
        # Without a question for the state of the job, a step waits for its success.
        asks = re.search(r"\b(always|cancelled|failure|success)\(", condition)
        return answer and (bool(asks) or not self.failed)

    def file(self, name):
        path = os.path.join(self.temporary, name)
        open(path, "a").close()
        return path

    def run(self, step, number):
        script = self.file(f"step{number}.sh")
        with open(script, "w") as file:
            file.write(self.text(step["run"]))
        if step.get("shell") != "bash":
            raise Wrong("a step of a composite action names its shell")
        output, path = self.file(f"output{number}"), self.file(f"path{number}")
        variables = {
            **os.environ,
            "PATH": self.path,
            "GITHUB_OUTPUT": output,
            "GITHUB_PATH": path,
            "GITHUB_STEP_SUMMARY": self.file("summary.md"),
            "RUNNER_TEMP": self.temporary,
        }
        variables.update({name: self.text(value) for name, value in step.get("env", {}).items()})
        folder = os.path.join(self.workspace, self.text(step.get("working-directory", ".")))
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", script]
        code = subprocess.call(words, cwd=folder, env=variables, stdout=sys.stderr)
        outputs = {}
        for line in open(output).read().splitlines():
            name, _, value = line.partition("=")
            outputs[name] = value
        if "id" in step:
            self.outputs[step["id"]] = outputs
        for line in open(path).read().splitlines():
            self.path = f"{line}:{self.path}"
        self.failed |= code != 0
        return code

    def all(self):
        told = []
        for number, step in enumerate(self.action["runs"]["steps"]):
            code, given = None, None
            if self.wanted(step):
                if "uses" in step:
                    given = {name: self.text(value) for name, value in step["with"].items()}
                else:
                    code = self.run(step, number)
            told.append(
                {"name": step["name"], "uses": step.get("uses"), "code": code, "with": given}
            )
        outputs = {
            name: self.text(output["value"]) for name, output in self.action["outputs"].items()
        }
        summary = open(self.file("summary.md")).read()
        return {"outputs": outputs, "steps": told, "summary": summary}


def main():
    with open(sys.argv[1]) as file:
        action = yaml.safe_load(file)
    with open(sys.argv[2]) as file:
        situation = json.load(file)
    try:
        print(json.dumps(Steps(action, situation).all()))
    except Wrong as error:
        print(error, file=sys.stderr)
        return 2
    return 0


sys.exit(main())
