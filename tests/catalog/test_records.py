"""Datasets, models, pages, orphans and idempotency keys, on SQLite and on PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from sqlalchemy import update

from catalog import Catalog, Dataset, Job, JobKind, Model, ModelStatus, Trained
from catalog.database.clock import database_clock
from catalog.database.tables import IdempotencyRow
from catalog.errors import (
    ConflictError,
    CursorError,
    IdempotencyBusyError,
    IdempotencyMismatchError,
    NotFoundError,
    ReservationLostError,
    SchemaChangedError,
)
from catalog.idempotency import CreatedRecord
from catalog.ids import new_id
from tests.wordings import refuses

_SHA256 = "0" * 64


def _add_dataset(catalog: Catalog, name: str, workspace: str = "default") -> Dataset:
    datasets = catalog.workspace(workspace).datasets
    dataset_id = datasets.new_id()
    catalog.orphans.reserve(f"datasets/{dataset_id}/", 60)
    return datasets.add(
        dataset_id=dataset_id,
        name=name,
        format="csv",
        rows=3,
        columns=2,
        schema={},
        sha256=_SHA256,
        size_bytes=10,
        object_key=f"datasets/{dataset_id}/table",
        warnings=[],
    )


def test_ids_of_one_process_sort_by_time() -> None:
    ids = [new_id("ds") for _ in range(1000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 1000
    assert all(re.fullmatch("ds_[0-9a-z]{26}", record_id) for record_id in ids)


def test_what_was_added_is_read_back(catalog: Catalog, dataset: Dataset) -> None:
    assert catalog.workspace("default").datasets.get(dataset.id) == dataset
    assert dataset.created_at.tzinfo is not None


def test_pages_hold_every_record_once_newest_first(catalog: Catalog) -> None:
    names = [_add_dataset(catalog, f"table {number}").name for number in range(5)]
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = catalog.workspace("default").datasets.list(limit=2, cursor=cursor)
        seen += [dataset.name for dataset in page.items]
        cursor = page.next_cursor
    assert seen == names[::-1]
    assert cursor is None


def test_a_full_last_page_has_no_next(catalog: Catalog) -> None:
    _add_dataset(catalog, "a")
    _add_dataset(catalog, "b")
    assert catalog.workspace("default").datasets.list(limit=2).next_cursor is None


@pytest.mark.parametrize("cursor", ["!", "ä", "a"])
def test_a_made_up_cursor_is_refused(catalog: Catalog, cursor: str) -> None:
    with refuses(CursorError):
        catalog.workspace("default").datasets.list(cursor=cursor)


def test_workspaces_do_not_see_each_other(catalog: Catalog) -> None:
    mine = _add_dataset(catalog, "mine", workspace="mine")
    assert catalog.workspace("default").datasets.list().items == []
    for act in (
        catalog.workspace("default").datasets.get,
        catalog.workspace("default").datasets.delete,
    ):
        with pytest.raises(NotFoundError):
            act(mine.id)
    with pytest.raises(NotFoundError):
        catalog.workspace("default").jobs.enqueue_training(
            dataset_id=mine.id, name="m", training={}
        )
    assert catalog.workspace("mine").datasets.list().items == [mine]


def test_a_schema_is_replaced_whole(catalog: Catalog, dataset: Dataset) -> None:
    replaced = catalog.workspace("default").datasets.replace_schema(
        dataset, {"columns": [1]}, {"columns": []}, ["new"]
    )
    assert (replaced.schema, replaced.warnings) == ({"columns": [1]}, ["new"])
    assert replaced.given_schema == {"columns": []}
    assert catalog.workspace("default").datasets.get(dataset.id) == replaced


def test_a_schema_that_another_has_replaced_meanwhile_is_not_lost(
    catalog: Catalog, dataset: Dataset
) -> None:
    first = catalog.workspace("default").datasets.replace_schema(dataset, {"columns": [1]}, {}, [])
    with refuses(SchemaChangedError, names=dataset.id):
        catalog.workspace("default").datasets.replace_schema(dataset, {"columns": [2]}, {}, [])
    assert catalog.workspace("default").datasets.get(dataset.id) == first


def test_a_schema_that_a_model_is_trained_under_is_not_replaced(
    catalog: Catalog, training: Job, dataset: Dataset
) -> None:
    with refuses(ConflictError, names=str(training.model_id)):
        catalog.workspace("default").datasets.replace_schema(dataset, {"columns": [1]}, {}, [])


def test_the_answer_to_an_upload_is_forgotten_when_the_schema_changes(
    catalog: Catalog, dataset: Dataset
) -> None:
    answers = {"mine": {"status": 201, "body": {"id": dataset.id, "schema": "secret note 7"}},
               "other": {"status": 202, "body": {"id": "mdl_1"}}}  # fmt: skip
    for key, answer in answers.items():
        catalog.workspace("default").idempotency.begin(key, "d")
        catalog.workspace("default").idempotency.complete(key, answer)
    catalog.workspace("default").datasets.replace_schema(dataset, {"columns": []}, {}, [])
    assert catalog.workspace("default").idempotency.begin("mine", "d") == CreatedRecord(dataset.id)
    assert catalog.workspace("default").idempotency.begin("other", "d") == answers["other"]


def test_a_deleted_dataset_leaves_its_bytes_to_garbage_collection_and_its_models_in_place(
    catalog: Catalog, ready_model: Model
) -> None:
    catalog.orphans.take_due()
    dataset_id = str(ready_model.dataset_id)
    assert catalog.workspace("default").datasets.delete(dataset_id) == (f"datasets/{dataset_id}/",)
    assert f"datasets/{dataset_id}/" in catalog.orphans.take_due()
    model = catalog.workspace("default").models.get(ready_model.id)
    assert (model.status, model.dataset_id) == (ModelStatus.READY, None)


def test_a_dataset_in_training_is_not_deleted(catalog: Catalog, training: Job) -> None:
    with refuses(ConflictError, names=str(training.model_id)):
        catalog.workspace("default").datasets.delete(str(training.dataset_id))


def test_a_model_in_training_is_not_deleted(catalog: Catalog, training: Job) -> None:
    with refuses(ConflictError, names=training.id):
        catalog.workspace("default").models.delete(str(training.model_id))


def test_a_deleted_model_takes_its_results_along(catalog: Catalog, ready_model: Model) -> None:
    job = catalog.workspace("default").jobs.enqueue(
        JobKind.SAMPLE, model_id=ready_model.id, spec={}
    )
    catalog.workspace("default").jobs.request_cancel(job.id)
    prefixes = catalog.workspace("default").models.delete(ready_model.id)
    assert set(prefixes) == {
        f"models/{ready_model.id}/",
        f"jobs/{job.id}/",
        f"jobs/{ready_model.job_id}/",
    }
    with pytest.raises(NotFoundError):
        catalog.workspace("default").models.get(ready_model.id)
    assert catalog.workspace("default").jobs.get(job.id).model_id is None
    with refuses(ConflictError):
        catalog.workspace("default").jobs.retry(job.id)


def test_a_model_from_outside_is_ready_at_once(catalog: Catalog) -> None:
    model_id = catalog.workspace("default").models.new_id()
    catalog.orphans.reserve(f"models/{model_id}/", 60)
    trained = Trained(f"models/{model_id}/model.gcvae", _SHA256, 5, {"columns": []}, {})
    model = catalog.workspace("default").models.add_ready(
        model_id=model_id, name="m", trained=trained, training={}
    )
    assert model.status is ModelStatus.READY
    assert catalog.workspace("default").models.list(status=ModelStatus.READY).items == [model]


class TestOrphans:
    def test_a_reservation_that_runs_out_is_swept_and_takes_no_record(
        self, catalog: Catalog
    ) -> None:
        dataset_id = catalog.workspace("default").datasets.new_id()
        prefix = f"datasets/{dataset_id}/"
        catalog.orphans.reserve(prefix, -1)
        assert catalog.orphans.take_due() == [prefix]
        with pytest.raises(ReservationLostError):
            catalog.orphans.reserve(prefix, 60)
        with pytest.raises(ReservationLostError):
            catalog.workspace("default").datasets.add(
                dataset_id=dataset_id,
                name="late",
                format="csv",
                rows=1,
                columns=1,
                schema={},
                sha256=_SHA256,
                size_bytes=1,
                object_key=prefix + "table",
                warnings=[],
            )
        assert catalog.workspace("default").datasets.list().items == []

    def test_a_reservation_can_be_prolonged(self, catalog: Catalog) -> None:
        catalog.orphans.reserve("datasets/x/", -1)
        catalog.orphans.reserve("datasets/x/", 60)
        assert catalog.orphans.take_due() == []

    def test_an_abandoned_reservation_is_due_at_once(self, catalog: Catalog) -> None:
        catalog.orphans.reserve("datasets/x/", 60)
        assert catalog.orphans.abandon("datasets/x/")
        assert catalog.orphans.take_due() == ["datasets/x/"]

    def test_nothing_is_abandoned_where_the_record_was_made(self, catalog: Catalog) -> None:
        dataset = _add_dataset(catalog, "table")
        assert not catalog.orphans.abandon(f"datasets/{dataset.id}/")
        assert catalog.orphans.take_due() == []

    def test_what_was_not_swept_stays_due(self, catalog: Catalog) -> None:
        catalog.orphans.add(["a/", "b/"])
        assert sorted(catalog.orphans.take_due()) == ["a/", "b/"]
        catalog.orphans.forget("a/")
        assert catalog.orphans.take_due() == ["b/"]


class TestIdempotency:
    def test_the_second_request_gets_the_first_answer(self, catalog: Catalog) -> None:
        assert catalog.workspace("default").idempotency.begin("key", "hash") is None
        catalog.workspace("default").idempotency.complete("key", {"status": 201})
        assert catalog.workspace("default").idempotency.begin("key", "hash") == {"status": 201}
        assert catalog.workspace("other").idempotency.begin("key", "hash") is None

    def test_a_key_is_bound_to_its_request(self, catalog: Catalog) -> None:
        catalog.workspace("default").idempotency.begin("key", "hash")
        with pytest.raises(IdempotencyBusyError):
            catalog.workspace("default").idempotency.begin("key", "hash")
        with pytest.raises(IdempotencyMismatchError):
            catalog.workspace("default").idempotency.begin("key", "other")

    def test_a_failed_request_frees_its_key(self, catalog: Catalog) -> None:
        catalog.workspace("default").idempotency.begin("key", "hash")
        catalog.workspace("default").idempotency.abandon("key")
        assert catalog.workspace("default").idempotency.begin("key", "other") is None

    def test_a_key_stays_its_requests_while_that_is_said_and_is_free_soon_after(
        self, catalog: Catalog
    ) -> None:
        catalog.workspace("default").idempotency.begin("kept", "hash")
        catalog.workspace("default").idempotency.begin("silent", "hash")
        with catalog.database.writing() as session:
            session.execute(update(IdempotencyRow).values(created_at=database_clock(-60)))
        catalog.workspace("default").idempotency.keep("kept")
        with pytest.raises(IdempotencyBusyError):
            catalog.workspace("default").idempotency.begin("kept", "hash")
        assert catalog.workspace("default").idempotency.begin("silent", "hash") is None

    def test_what_a_request_made_is_known_though_nobody_wrote_its_answer(
        self, catalog: Catalog, ready_model: Model
    ) -> None:
        model = ready_model
        jobs, keys = catalog.workspace("default").jobs, catalog.workspace("default").idempotency
        makers: list[Callable[[], str]] = [
            lambda: _add_dataset(catalog, "table").id,
            lambda: jobs.enqueue(JobKind.SCORE, model_id=model.id, spec={}).id,
            lambda: (
                jobs.enqueue_training(dataset_id=str(model.dataset_id), name="cars", training={})[
                    1
                ].id
            ),
        ]
        for number, make in enumerate(makers):
            key = f"key{number}"
            assert keys.begin(key, "hash") is None
            with keys.answering(key):
                created_id = make()
            keys.abandon(key)
            with catalog.database.writing() as session:
                session.execute(update(IdempotencyRow).values(created_at=database_clock(-60)))
            assert keys.begin(key, "hash") == CreatedRecord(created_id)
            keys.complete(key, {"status": 201})
            assert keys.begin(key, "hash") == {"status": 201}

    def test_who_slept_until_the_key_was_anothers_makes_nothing(self, catalog: Catalog) -> None:
        keys = catalog.workspace("default").idempotency
        keys.begin("key", "hash")
        with keys.answering("key"):
            with catalog.database.writing() as session:
                session.execute(update(IdempotencyRow).values(created_at=database_clock(-60)))
            assert keys.begin("key", "hash") is None, "of another"
            created_id = _add_dataset(catalog, "table").id
            with pytest.raises(IdempotencyBusyError):
                _add_dataset(catalog, "table")
            catalog.retention.forget_answers_older_than(-1)
            with pytest.raises(IdempotencyBusyError):
                _add_dataset(catalog, "table")
        assert [dataset.id for dataset in catalog.workspace("default").datasets.list().items] == [
            created_id
        ]

    def test_old_keys_are_forgotten(self, catalog: Catalog) -> None:
        catalog.workspace("default").idempotency.begin("key", "hash")
        catalog.workspace("default").idempotency.complete("key", {})
        catalog.retention.forget_answers_older_than(-1)
        assert catalog.workspace("default").idempotency.begin("key", "other") is None
