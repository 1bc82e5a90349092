"""Converts the notebooks of `docs/notebooks/`, with their stored outputs, to pages of the
documentation site.

Styles are removed from outputs, because the site has its own and its content security policy
forbids others.
"""

from __future__ import annotations

import base64
import html
import json
import re
from pathlib import Path
from typing import Any


def notebook_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Converts a notebook to a page of the documentation site.

    The page is published one folder above the notebook, so `../` is removed from its links.

    Returns:
        (page in Markdown, contents of the PNG images of its outputs by their paths in the site).
    """
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source.replace("](../", "]("))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            if "image/png" in output.get("data", {}):
                name = f"notebooks/{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode(output["data"]["image/png"])
                parts.append(f"![{_alt(output, cell)}]({name})")
            else:
                parts.append(f'<div class="output">{_shown(output)}</div>')
    parts.append(f"[Download this notebook](notebooks/{path.name}){{ download={path.name} }}")
    return "\n\n".join(parts) + "\n", pictures


def _alt(output: dict[str, Any], cell: dict[str, Any]) -> str:
    """Returns the alternative text of an output image, or else of its cell."""
    return str(output["metadata"].get("image/png", {}).get("alt") or cell["metadata"]["alt"])


def _shown(output: dict[str, Any]) -> str:
    """Returns what a cell printed as one block of HTML, without empty lines, which would end the
    block."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "text/html" not in data:
        return f"<pre>{html.escape(''.join(data['text/plain']).rstrip())}</pre>"
    page = re.sub(r"(?s)<style.*?</style>", "", "".join(data["text/html"]))
    bare = re.sub(r"<(\w+)\s[^>]*>", r"<\1>", page)
    return re.sub(r"\s*\n\s*", "", bare)
