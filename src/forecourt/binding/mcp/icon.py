"""Small pictures for the tools and the server, drawn here so that no host has to fetch any."""

import base64
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["icon"]

_PATHS: Final[Mapping[str, str]] = {
    "car": "M2 15h20v-4l-3-1-2-4H7l-3 4-2 1zM6 15v3M18 15v3",
    "chart": "M4 20V10M10 20V4M16 20v-7M22 20H2",
    "house": "M3 11l9-7 9 7M6 9v11h12V9M10 20v-6h4v6",
    "lens": "M10 3a7 7 0 1 0 0 14a7 7 0 1 0 0-14M15 15l6 6",
    "letter": "M3 5h18v14H3zM3 6l9 7 9-7",
}


def icon(name: str) -> dict[str, Any]:
    """Return an icon as MCP shows it: an SVG of lines that suits any size, as a data URI."""
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#456" stroke-width="2">'
        f'<path d="{_PATHS[name]}"/></svg>'
    )
    encoded = base64.b64encode(svg.encode()).decode()
    return {"src": f"data:image/svg+xml;base64,{encoded}", "mimeType": "image/svg+xml", "sizes": ["any"]}
