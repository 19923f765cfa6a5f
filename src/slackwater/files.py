"""Files that a user names: which there are, what format they have, and whether a path can be written."""

from __future__ import annotations

import fcntl
import glob
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slackwater.errors import InvalidData, InvalidOption

_CLAIM = ".slackwater-run"  # Spark ignores names that begin with a dot
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_FORMATS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"}
_FORMATS |= dict.fromkeys((".json", ".jsonl", ".ndjson"), "json")


def is_remote(where: str) -> bool:
    """Whether the path is on a file system that only Spark can look at, such as ``s3a://…``.

    >>> is_remote("s3a://bucket/in"), is_remote("file:///in"), is_remote("in/*.json")
    (True, False, False)
    """
    scheme, found, _ = where.partition("://")
    return bool(found) and scheme != "file"


def data_files(where: str) -> list[Path]:
    """The files at a path, which may be a file, a folder or a pattern, in the order of their names.

    As in Spark, names that begin with a dot or an underscore do not count.
    """
    place = where.removeprefix("file://")
    # Path.glob takes no absolute patterns.
    roots = [Path(place)] if Path(place).exists() else [Path(found) for found in sorted(glob.glob(place))]  # noqa: PTH207
    files = (file for root in roots for file in ([root] if root.is_file() else sorted(root.rglob("*"))))
    return [file for file in files if file.is_file() and not file.name.startswith((".", "_"))]


def format_of(file: Path) -> str | None:
    """``parquet``, ``csv`` or ``json`` by a file's name, which may say that it is compressed; else None.

    A Parquet file with another name is recognised by its first bytes.

    >>> format_of(Path("a.json.gz")), format_of(Path("a.CSV")), format_of(Path("a.xml"))
    ('json', 'csv', None)
    """
    suffixes = [suffix.lower() for suffix in file.suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    found = _FORMATS.get(suffixes[-1]) if suffixes else None
    return "parquet" if found is None and _starts_as_parquet(file) else found


def _starts_as_parquet(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(4) == b"PAR1"
    except OSError:
        return False


def common_format(where: str, option: str) -> str:
    """The format of the files at a local path; refuses a path without files, and files of several formats."""
    files = data_files(where)
    if not files:
        problem = "has no files" if Path(where).is_dir() else "does not exist"
        raise InvalidData("no-such-file", f"{option}{where} {problem}", "name a file, a folder with files or a pattern")
    formats = {format_of(file) for file in files}
    if len(formats) > 1 or None in formats:
        odd = next(file for file in files if format_of(file) is None or format_of(file) != format_of(files[0]))
        raise InvalidData(
            "unknown-format",
            f"{option}{where}: the format of {odd.name} is not that of the others, or not known",
            "give Parquet, CSV or JSON files, all of one format, such as 'in/*.parquet'",
        )
    (format_,) = formats
    assert format_ is not None
    return format_


def require_output_file(file: Path | None, option: str) -> None:
    """Raise now if ``file`` cannot be written later; None is always right."""
    if file is None:
        return
    if file.is_dir():
        raise InvalidOption("not-writable", f"{option} {file} is a folder", "name a file")
    if not file.parent.is_dir():
        raise InvalidOption(
            "not-writable",
            f"{option} {file}: there is no folder {file.parent}",
            "create it, or name another file",
        )
    try:
        if file.exists():
            file.open("ab").close()
        else:
            tempfile.TemporaryFile(dir=file.parent).close()
    except OSError as error:
        raise _not_writable(f"{option} {file}", error) from error


def require_output_folder(folder: str | Path | None, option: str) -> None:
    """Raise now if a folder, or files in it, cannot be created later. Nothing is left behind.

    ``option`` is what the user wrote before the folder, such as ``--out `` or ``--sink parquet:``.
    """
    if folder is None or is_remote(str(folder)):
        return
    path = Path(str(folder).removeprefix("file://")).absolute()
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not existing.is_dir():
        raise InvalidOption("not-writable", f"{option}{folder}: {existing} is a file", "name a folder")
    try:
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise _not_writable(f"{option}{folder}", error) from error


def is_unused(folder: Path) -> bool:
    """Whether a folder is empty, apart from the note of a run that claims it."""
    return all(entry.name == _CLAIM for entry in folder.iterdir())


@contextmanager
def claimed(folder: Path, option: str) -> Iterator[None]:
    """Keep other processes from claiming the folder meanwhile; refuses one that is claimed. It is created if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / _CLAIM
    with note.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidOption(
                "folder-in-use",
                f"{option} {folder}: another run is using it",
                "wait for its end, or name another",
            ) from None
        except OSError:
            pass  # a file system without locks
        try:
            yield
        finally:
            note.unlink(missing_ok=True)


def _not_writable(what: str, error: OSError) -> InvalidOption:
    return InvalidOption("not-writable", f"{what} cannot be written ({error.strerror})", "name another place")
