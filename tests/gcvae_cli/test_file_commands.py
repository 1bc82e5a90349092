"""The commands on files: what they write, what they refuse, what they import."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, read_table
from gcvae_cli.__main__ import main
from tests.gcvae_cli.small_table import N_ROWS, small_table
from tests.lengths import first_of


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and the one line of a command that fails."""
    code = main(arguments)
    error = capsys.readouterr().err
    assert error.startswith("gcvae: ")
    assert error.count("\n") == 1
    return code, error


def test_schema_prints_the_inferred_schema(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", str(folder / "table.csv")]) == 0
    document = json.loads(capsys.readouterr().out)
    kinds = {column["name"]: column["kind"] for column in document["columns"]}
    assert list(kinds) == ["size", "count", "colour", "grade"]
    assert kinds["size"] == "continuous"
    assert kinds["grade"] == "categorical"


def test_schema_takes_what_is_given_and_infers_the_rest(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"columns": [{"name": "colour", "kind": "ordinal", "levels": ["blue", "red"]}]}
    (tmp_path / "given.json").write_text(json.dumps(given))
    known = ["--schema", str(tmp_path / "given.json")]
    assert main(["schema", str(folder / "table.csv"), *known]) == 0
    columns = json.loads(capsys.readouterr().out)["columns"]
    assert next(c for c in columns if c["name"] == "colour")["kind"] == "ordinal"


def test_sample_writes_rows_of_the_tables_kinds(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    assert main(["sample", str(folder / "model.gcvae"), "--rows", "50", "-o", str(output)]) == 0
    rows = pd.read_csv(output, dtype=str, keep_default_na=False)
    assert list(rows) == ["size", "count", "colour", "grade"]
    assert len(rows) == 50
    assert rows["count"].str.fullmatch(r"-?\d+").all()
    assert set(rows["colour"]) <= {"red", "blue"}
    assert set(rows["grade"]) <= {"a", "b", "?"}


def test_without_a_seed_rows_are_others_each_time_and_the_seed_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = ["sample", str(folder / "model.gcvae"), "--rows", "30", "--json"]
    told = []
    for name in ("one.csv", "two.csv"):
        assert main([*drawn, "-o", str(tmp_path / name)]) == 0
        out, error = capsys.readouterr()
        told.append(json.loads(out)["seed"])
        assert f"--seed {told[-1]} generates the same rows" in error
    assert told[0] != told[1]
    assert (tmp_path / "one.csv").read_bytes() != (tmp_path / "two.csv").read_bytes()
    assert main([*drawn, "-o", str(tmp_path / "again.csv"), "--seed", str(told[0])]) == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()


def test_the_endings_of_the_name_decide_the_format(folder: Path, tmp_path: Path) -> None:
    for name in ("rows.csv", "rows.csv.gz", "rows.parquet"):
        drawn = ["sample", str(folder / "model.gcvae"), "--rows", "12", "--seed", "0"]
        assert main([*drawn, "-o", str(tmp_path / name)]) == 0
    text = (tmp_path / "rows.csv").read_bytes()
    assert gzip.decompress((tmp_path / "rows.csv.gz").read_bytes()) == text
    assert len(pd.read_parquet(tmp_path / "rows.parquet")) == 12


def test_score_writes_one_line_per_row_in_order(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "scores.csv"
    asked = ["score", str(folder / "model.gcvae"), str(folder / "table.csv"), "--draws", "20"]
    assert main([*asked, "-o", str(output)]) == 0
    scores = pd.read_csv(output)
    assert list(scores)[:3] == ["log_likelihood", "standard_error", "percentile"]
    assert len(scores) == N_ROWS
    assert np.isfinite(scores.drop(columns="odd_cell").to_numpy()).all()
    assert scores["percentile"].between(0, 100).all()


def test_encode_writes_one_line_per_row_in_order(folder: Path, tmp_path: Path) -> None:
    asked = ["encode", str(folder / "model.gcvae"), str(folder / "table.csv")]
    for name in ("z.csv", "z.parquet"):
        assert main([*asked, "-o", str(tmp_path / name)]) == 0
    found = pd.read_csv(tmp_path / "z.csv")
    synthesizer = Synthesizer.load(folder / "model.gcvae")
    known = synthesizer.encode(read_table(folder / "table.csv"))
    pd.testing.assert_frame_equal(found, known, check_exact=False, rtol=1e-12)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "z.parquet"), known)


def test_a_manifold_is_of_two_dimensions_only(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(tmp_path / "plane.gcvae")
    asked = ["train", str(folder / "table.csv"), "-o", model, "--preset", "fast"]
    assert main([*asked, "--set", "max_steps=20", "--set", "d_latent=2", "--device", "cpu"]) == 0
    for name, beginning in (("m.png", b"\x89PNG"), ("m.svg", b"<?xml"), ("m.json", b"{")):
        assert main(["manifold", model, "--steps", "3", "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(beginning)
    capsys.readouterr()
    code, error = refusal(["manifold", str(folder / "model.gcvae"), "-o", "-"], capsys)
    assert code == 1
    assert "d_latent 2" in error


def test_every_problem_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, schema = tmp_path / "t.csv", tmp_path / "schema.json"
    table.write_text("größe,b\n1,2\n3,4\n")
    given = [{"name": "größe", "kind": "contnuous"}, {"name": "b", "minimun": 3}]
    schema.write_text(json.dumps({"columns": given}))
    asked = ["train", str(table), "--schema", str(schema), "-o", str(tmp_path / "m.gcvae")]
    assert main(asked) == 1
    assert capsys.readouterr().err.splitlines() == [
        "gcvae: /columns/0/kind, column 'größe': kind cannot be 'contnuous'; "
        "did you mean 'continuous'?",
        "gcvae: /columns/1/minimun, column 'b': there is no such member; did you mean 'minimum'?",
    ]


def test_a_minus_sign_is_the_standard_output(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    asked = ["sample", str(folder / "model.gcvae"), "--rows", "7", "--seed", "1", "-o", "-"]
    capfdbinary.readouterr()
    assert main(asked) == 0
    out, error = capfdbinary.readouterr()
    assert len(pd.read_csv(io.BytesIO(out))) == 7
    assert error == b""


def test_training_answers_a_script_in_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["train", str(folder / "table.csv"), "-o", str(tmp_path / "m.gcvae"), "--json"]
    assert main([*asked, "--set", "max_steps=3", "--device", "cpu"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["model"] == str(tmp_path / "m.gcvae")
    assert answer["training"]["settings"]["max_steps"] == 3


def test_training_says_how_many_rows_of_the_model_satisfy_the_hard_rules(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hard_rule = {"rule": "size > 10 or colour == 'blue'", "keep": "hard"}
    (tmp_path / "given.json").write_text(json.dumps({"rules": [hard_rule], "find_rules": True}))
    asked = ["train", str(folder / "table.csv"), "-o", str(tmp_path / "m.gcvae")]
    asked += ["--schema", str(tmp_path / "given.json"), "--set", "max_steps=3", "--device", "cpu"]
    asked += ["--preset", "gcvae"]
    assert main(asked) == 0
    told = capsys.readouterr().err
    assert re.search(r"^gcvae: [\d.]+% of the model's rows keep all hard rules", told, re.M)
    assert re.search(r"\(/rules/0 [\d.]+%\); the others are replaced$", told, re.M)
    assert re.search(
        r"^gcvae: the hard rules change column '(size|colour)': .+ of those that satisfy",
        told,
        re.M,
    )
    drawn = ["sample", str(tmp_path / "m.gcvae"), "--rows", "200", "-o", str(tmp_path / "s.csv")]
    assert main(drawn) == 0
    rows = pd.read_csv(tmp_path / "s.csv")
    assert ((rows["size"] > 10) | (rows["colour"] == "blue")).all()


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command prints for a script."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_command_on_files_answers_a_script_in_json(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, model = str(folder / "table.csv"), str(folder / "model.gcvae")
    capsys.readouterr()
    told = answer(["schema", table], capsys)
    assert [column["name"] for column in told["schema"]["columns"]] == list(small_table())
    assert told["warnings"] == []
    rows = str(tmp_path / "rows.csv")
    told = answer(["sample", model, "--rows", "5", "--seed", "3", "-o", rows], capsys)
    assert told == {"output": rows, "rows": 5, "seed": 3, "notes": []}
    totals = []
    for name in ("scores.csv", "scores.parquet"):
        asked = ["score", model, rows, "--draws", "9", "-o", str(tmp_path / name)]
        totals.append(answer(asked, capsys)["totals"])
    assert totals[0] == totals[1]
    assert totals[0]["rows"] == 5
    told = answer(["dependencies", model, "-o", str(tmp_path / "map.png")], capsys)
    assert told["map"]["columns"] == list(small_table())


@pytest.mark.parametrize("command", ["train", "sample", "score"])
def test_the_standard_output_holds_one_answer(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    table, model = str(folder / "table.csv"), str(folder / "model.gcvae")
    given = {"train": [table], "sample": [model, "--rows", "1"], "score": [model, table]}
    code, error = refusal([command, *given[command], "-o", "-", "--json"], capsys)
    assert code == 2
    assert "standard output" in error


def test_a_model_on_the_standard_output_is_nothing_but_the_model(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    asked = ["train", str(folder / "table.csv"), "-o", "-"]
    assert main([*asked, "--set", "max_steps=3", "--device", "cpu"]) == 0
    assert len(Synthesizer.from_bytes(capfdbinary.readouterr().out).sample(2)) == 2


@pytest.mark.slow
def test_training_leaves_nothing_in_the_temporary_folder(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gcvae_cli", "train", str(folder / "table.csv"), "-o", "-"]
    command += ["--set", "max_steps=3", "--device", "cpu"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment.pop("TORCHINDUCTOR_CACHE_DIR", None)  # torch sets it when it is first used
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_model_has_a_models_ending(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["train", str(folder / "table.csv"), "-o", str(folder / "m.csv")]
    code, error = refusal(asked, capsys)
    assert code == 2
    assert ".gcvae" in error


@pytest.mark.slow
def test_a_terminal_sees_a_progress_bar(folder: Path, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "gcvae_cli", "train", str(folder / "table.csv")]
    command += ["-o", str(tmp_path / "m.gcvae"), "--set", "max_steps=3", "--device", "cpu"]
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stderr=slave, stdout=subprocess.DEVNULL, env=environment)
    os.close(slave)
    seen = _read_to_the_end(master)
    assert process.wait(60) == 0
    assert b"training on table.csv" in seen


def _read_to_the_end(master: int) -> bytes:
    """What a terminal's other side is shown, read as it comes: its buffer is small."""
    seen = b""
    while True:
        try:
            seen += os.read(master, 65536)
        except OSError:  # the last process has closed its side
            os.close(master)
            return seen


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--preset", "no-such"], "no-such"),
        (["--set", "max_steps=many"], "max_steps"),
        (["--set", "no_such=1"], "no_such"),
        (["--set", "max_step=1"], "did you mean 'max_steps'?"),
        (["--set", "n_epochs=1"], "did you mean 'max_passes'?"),
        (["--preset", "defualt"], "did you mean 'default'?"),
        (["--set", "max_steps"], "--set key=value"),
        (["--set", "rank=0", "--set", "rank=1"], "twice"),
        (["--device", "abacus"], "abacus"),
        (["--seed", str(2**63)], "--seed"),
    ],
)
def test_a_wrong_choice_is_wrong_usage(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    asked = ["train", str(folder / "table.csv"), "-o", str(folder / "never.gcvae")]
    code, error = refusal([*asked, *arguments], capsys)
    assert code == 2
    assert says in error
    assert not (folder / "never.gcvae").exists()


def test_an_unknown_ending_is_wrong_usage_and_names_the_known_ones(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["sample", str(folder / "model.gcvae"), "--rows", "5", "-o", "rows.xlsx"]
    code, error = refusal(asked, capsys)
    assert code == 2
    assert ".parquet" in error


def test_a_missing_folder_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = folder / "nowhere" / "rows.csv"
    asked = ["sample", str(folder / "model.gcvae"), "--rows", "5", "-o", str(output)]
    code, error = refusal(asked, capsys)
    assert code == 1
    assert str(folder / "nowhere") in error


@pytest.mark.parametrize("number", first_of(signal.SIGTERM, signal.SIGHUP, signal.SIGINT))
def test_a_command_that_is_asked_to_end_leaves_nothing_half_made(
    folder: Path, tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-m", "gcvae_cli", "sample", str(folder / "model.gcvae")]
    command += ["--rows", "100000000", "-o", str(tmp_path / "rows.csv")]
    default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, default)  # a child inherits what is ignored, as under nohup
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
    finally:
        signal.signal(number, before)
    while not any(tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert process.communicate(timeout=60)[1] == b""
    assert process.returncode == 128 + number
    assert list(tmp_path.iterdir()) == []


def test_more_rows_than_the_disk_holds_are_refused_at_once(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "rows.csv"
    asked = ["sample", str(folder / "model.gcvae"), "--rows", str(10**15), "-o", str(output)]
    code, error = refusal(asked, capsys)
    assert code == 1
    assert f"cannot write {output}" in error
    assert "fewer rows" in error
    assert list(tmp_path.iterdir()) == []


def test_a_table_is_no_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["sample", str(folder / "table.csv"), "--rows", "5", "-o", "-"]
    code, _ = refusal(asked, capsys)
    assert code == 1


@pytest.mark.parametrize(
    "arguments",
    [["train"], ["no-such-command"], ["sample", "m.gcvae", "--rows", "0", "-o", "-"]],
)
def test_a_command_that_is_called_wrongly_points_to_its_help(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = refusal(arguments, capsys)
    assert code == 2
    assert "--help" in error


def test_commands_on_files_import_no_server(folder: Path, tmp_path: Path) -> None:
    script = f"""
import sys
from gcvae_cli.__main__ import main
assert main(["schema", {str(folder / "table.csv")!r}, "-o", {str(tmp_path / "s.json")!r}]) == 0
model = {str(folder / "model.gcvae")!r}
assert main(["sample", model, "--rows", "3", "--seed", "1", "-o", "-"]) == 0
servers = {{"fastapi", "celery", "kombu", "sqlalchemy", "uvicorn", "service", "worker", "catalog"}}
sys.exit(", ".join(servers & set(sys.modules)) or 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if "gcvae: rule: " not in line] == []
    assert done.returncode == 0


def test_help_costs_no_torch() -> None:
    script = """
import sys
from gcvae_cli.__main__ import main
main(["train", "--help"])
sys.exit(", ".join({"torch", "pandas"} & set(sys.modules)) or 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_reads_a_table_in_the_encoding_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "größe,farbe\n" + "".join(f"{i % 7}.5,{('grün', '', 'rot')[i % 3]}\n" for i in range(99))
    (tmp_path / "utf-8.csv").write_text(text, "utf-8")
    table, model = str(tmp_path / "cp1252.csv"), str(tmp_path / "m.gcvae")
    Path(table).write_bytes(text.encode("cp1252"))
    code, error = refusal(["schema", table], capsys)
    assert code == 1
    assert "with encoding cp1252 this reads 'größe'" in error
    code, error = refusal(["schema", table, "--encoding", "cp12522"], capsys)
    assert code == 2
    assert "cp12522: unknown encoding (expected: cp1252, or another)" in error
    named = ["--encoding", "windows-1252"]
    assert main(["schema", table, *named]) == 0
    assert '"grün"' in capsys.readouterr().out
    short = ["--set", "max_steps=5", "--device", "cpu"]
    assert main(["train", table, "-o", model, *short, *named]) == 0
    for command in ("score", "impute", "encode"):
        written = []
        for source, options in ((table, named), (str(tmp_path / "utf-8.csv"), [])):
            output = tmp_path / "answer.csv"
            assert main([command, model, source, "-o", str(output), *options]) == 0
            written.append(output.read_text("utf-8"))
        assert written[0] == written[1]
    (tmp_path / "known.csv").write_bytes("farbe\ngrün\n".encode("cp1252"))
    drawn = ["sample", model, "--given-rows", str(tmp_path / "known.csv"), *named, "-o"]
    assert main([*drawn, str(tmp_path / "drawn.csv")]) == 0
    assert "grün" in (tmp_path / "drawn.csv").read_text("utf-8")


def test_impute_fills_the_named_columns_only(folder: Path, tmp_path: Path) -> None:
    rows = small_table().head(30).astype(str)
    rows.loc[::2, ["size", "colour", "grade"]] = ["", "NA", "?"]
    names = {"size": 'größe, "x"', "colour": "颜色"}
    rows.rename(columns=names).to_csv(tmp_path / "blanks.csv", index=False)
    small_table().rename(columns=names).to_csv(tmp_path / "table.csv", index=False)
    model, completed = str(tmp_path / "m.gcvae"), tmp_path / "completed.csv"
    trained = ["train", str(tmp_path / "table.csv"), "-o", model, "--set", "max_steps=5"]
    assert main([*trained, "--device", "cpu"]) == 0
    asked = ["impute", model, str(tmp_path / "blanks.csv"), "-o", str(completed)]
    assert main([*asked, "--columns", '"größe, ""x""", 颜色', "--keep-missing", "grade"]) == 0
    found = read_table(completed).rename(columns={new: old for old, new in names.items()})
    assert (found[["count", "grade"]] == rows[["count", "grade"]]).all(axis=None)
    assert not found[["size", "colour"]].isin(["", "NA", "?"]).any(axis=None)


def test_impute_refuses_columns_that_are_not_there(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "never.csv"
    asked = ["impute", str(folder / "model.gcvae"), str(folder / "table.csv"), "-o", str(output)]
    code, error = refusal([*asked, "--columns", "sizes"], capsys)
    assert code != 0
    assert "did you mean 'size'?" in error
    assert not output.exists()


def test_a_dossier_has_the_digests_of_the_model_and_its_report(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_table().iloc[::-1].to_csv(tmp_path / "unseen.csv", index=False)
    real, report, page = folder / "table.csv", tmp_path / "report.json", tmp_path / "d.html"
    asked = ["report", str(folder / "model.gcvae"), "--real", str(real), "--target", "grade"]
    asked += ["--holdout", str(tmp_path / "unseen.csv"), "-o", str(report)]
    code, error = refusal([*asked, "--dossier", str(page)], capsys)
    assert (code, "--purpose" in error) == (2, True)
    code, error = refusal([*asked, "--retention", "a year"], capsys)
    assert (code, "--dossier" in error) == (2, True)
    code, error = refusal([*asked, "--dossier", "d.pdf", "--purpose", "tests"], capsys)
    assert (code, ".html" in error) == (2, True)
    assert not report.exists()
    told = ["--dossier", str(page), "--purpose", "tests of a shop", "--retention", "a year"]
    assert main([*asked, *told]) == 0
    dossier = page.read_text()
    for file in (folder / "model.gcvae", real, tmp_path / "unseen.csv", report):
        assert hashlib.sha256(file.read_bytes()).hexdigest() in dossier
    assert "tests of a shop" in dossier
    assert "--holdout unseen.csv --target grade --seed 0 -o report.json" in dossier
