"""Settings of the service: one frozen object, read from `GCVAE_…` environment variables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, field_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from runtime.settings import USUAL, RuntimeSettings, ServerSettings
from runtime.settings import variable as variable_of

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE
GIBIBYTE = 1024 * MEBIBYTE

DATABASE_FILE = "catalog.sqlite"
"""Name of the default database in the data folder."""


class ServiceSettings(ServerSettings, RuntimeSettings):
    """Address, URLs and limits. The variable of a field is `GCVAE_` and its name in capitals."""

    model_config = SettingsConfigDict(extra="forbid")

    host: Annotated[str, USUAL] = "127.0.0.1"
    port: Annotated[int, USUAL] = Field(default=8000, ge=0, le=65535)
    allowed_hosts: Annotated[tuple[str, ...], NoDecode, USUAL] = Field(
        default=("localhost", "127.0.0.1", "::1"),
        description="names, with commas between, that a service without keys may be reached by; "
        "stops DNS rebinding",
    )

    home_dir: Annotated[Path, USUAL] = Field(
        default=Path("gcvae-data"),
        description="folder of records, queue and bytes, where the URLs are not given",
    )
    database_url: Annotated[str | None, USUAL] = Field(
        default=None, repr=False, description="None: SQLite in the data folder"
    )
    broker_url: Annotated[str | None, USUAL] = Field(
        default=None, repr=False, description="None: a queue in the data folder"
    )
    store_url: Annotated[str | None, USUAL] = Field(
        default=None, description="None: a store in the data folder"
    )
    store_access_key: Annotated[str | None, USUAL] = Field(
        default=None, repr=False, description="of S3"
    )
    store_secret_key: Annotated[str | None, USUAL] = Field(
        default=None, repr=False, description="of S3"
    )

    max_upload_bytes: Annotated[int, USUAL] = Field(default=512 * MEBIBYTE, gt=0)
    max_table_bytes: int = Field(
        default=2 * GIBIBYTE,
        gt=0,
        description="an uploaded table or database, unpacked",
    )
    max_json_bytes: int = Field(default=32 * MEBIBYTE, gt=0)
    max_head_bytes: int = Field(
        default=64 * KIBIBYTE, gt=0, description="line and headers of a request"
    )
    max_rows: Annotated[int, USUAL] = Field(default=2_000_000, gt=0)
    max_columns: int = Field(default=500, gt=0)
    max_tables: int = Field(default=100, gt=0, description="of one database")
    max_cells: int = Field(default=50_000_000, gt=0, description="rows times columns")
    max_levels: int = Field(default=100_000, gt=0, description="levels of one column")
    max_cell_characters: int = Field(default=65_536, gt=0, description="of an uploaded table")
    max_sample_rows: int = Field(default=10_000_000, gt=0, description="rows one sample may have")
    max_inline_sample_rows: int = Field(
        default=100_000, ge=0, description="more rows than this become a job"
    )
    sample_shard_rows: int = Field(
        default=262_144, gt=0, description="larger samples are drawn by several workers"
    )
    score_shard_rows: int = Field(
        default=65_536, gt=0, description="larger tables are scored by several workers"
    )
    max_inline_score_rows: int = Field(
        default=1_000, ge=0, description="more rows than this become a job"
    )
    max_score_draws: int = Field(default=10_000, gt=0)
    max_imputation_draws: int = Field(default=100, gt=0, description="completions of each row")
    max_requests_per_minute: int = Field(
        default=6_000, gt=0, description="of each key, at each API process"
    )
    session_seconds: int = Field(
        default=43_200, gt=0, description="a page that is signed in with a key stays so this long"
    )
    max_queued_jobs: int = Field(default=100, gt=0, description="of each workspace")
    max_stored_bytes: int | None = Field(
        default=None, gt=0, description="tables, models and results of each workspace; None: all"
    )
    max_training_seconds: float | None = Field(
        default=None, gt=0, description="of each workspace in 30 days; None: as long as it takes"
    )
    max_privacy_epsilon: float | None = Field(
        default=None,
        gt=0,
        description="of all models of a table together, which then all need differential privacy; "
        "None: no cap but that of the dataset",
    )
    max_privacy_delta: float = Field(
        default=1e-6, gt=0, lt=1, description="at which that epsilon is meant"
    )

    table_workers: int = Field(default=2, gt=0, description="uploads that are parsed at once")
    table_waiting: int = Field(default=16, ge=0, description="uploads that may wait for that")
    table_memory_bytes: int = Field(
        default=2 * GIBIBYTE, gt=0, description="of the process that reads a table"
    )
    table_seconds: int = Field(default=300, gt=0, description="processor time of that process")
    inline_workers: Annotated[int, USUAL] = Field(
        default=2, gt=0, description="processes that sample and score, started when needed"
    )
    inline_waiting: int = Field(default=8, ge=0, description="requests that may wait for one")
    inline_torch_threads: int = Field(default=1, gt=0, description="torch threads of each of them")
    inline_seconds: float = Field(
        default=300.0, gt=0, description="a streamed answer that takes longer gives up its place"
    )
    loaded_models: int = Field(
        default=4, gt=0, description="models kept in memory by each of these processes"
    )
    preload_torch: bool = Field(
        default=True, description="start the first of them right after the port is open"
    )

    database_seconds: float = Field(
        default=1.5, gt=0, description="a statement that takes longer is answered by 503"
    )
    reservation_seconds: float = Field(
        default=3600.0,
        gt=0,
        description="bytes that a request left without a record, for it died, go after this time",
    )

    event_interval_seconds: float = Field(default=0.5, gt=0)
    event_ping_seconds: float = Field(default=15.0, gt=0)
    shutdown_seconds: int = Field(
        default=10,
        gt=0,
        description="to the end; open requests get two seconds less",
    )

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split_hosts(cls, hosts: object) -> object:
        return [host.strip() for host in hosts.split(",")] if isinstance(hosts, str) else hosts

    def database(self) -> str:
        """Returns the database's URL."""
        if self.database_url is not None:
            return self.database_url
        return f"sqlite:///{self._folder() / DATABASE_FILE}"

    def has_database(self) -> bool:
        """Whether the database exists; does not create one."""
        return self.database_url is not None or (self.home_dir / DATABASE_FILE).exists()

    def broker(self) -> str:
        """Returns the broker's URL."""
        if self.broker_url is not None:
            return self.broker_url
        return f"filesystem://{self._folder() / 'queue'}"

    def store(self) -> str:
        """Returns the store's URL."""
        if self.store_url is not None:
            return self.store_url
        return f"file://{self._folder() / 'store'}"

    def _folder(self) -> Path:
        """Returns the absolute path of the data folder."""
        return self.home_dir.absolute()


def variable(field: str) -> str:
    """Returns the environment variable of a field, for error messages.

    >>> variable("max_rows")
    'GCVAE_MAX_ROWS'
    """
    assert field in ServiceSettings.model_fields, field
    return variable_of(field)
