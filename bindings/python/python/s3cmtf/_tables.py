"""Tables of results: text, and HTML for notebooks."""

from html import escape
from typing import Any, Iterable, Sequence, Tuple

#: A title, the head and the rows.
Table = Tuple[str, Sequence[str], Sequence[Sequence[Any]]]


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Returns a table with a title."""

    def line(tag: str, cells: Sequence[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<div><p><b>{escape(title)}</b></p><table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table></div>"


def text_table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns a table as text: a title and aligned columns."""
    lines = [tuple(map(str, line)) for line in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    aligned = ("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths)).rstrip() for line in lines)
    return "\n".join([title, *aligned])
