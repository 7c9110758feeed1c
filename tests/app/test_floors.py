"""The structure that import-linter's forbidden lists cannot state: kernels have an allow-list."""

import ast
import sys
from importlib import import_module
from pathlib import Path

import railsweep.engine

KERNELS_MAY_IMPORT = {"numpy", "numba", "railsweep"} | sys.stdlib_module_names


def imported_roots(source: str) -> set[str]:
    """Top-level names of the absolute imports in a source text."""
    roots = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            roots.add(node.module.partition(".")[0])
    return roots


def test_kernels_import_only_numpy_numba_and_the_standard_library(repository: Path) -> None:
    sources = list((repository / "kernels").rglob("*.py"))
    assert sources
    foreign = {path.name: imported_roots(path.read_text()) - KERNELS_MAY_IMPORT for path in sources}
    assert not {name: roots for name, roots in foreign.items() if roots}


def test_engine_export_table_agrees_with_what_type_checkers_see(repository: Path) -> None:
    tree = ast.parse((repository / "engine" / "__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname or alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == railsweep.engine.MODULE_OF_NAME


def test_every_engine_export_resolves() -> None:
    for name, module in railsweep.engine.MODULE_OF_NAME.items():
        # an object is the one of its own module; a table of figures has no __module__ to ask
        assert getattr(railsweep.engine, name) is getattr(import_module(f"railsweep.engine.{module}"), name)
