"""The documentation as a site: complete, without warnings, and without other servers."""

import re

import pytest

from cards_bringup.cli import COMMANDS, main
from cards_bringup.docs_site import site
from cards_bringup.docs_site.repository_pages import linked_files, page_text, with_site_links
from cards_core.errors import CardsError
from cards_core.shared_files import checkout

for package in ("sphinx", "myst_parser", "furo", "griffe"):
    pytest.importorskip(package, reason=f"{package} is not installed (./cards setup --test)")
pytest.importorskip("rclpy", reason="rclpy is not installed: nodes declare topics with it")

TOP = checkout()
pytestmark = [
    pytest.mark.skipif(TOP is None, reason="needs the checkout: its docs are not installed"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site; a warning of Sphinx raises."""
    out = tmp_path_factory.mktemp("docs") / "site"
    assert site.build(TOP, out) > 60
    return out


def test_every_page_of_docs_is_in_it(built):
    for page in (TOP / "docs").glob("*.md"):
        assert (built / f"{page.stem}.html").is_file()


def test_the_reference_has_all_commands_nodes_and_names(built):
    commands = (built / "reference" / "commands.html").read_text()
    for name in COMMANDS:
        assert f'id="{name}"' in commands
    assert "--headless" in commands
    assert "--condition" in commands  # of a kind of analysis
    for name in ("analyse-workspace", "import-caspr", "reproduce"):
        assert f'id="{name}"' in commands
    assert "command_timeout" in (built / "reference" / "parameters.html").read_text()
    import cards

    front = (built / "reference" / "python" / "cards.html").read_text()
    for name in set(cards.__all__) - {"__version__", "tensegrity"}:
        assert f'id="cards.{name}"' in front, name
    assert (
        'id="cards_core.robot.state.RobotState"'
        in (built / "reference" / "python" / "robot.html").read_text()
    )


def test_nothing_is_loaded_from_other_servers(built):
    for page in built.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img|iframe)[^>]*(?:src|href)="([^"]+)"', page.read_text()
        )
        assert not [one for one in loaded if one.startswith(("http:", "https:", "//"))], page


def staged(monkeypatch, index):
    def stage(_top, folder):
        (folder / "index.md").write_text(index)

    monkeypatch.setattr(site, "stage", stage)


@pytest.mark.parametrize(
    ("index", "complaint"),
    [
        ("# A\n\n[there](nowhere.md)\n", "nowhere.md"),
        ("# A\n\n[there](#no-such-heading)\n", "no-such-heading"),
        ("# A\n\n```{toctree}\nmissing\n```\n", "missing"),
    ],
)
def test_a_broken_link_is_an_error(tmp_path, monkeypatch, index, complaint):
    staged(monkeypatch, index)
    with pytest.raises(CardsError, match=complaint):
        site.build(TOP, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_only_an_older_site_is_replaced(tmp_path, monkeypatch, capsys):
    staged(monkeypatch, "# A\n")
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["docs", "--out", str(tmp_path)]) == 2
    assert "holds other files" in capsys.readouterr().err
    for _ in range(2):
        assert main(["docs", "--out", str(tmp_path / "site")]) == 0
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_links_to_files_of_the_repository_lead_to_their_pages():
    text = "[a](../src/cards/setup.py), [b](python.md#names), [c](https://x.org)\n```\n[d](../README.md)\n```\n"
    assert with_site_links(text, "docs/views.md", TOP) == text.replace(
        "../src/cards/setup.py", "repository/src/cards/setup.py.md"
    )
    back = "[a](../docs/python.md), [b](springs.py)"
    assert with_site_links(back, "examples/README.md", TOP) == (
        "[a](../../python.md), [b](springs.py.md)"
    )
    files = linked_files(TOP)
    assert {"CONTRIBUTING.md", "examples/springs.py", "firmware/README.md"} <= set(files)
    assert "```python\n" in page_text(TOP, "examples/springs.py")
