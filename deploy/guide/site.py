"""Hooks with which MkDocs adds further pages to those of `docs/`: the README and similar files, the
notebooks, and the generated references.

MkDocs calls `on_files` and `on_page_markdown`, as configured in mkdocs.yml.
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
    """MkDocs hook: adds pages whose source lies outside `docs/`, and pages generated from the code,
    and returns all files."""
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
    files.append(File.generated(config, "llms.txt", content=_page_list()))
    return files


def _page_list() -> str:
    """Returns the list of pages for language models (llmstxt.org): the first sentence of each says
    what a reader can do afterwards."""
    lines = ["# gcvae", "", "> Synthetic rows, row likelihoods and dependency maps of tables.", ""]
    lines += ["## Pages", ""]
    for path in sorted((ROOT / "docs").glob("*.md")):
        title, use = path.read_text(encoding="utf-8").split("\n\n")[:2]
        lines.append(f"- [{title.lstrip('# ')}]({path.stem}.html): {' '.join(use.split())}")
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """MkDocs hook: returns the page's Markdown with its links pointing to pages of the site, or as
    plain text if they leave it, and without the labels of code blocks, which only tests use."""
    markdown = re.sub(r"(?m)^(```\w+) .*$", r"\1", markdown)
    markdown = re.sub(r"\]\((?:notebooks/)?(\w+)\.ipynb\)(?!{)", r"](notebook-\1.md)", markdown)
    for place, name in _OF_THE_PROJECT.items():
        markdown = markdown.replace(f"](../{name}", f"]({place}")
    return re.sub(r"\[([^\]]+)\]\(\.\./([^)]+)\)", r"\1 (`\2`)", markdown)


def _links_from_the_root(text: str) -> str:
    """Adapts links of a file in the root folder to the site; links to files that the site does not
    contain become plain text."""
    text = text.replace("](docs/", "](")
    for place, name in _OF_THE_PROJECT.items():
        text = text.replace(f"]({name}", f"]({place}")
    return re.sub(r"\]\(((?!http|[\w./-]+\.(?:md|ipynb|png|svg)|#)[^)]+)\)", r"] (`\1`)", text)
