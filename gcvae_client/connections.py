"""Methods of the client for connections, which are named databases, buckets and web servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gcvae_client.bodies import present
from gcvae_client.errors import Document
from gcvae_client.objects import Dataset
from gcvae_client.resources import Resource, id_of, path_of, path_of_id
from gcvae_client.webhooks import Webhooks


class Connections(Webhooks):
    """Base class of `Client` with the methods for connections.

    Creating and deleting connections needs a key with the scope `admin`.
    """

    def create_connection(self, name: str, url: str, password: str | None = None) -> Document:
        """Creates a connection and returns it, without its password.

        Args:
            name: Name by which datasets and samples refer to the connection.
            url: `postgresql://USER@HOST/DATABASE` (also mysql and mariadb), `sqlite:///FILE`,
                `s3://ACCESS_KEY@BUCKET/PREFIX?region=…&endpoint=…` or `https://{HOST}/{PREFIX}`.
                The operator of the service must have allowed the host.
            password: Password of the user, secret key of a bucket, or bearer token of a web server.
                The service keeps it encrypted and never returns it.

        Raises:
            InvalidError: The URL is invalid, or its host is not allowed.
        """
        body = present(name=name, url=url, password=password)
        return self._json("POST", "/v1/connections", json=body)

    def connections(self) -> Iterator[Document]:
        """Yields all connections of the workspace, the newest first."""
        return self._items("/v1/connections")

    def test_connection(self, connection: Resource) -> list[str] | None:
        """Tests a connection. Returns the names of the tables if it is a database, otherwise None.

        Args:
            connection: Name, id or dictionary of the connection.

        Raises:
            InvalidError: The connection cannot be used.
        """
        path = path_of("connection", connection, "/test")
        return self._json("POST", path)["tables"]

    def import_table(
        self,
        connection: Resource,
        *,
        table: str | None = None,
        query: str | None = None,
        key: str | None = None,
        name: str | None = None,
        schema: Document | None = None,
        encoding: str | None = None,
    ) -> Dataset:
        """Creates a dataset from a table, sheet or file of a connection, and returns it.

        Args:
            connection: Name, id or dictionary of the connection.
            table: Name of a database's table, or of a workbook's sheet.
            query: SELECT statement for a database.
            key: Path of a file below the connection's URL.
            name: Name of the dataset. Default: that of the table or file.
            schema: Known properties of the columns as JSON; all others are inferred.
            encoding: Encoding of a text file, such as cp1252. Default: UTF-8.

        Raises:
            InvalidError: The connection cannot be read, or the table cannot be used.
        """
        body = present(
            connection=id_of(connection, "connection"), table=table, query=query, key=key,
            name=name, schema=schema, encoding=encoding,
        )  # fmt: skip
        return self._json("POST", "/v1/datasets", json=body, creates=True)

    def export_sample(
        self,
        /,
        model: Resource,
        connection: Resource,
        *,
        table: str | None = None,
        key: str | None = None,
        if_exists: str = "fail",
        on_progress: Callable[[Document], None] | None = None,
        **sampling: Any,
    ) -> Document:
        """Generates synthetic rows in a job and writes them to a connection, all or none.

        Args:
            connection: Name, id or dictionary of the connection.
            table: Name of the database's table; for several tables, text before their names, such
                as `synthetic.` for a schema.
            key: Path of the file in a bucket.
            if_exists: `fail`, `append` or `replace`, for tables and files that exist.
            on_progress: Function that is called with the job as JSON when the job has changed.
            sampling: Members of the request for a sample, such as `rows`, `seed` and `given`.

        Returns:
            JSON object with the connection, table or key, and the number of written rows.

        Raises:
            InvalidError: A member of the request is invalid, or the connection refuses the rows.
        """
        asked = {"format": "parquet", **sampling, "job": True}
        path = path_of("model", model, "/samples")
        result = self._json("POST", path, json=asked, creates=True)
        self.wait(result, on_progress)
        target = id_of(connection, "connection")
        body = present(connection=target, table=table, key=key, if_exists=if_exists)
        return self._json("POST", f"{path_of_id(result['id'])}/export", json=body)
