"""Looks for secrets in the tracked files, and for dependencies that are not declared, locked and installed as locked.

It needs no network, so it knows no advisories: `make audit` asks the package index for those.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SECRETS = {
    "private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY",
    "AWS key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub token": r"\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_\w{22,}",
    "GitLab token": r"\bglpat-[\w-]{20}\b",
    "Slack token": r"\bxox[abprs]-[\w-]{10,}",
    "Google key": r"\bAIza[\w-]{35}\b",
    "PyPI token": r"\bpypi-[\w-]{50,}",
    "web token": r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}",
    "password in an address": r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"'{}<>]+:(?!\$)[^\s/@\"'{}<>]{3,}@",
    "assigned secret": r"(?i)\b(?:password|secret|api_?key|access_?key|token)\b[\"']?\s*[:=]\s*[\"'][\w+/=-]{20,}[\"']",
}
_PATTERNS = {kind: re.compile(pattern) for kind, pattern in SECRETS.items()}
_BROUGHT_BY_PYSPARK = {"py4j", "google"}
"""Its own dependency, and that of Spark Connect."""
_LARGEST = 2_000_000


def secrets_in(text: str) -> Iterator[tuple[int, str]]:
    """Line and kind of everything that looks like a secret.

    >>> list(secrets_in("key = 'AKIA" + "ABCDEFGHIJKLMNOP'"))
    [(1, 'AWS key')]
    """
    for number, line in enumerate(text.splitlines(), start=1):
        yield from ((number, kind) for kind, pattern in _PATTERNS.items() if pattern.search(line))


def leaked() -> Iterator[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    for name in listed.splitlines():
        path = ROOT / name
        if path.is_file() and path.stat().st_size < _LARGEST and b"\0" not in path.read_bytes():
            for number, kind in secrets_in(path.read_text(errors="replace")):
                yield f"{name}:{number}: looks like a secret ({kind})"


def locked() -> dict[str, str]:
    """The locked versions by name, for this Python and system; raises if one is not pinned or has no hash."""
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text()):
        if entry.startswith("#"):
            continue
        requirement = Requirement(re.split(r"\s*\\?\n", entry)[0])
        pins = list(requirement.specifier)
        if [pin.operator for pin in pins] != ["=="] or "--hash=sha256:" not in entry:
            raise SystemExit(f"requirements.lock: not pinned, or without a hash: {requirement}")
        if requirement.marker is None or requirement.marker.evaluate():
            found[_normal(requirement.name)] = pins[0].version
    return found


def not_as_locked() -> Iterator[str]:
    """Packages that are installed in another version than the locked one."""
    for name, version in locked().items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # locked for another system
        if installed != version:
            yield f"{name}: {installed} is installed, and {version} is locked"


def undeclared() -> Iterator[str]:
    """Imports of the package that no dependency or extra of pyproject.toml provides."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (text for extra in project["optional-dependencies"].values() for text in extra)
    names = {_normal(re.split(r"[^\w.-]", text)[0]) for text in [*project["dependencies"], *extras]}
    known = {name.replace("-", "_") for name in names} | _BROUGHT_BY_PYSPARK | sys.stdlib_module_names | {"slackwater"}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                modules = [node.module]
            for module in modules:
                if module.partition(".")[0] not in known:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: {module} is no declared dependency"


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    problems = [*leaked(), *not_as_locked(), *undeclared()]
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(1 if problems else 0)
