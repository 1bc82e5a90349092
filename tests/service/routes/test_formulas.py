"""Samples for a spreadsheet, at once and by a job, over REST and by the client."""

from __future__ import annotations

from gcvae_client import Client
from tests.running_service import Running, train, work

TABLE = b"word,number\n" + b"".join(
    b"%s,-%d\n" % ([b"=1+1", b"plain"][i % 2], i) for i in range(60)
)


def _words(content: bytes) -> set[str]:
    return {line.split(",")[0] for line in content.decode().splitlines()[1:]}


def test_formulas_of_a_sample_are_escaped_where_that_is_asked(service: Running) -> None:
    model = train(service, TABLE)
    path = f"/v1/models/{model['id']}/samples"
    escaped = {"rows": 50, "seed": 1, "escape_formulas": True}
    assert _words(service.http.post(path, json={"rows": 50, "seed": 1}).content) == {
        "=1+1",
        "plain",
    }
    at_once = service.http.post(path, json=escaped).content
    assert _words(at_once) == {"'=1+1", "plain"}
    long = service.http.post(path, json=escaped | {"rows": 6000}).json()
    assert long["request"]["escape_formulas"] is True
    work(service, long["job_id"])
    by_job = service.http.get(f"/v1/samples/{long['id']}/content").content
    assert _words(by_job) == {"'=1+1", "plain"}
    with Client(service.url) as client:
        asked = {"seed": 1, "format": "csv"}
        assert client.sample(model["id"], 50, escape_formulas=True, **asked) == at_once
        assert client.sample(model["id"], 50, **asked) != at_once
