"""HTML tables for notebooks."""

from html import escape
from typing import Any, Iterable, Sequence


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table with a title."""

    def line(tag: str, cells: Sequence[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<div><p><b>{escape(title)}</b></p><table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table></div>"
