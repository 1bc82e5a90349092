"""Generates the reference pages of the documentation site from the code: library, client, REST API
and commands."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METHODS = ("get", "post", "put", "patch", "delete")


def library_page() -> str:
    """Returns a Markdown page that documents every public name of the library.

    Names are listed as `::: module.name`; a plugin of MkDocs inserts their docstrings.
    """
    import gcvae

    homes = {name: getattr(gcvae, name).__module__ for name in gcvae.__all__}
    first = ["Synthesizer"]
    names = first + [name for name in gcvae.__all__ if name not in first]
    intro = (
        "# The library\n\nAfter this page you know every call of the library, what it takes, gives "
        "and refuses. `from gcvae import ...` has all of them, `from gcvae.sklearn import "
        "...` the estimators of scikit-learn.\n"
    )
    names = [f"{homes[name]}.{name}" for name in names]
    names += ["gcvae.sklearn.TableImputer", "gcvae.sklearn.AnomalyDetector"]
    return intro + "".join(f"\n::: {name}\n" for name in names)


def client_page() -> str:
    """Returns a Markdown page that documents every public name of the Python client.

    Names are listed as `::: module.name`; a plugin of MkDocs inserts their docstrings.
    """
    import gcvae_client

    calls = ("Client", "AsyncClient", "Dataset", "Model", "Job")
    names = [*calls, *(name for name in gcvae_client.__all__ if name not in calls)]
    homes = {name: getattr(gcvae_client, name).__module__ for name in names}
    intro = (
        "# The client\n\nAfter this page you know every call of the Python client of the service. "
        "`from gcvae_client import ...` has all of them.\n"
    )
    options = "\n    options:\n      inherited_members: true\n"
    inherited = {name: options if name in calls[:1] else "\n" for name in names}
    return intro + "".join(f"\n::: {homes[name]}.{name}{inherited[name]}" for name in names)


def rest_page() -> str:
    """Returns a Markdown page that documents every call of the REST API, generated from its OpenAPI
    document."""
    document = _openapi()
    by_tag: dict[str, list[str]] = {}
    for path, calls in document["paths"].items():
        for method in METHODS:
            if method in calls:
                tag = (calls[method].get("tags") or ["other"])[0]
                by_tag.setdefault(tag, []).append(_call(method, path, calls[method], document))
    intro = (
        "# The REST API\n\nAfter this page you know every call of the service, its fields and its "
        "answers. A running service shows the same at `/docs`, where calls can be tried; [REST, "
        "step by step](rest.md) goes the whole way. `$URL` is the service's address; where it has "
        'keys, each call carries `-H "Authorization: Bearer $KEY"`.\n'
    )
    parts = (f"\n## {tag.capitalize()}\n{''.join(calls)}" for tag, calls in by_tag.items())
    return intro + "".join(parts)


def commands_page() -> str:
    """Returns a Markdown page that documents every command of the command line with its options."""
    from typer.main import get_command

    from gcvae_cli.app import app

    intro = (
        "# The commands\n\nAfter this page you know every command and its options. `gcvae COMMAND "
        "--help` says the same.\n"
    )
    return intro + "".join(_commands(get_command(app), "gcvae"))


def _openapi() -> dict[str, Any]:
    from service.app import create_app
    from service.settings import ServiceSettings

    with tempfile.TemporaryDirectory() as folder:
        document: dict[str, Any] = create_app(ServiceSettings(home_dir=Path(folder))).openapi()
    return document


def _call(method: str, path: str, call: dict[str, Any], document: dict[str, Any]) -> str:
    parts = [f"\n### {method.upper()} {path}\n\n{_prose(call.get('description', ''))}\n"]
    if parameters := call.get("parameters"):
        parts.append("\n| parameter | in | what |\n|---|---|---|\n")
        parts += [_parameter(parameter, document) for parameter in parameters]
    bodies = call.get("requestBody", {}).get("content", {})
    if bodies:
        parts.append(f"\nBody: {', '.join(f'`{kind}`' for kind in bodies)}.\n")
    fields = _fields(bodies.get("application/json", {}).get("schema", {}), document)
    if fields:
        parts.append("\n| member | what |\n|---|---|\n")
        parts += [f"| `{name}` | {_cell(_said(schema, document))} |\n" for name, schema in fields]
    parts.append(f"\n```sh\n{_example(method, path, bodies, document)}\n```\n")
    answers = ", ".join(
        f"{code} {_first_line(answer.get('description', ''))}"
        for code, answer in call.get("responses", {}).items()
    )
    return "".join(parts) + f"\nAnswers: {answers}.\n"


def _parameter(parameter: dict[str, Any], document: dict[str, Any]) -> str:
    needed = ", needed" if parameter.get("required") and parameter["in"] != "path" else ""
    said = parameter.get("description") or _said(parameter.get("schema", {}), document)
    return f"| `{parameter['name']}` | {parameter['in']}{needed} | {_cell(said)} |\n"


def _fields(schema: dict[str, Any], document: dict[str, Any]) -> list[tuple[str, Any]]:
    return list(_resolved(schema, document).get("properties", {}).items())


def _resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Returns the JSON schema to which a reference leads; of alternatives, the first that is an
    object."""
    while "$ref" in schema or "anyOf" in schema:
        if "anyOf" in schema:
            forms = [_resolved(form, document) for form in schema["anyOf"]]
            return next((form for form in forms if form.get("properties")), forms[0])
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _said(schema: dict[str, Any], document: dict[str, Any]) -> str:
    """Returns the description, type and default of a JSON schema in one line."""
    found = _resolved(schema, document)
    kind = " or ".join(
        sorted({str(form.get("type", "any")) for form in schema.get("anyOf", [found])})
    )
    words = schema.get("description") or found.get("description") or ""
    choices = ", ".join(f"`{choice}`" for choice in found.get("enum", []))
    parts = [_first_line(words), kind if not choices else f"one of {choices}"]
    if "default" in schema and schema["default"] is not None:
        parts.append(f"default `{json.dumps(schema['default'])}`")
    return "; ".join(part for part in parts if part)


