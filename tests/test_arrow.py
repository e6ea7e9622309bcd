"""sims -> {strategies, clients} -> fedsbc, read from the imports; and who may import what else."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PARTS = ("fedsbc", "strategies", "clients", "sims")
MAY_IMPORT = {
    "fedsbc": {"fedsbc"},
    "strategies": {"strategies", "fedsbc"},
    "clients": {"clients", "fedsbc"},
    "sims": {"sims", "strategies", "clients", "fedsbc"},
}
PUBLIC_FLOWER = {"flwr", "flwr.app", "flwr.serverapp", "flwr.clientapp"}
ONLY_HERE = {
    "flwr": {"strategies", "clients", "sims", "fedsbc/message.py"},
    "ray": {"sims"},
    "flwr_datasets": {"fedsbc/data/partition.py"},
    "datasets": {"fedsbc/data/partition.py"},
}
LATE_ONLY = {"pyarrow", "plotly", "matplotlib", "pandas", "flwr_datasets", "datasets"}
"""Not in the base install, or heavy: inside functions only."""


def sources() -> list[str]:
    return sorted(
        path.relative_to(ROOT).as_posix() for part in PARTS for path in (ROOT / part).rglob("*.py")
    )


def imports(nodes: list[ast.AST], package: str) -> Iterator[str]:
    """Yield the dotted names that imports name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            module = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            yield from (
                argument.value for argument in node.args if isinstance(argument, ast.Constant)
            )


def of_file(source: str) -> set[str]:
    tree = ast.parse((ROOT / source).read_text())
    return set(imports(list(ast.walk(tree)), source.rpartition("/")[0].replace("/", ".")))


def at_import(source: str) -> set[str]:
    """Return what a file imports as soon as it is imported itself."""

    def outside_functions(node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for child in ast.iter_child_nodes(node):
            is_type_checking = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
            if (
                not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
                and not is_type_checking
            ):
                yield from outside_functions(child)

    tree = ast.parse((ROOT / source).read_text())
    return set(imports(list(outside_functions(tree)), source.rpartition("/")[0].replace("/", ".")))


def first(name: str) -> str:
    return name.partition(".")[0]


@pytest.mark.parametrize("source", sources())
def test_the_arrow_goes_one_way(source):
    ours = {first(name) for name in of_file(source)} & {*PARTS, "tests"}
    assert ours - MAY_IMPORT[first(source.replace("/", "."))] == set()


@pytest.mark.parametrize("library", ONLY_HERE)
def test_a_library_is_imported_only_where_it_belongs(library):
    users = [source for source in sources() if library in {first(name) for name in of_file(source)}]
    assert users, f"nothing imports {library}: the rule is out of date"
    places = ONLY_HERE[library]
    assert [u for u in users if u not in places and u.partition("/")[0] not in places] == []


def test_private_flower_modules_are_touched_in_one_file_at_most():
    private = {
        source: [name for name in of_file(source) if is_private_flower(name)]
        for source in sources()
    }
    users = {source: names for source, names in private.items() if names}
    assert len(users) <= 1, users


def is_private_flower(name: str) -> bool:
    """Whether a dotted name lies in a module of Flower that is not public."""
    return first(name) == "flwr" and not any(
        name == public or (public != "flwr" and name.startswith(public + "."))
        for public in PUBLIC_FLOWER
    )


@pytest.mark.parametrize("source", sources())
def test_heavy_libraries_come_late(source):
    assert {first(name) for name in at_import(source)} & LATE_ONLY == set()


BLOCKED = "ray pandas matplotlib plotly pyarrow datasets flwr_datasets torchvision"


@pytest.mark.parametrize("module", ["clients.app", "strategies.app", "fedsbc.config"])
def test_the_base_install_is_enough(module, tmp_path):
    script = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BLOCKED.split()}:
            raise ModuleNotFoundError("not in the base install: " + name, name=name)
sys.meta_path.insert(0, Blocked())
try:
    import pandas
    sys.exit("nothing is blocked")
except ModuleNotFoundError:
    pass
import {module}
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
