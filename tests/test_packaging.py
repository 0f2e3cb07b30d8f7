import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest

from korbert.system.extras import EXTRAS, MissingPackage, needed_for, package

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _normal(name):
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", name)[0]).lower()


def test_extras_name_the_packages_that_pip_installs():
    distributions = packages_distributions()
    for extra, packages in EXTRAS.items():
        asked = {_normal(one) for one in PROJECT["project"]["optional-dependencies"][extra]} - {"korbert"}
        named = [{_normal(one) for one in distributions[name]} for name in packages]
        assert all(own & asked for own in named), extra
        assert asked <= set().union(*named), extra


def test_what_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingPackage, match=r"^clean needs duckdb: pip install 'korbert\[pipeline\]'$"):
        package("duckdb", "clean")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), needed_for("clean"):
        import no_such_package  # noqa: F401


@pytest.fixture
def built(tmp_path):
    """(what) -> the file that setuptools builds from a clone named korbert, as for pip, but without a network."""
    clone = tmp_path / "korbert"
    for name in ("korbert", "corpus", "pipelines"):
        shutil.copytree(ROOT / name, clone / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, clone)

    def file(what):
        build = f"from setuptools import build_meta; build_meta.build_{what}('dist')"
        done = subprocess.run([sys.executable, "-c", build], cwd=clone, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return next((clone / "dist").glob("*.whl"))

    return file


@pytest.mark.slow
def test_an_editable_clone_is_found_in_the_folder_that_holds_it(built, tmp_path):
    shutil.unpack_archive(built("editable"), tmp_path / "site", "zip")
    find = "import importlib.util, site; site.addsitedir('site'); print(importlib.util.find_spec('korbert').origin)"
    found = subprocess.check_output([sys.executable, "-S", "-c", find], cwd=tmp_path, env={}, text=True)
    assert found.strip() == str(tmp_path / "korbert" / "korbert" / "__init__.py")


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_their_licences(built):
    """And no tests."""
    with ZipFile(built("wheel")) as files:
        names = files.namelist()
        (entry,) = (name for name in names if name.endswith("entry_points.txt"))
        (module,) = re.findall(r"korbert = ([\w.]+):main", files.read(entry).decode())
    assert module.replace(".", "/") + ".py" in names
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert top == {*PROJECT["tool"]["check-wheel-contents"]["toplevel"]}
    licences = {name.partition("/licenses/")[2] for name in names} - {""}
    assert licences == {*PROJECT["project"]["license-files"]}
    assert not [name for name in names if "tests/" in name or "__pycache__" in name]
    kept = {"box/README.md", "sample/wiki.jsonl", "recipes/demo.toml", "templates/report.html", "korbert/py.typed"}
    assert not [end for end in kept if not any(name.endswith(f"/{end}") or name == end for name in names)]
