"""What `mkdocs` builds the guide from beside the pages of `docs/`: the README and its like, the
notebooks, and the references.

mkdocs calls `on_files` and `on_page_markdown`, as mkdocs.yml says.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from notebooks import notebook_page
from references import client_page, commands_page, library_page, rest_page

ROOT = Path(__file__).parents[2]

_OF_THE_PROJECT = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "contributing.md": "CONTRIBUTING.md",
}
_REFERENCES = {
    "reference-library.md": library_page,
    "reference-client.md": client_page,
    "reference-rest.md": rest_page,
    "reference-commands.md": commands_page,
}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that stand elsewhere, or are written from the code."""
    for place, name in _OF_THE_PROJECT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, place, content=_links_from_the_root(text)))
    for place, page in _REFERENCES.items():
        files.append(File.generated(config, place, content=page()))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        text, pictures = notebook_page(path)
        files.append(File.generated(config, f"notebook-{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, name, content=content))
    for name in ("guide.css", "guide.js"):
        text = (ROOT / "deploy" / "guide" / name).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A page as the site has it: blocks without the names that tests know them by."""
    markdown = re.sub(r"(?m)^(```\w+) .*$", r"\1", markdown)
    markdown = re.sub(r"\]\((?:notebooks/)?(\w+)\.ipynb\)(?!{)", r"](notebook-\1.md)", markdown)
    for place, name in _OF_THE_PROJECT.items():
        markdown = markdown.replace(f"](../{name}", f"]({place}")
    return re.sub(r"\[([^\]]+)\]\(\.\./([^)]+)\)", r"\1 (`\2`)", markdown)


def _links_from_the_root(text: str) -> str:
    """Links to pages of `docs/`, from within it; what is nowhere on the site is only named."""
    text = text.replace("](docs/", "](")
    for place, name in _OF_THE_PROJECT.items():
        text = text.replace(f"]({name}", f"]({place}")
    return re.sub(r"\]\(((?!http|[\w./-]+\.(?:md|ipynb|png|svg)|#)[^)]+)\)", r"] (`\1`)", text)
