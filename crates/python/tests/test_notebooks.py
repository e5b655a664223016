"""The notebooks of the book run from the first cell to the last."""

import pathlib

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = pathlib.Path(__file__).parents[3] / "docs/notebooks"


@pytest.mark.parametrize("name", ["why-thin-streams-wait", "what-would-my-game-gain", "design-a-profile"])
# Of the client's own libraries.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_notebook_runs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = FOLDER / f"{name}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "no outputs are kept in the repository"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(FOLDER)}}).execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code)
    shown = [output["data"]["text/plain"] for cell in code for output in cell.outputs if "data" in output]
    assert any(text.startswith("alt.") and "Chart" in text for text in shown), "a chart is drawn"


def test_the_sweep_of_a_profile_takes_place_on_dask():
    notebook = nbformat.read(FOLDER / "design-a-profile.ipynb", as_version=4)
    (cell,) = (cell.source for cell in notebook.cells if cell.cell_type == "code" and ".run(" in cell.source)
    assert "LocalCluster(" in cell and "study.run(client.get_executor())" in cell


def test_every_notebook_is_run():
    assert len(list(FOLDER.glob("*.ipynb"))) == 3
