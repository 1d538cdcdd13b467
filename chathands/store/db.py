"""One SQLite file: opening it safely, its schema version, and errors in our own tree.

Every statement is its own transaction (autocommit): one hop to the connection's thread, so that a
cancelled task can never leave half of something behind.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import aiosqlite

from chathands.errors import StoreError

BUSY_SECONDS = 5.0
"""Wait for a lock; only another process (the command line) can hold one, and only for a moment."""

Row = Sequence[Any]


class Database:
    """A file in WAL mode with one connection, which is also its only writer in this process.

    Make one with `await Database.open(...)`; end it with `await aclose()`.
    """

    def __init__(self, path: Path, connection: aiosqlite.Connection) -> None:
        self.path = path
        self._connection = connection
        self._closed = False

    @classmethod
    async def open(
        cls,
        path: Path,
        migrations: Sequence[Sequence[str]],
        *,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
    ) -> Database:
        """Open or create `path` (0600 in a directory of 0700) and bring its schema up to date.

        `migrations[n]`, a list of statements, leads from version n to n + 1. Raises StoreError:
        not a database, no permission, or written by a newer program.
        """
        with _translated(path):
            await asyncio.to_thread(_prepare, path)
            connection = await aiosqlite.connect(
                path, isolation_level=None, timeout=BUSY_SECONDS, cached_statements=64
            )
        database = cls(path, connection)
        try:
            # auto_vacuum has to be set before the first table: see Traces, which gives pages back.
            for pragma in (
                "auto_vacuum = INCREMENTAL",
                "journal_mode = WAL",
                f"synchronous = {synchronous}",
                "trusted_schema = OFF",
            ):
                await database.query(f"PRAGMA {pragma}")
            await database._migrate(migrations)
        except BaseException:
            await database.aclose()
            raise
        return database

    async def query(self, sql: str, parameters: Iterable[Any] = ()) -> list[Row]:
        """Run one statement and give its rows. Raises StoreError.

        When the waiting task is cancelled the statement still runs whole.
        """
        if self._closed:
            raise StoreError(f"{self.path.name} is closed")
        with _translated(self.path):
            return list(await self._connection.execute_fetchall(sql, parameters))

    async def aclose(self) -> None:
        """Finish what is queued and close the file. May be called twice."""
        if not self._closed:
            self._closed = True
            await self._connection.close()

    async def _migrate(self, migrations: Sequence[Sequence[str]]) -> None:
        async with self._transaction():
            await self.query("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL)")
            rows = await self.query("SELECT version FROM schema_version")
            if not rows:
                await self.query("INSERT INTO schema_version VALUES (0)")
            version = rows[0][0] if rows else 0
            if version > len(migrations):
                raise StoreError(
                    f"{self.path} has schema {version}, this program knows {len(migrations)}",
                    sentence=f"状态文件 {self.path.name} 是更新版本的程序写的，"
                    "请升级程序，或换一个 CHATHANDS__STATE_DIR。",
                )
            for statement in chain.from_iterable(migrations[version:]):
                await self.query(statement)
            await self.query("UPDATE schema_version SET version = ?", [len(migrations)])

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[None]:
        """Only while opening: nobody else uses the connection yet."""
        await self.query("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            await self.query("ROLLBACK")
            raise
        await self.query("COMMIT")


def _prepare(path: Path) -> None:
    """SQLite gives the WAL and its index the mode of the database file, so that one is enough."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chmod(path.parent, 0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    os.chmod(path, 0o600)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Errors of SQLite and of the file system as StoreError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreError(f"{path}: {error}") from error
    except sqlite3.Error as error:
        raise StoreError(
            f"{path}: {error}",
            sentence=f"状态文件 {path.name} 已损坏，请管理员从备份恢复，"
            "或移走它再重启（会丢失历史对话和待确认的操作）。",
        ) from error
    except OSError as error:
        raise StoreError(f"{path}: {error}") from error