def _example(method: str, path: str, bodies: dict[str, Any], document: dict[str, Any]) -> str:
    place = path.replace("{", "$").replace("}", "").replace("$model_id", "$MODEL")
    place = place.replace("$dataset_id", "$DATASET").replace("$job_id", "$JOB")
    place = place.replace("$result_id", "$RESULT")
    command = f"curl -sS $URL{place}"
    if method != "get":
        command = f"curl -sS -X {method.upper()} $URL{place}"
    if "application/json" in bodies and (body := _body(bodies, document)):
        return f"{command} --json '{json.dumps(body)}'"
    if "multipart/form-data" in bodies:
        name = "model.gcvae" if "import" in path else "table.csv"
        return f"curl -sS $URL{place} -F file=@{name}"
    return command


def _body(bodies: dict[str, Any], document: dict[str, Any]) -> Any:
    """Returns an example of a request body: the one in the OpenAPI document, or one with the
    required members."""
    content = bodies["application/json"]
    if examples := content.get("examples"):
        return next(iter(examples.values()))["value"]
    if "example" in content:
        return content["example"]
    schema = _resolved(content.get("schema", {}), document)
    if examples := schema.get("examples"):
        return examples[0]
    known = {"dataset_id": "ds_…", "rows": 1000, "columns": [], "version": 1, "row": {"age": 40}}
    needed = schema.get("required") or [n for n in schema.get("properties", {}) if n in known][:1]
    return {name: known.get(name, "…") for name in needed}


def _commands(command: Any, path: str) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    for name in sorted(inner, key=lambda name: (name.partition(" ")[0], name)):
        yield from _commands(inner[name], f"{path} {name}")
    if not inner:
        yield f"\n## {path}\n\n{_prose(command.help or '')}\n\n{_options(command)}"


def _options(command: Any) -> str:
    rows = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        names = ", ".join(f"`{name}`" for name in parameter.opts)
        if parameter.param_type_name == "argument":
            names = f"`{parameter.metavar or parameter.name.upper()}`"
        needed = "needed. " if parameter.required else ""
        default = parameter.default
        told = "" if default in (None, False, (), []) else f" [default: `{default}`]"
        said = _cell(getattr(parameter, "help", None) or "")
        rows.append(f"| {names} | {needed}{said}{told} |\n")
    return "| option | what |\n|---|---|\n" + "".join(rows) if rows else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _prose(text: str) -> str:
    return text.replace("<", "&lt;").strip()


def _first_line(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split()).rstrip(".").replace("<", "&lt;")
