"""One page of the documentation, from Markdown to HTML: headings, links and searchable sections.

Pages are rendered by mull's own Markdown reader. Headings get the ids that GitHub gives them, so a
link that works in the repository works on the site too; a link to another page is rewritten to
where that page lies on the site.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from html import escape, unescape
from typing import NamedTuple

from mull.transcripts.markdown_html import markdown_html, web_link

__all__ = ["Heading", "Rendered", "Section", "relative", "render", "slug"]

_COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^<picture>\n(.*?)^</picture>\n", re.MULTILINE | re.DOTALL)
_ATTRIBUTE = re.compile(r'\b(srcset|src|alt)="([^"]*)"')
_HEADING = re.compile(r'<h([1-6]) dir="auto">(.*?)</h\1>', re.DOTALL)
_IMAGE = re.compile(r'<a data-image="([^"]*)">(.*?)</a>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_WEB = re.compile(r"(?:https?|mailto):")


class Heading(NamedTuple):
    """A heading of a page."""

    level: int
    id: str
    text: str


class Section(NamedTuple):
    """The text below one heading, for the search index."""

    heading: Heading
    text: str


class Rendered(NamedTuple):
    """A page as HTML, with its sections in order."""

    html: str
    sections: list[Section]

    @property
    def title(self) -> str:
        """The first heading."""
        return self.sections[0].heading.text


def slug(heading: str) -> str:
    """The id that GitHub gives a heading, before numbering."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def render(text: str, address: Callable[[str], str]) -> Rendered:
    """Render a page; `address` turns a relative address of the source into one of the site."""

    def link(target: str, is_image: bool) -> tuple[str, str]:
        if is_image:
            return f'<a data-image="{escape(address(target))}">', "</a>"
        if _WEB.match(target):
            return web_link(target, False)
        return f'<a href="{escape(address(target))}">', "</a>"

    out: list[str] = []
    at = 0
    text = _COMMENT.sub("", text)
    for picture in _PICTURE.finditer(text):
        out.append(markdown_html(text[at : picture.start()], first_heading=1, link=link))
        out.append(_picture(dict(_ATTRIBUTE.findall(picture[1])), address))
        at = picture.end()
    out.append(markdown_html(text[at:], first_heading=1, link=link))
    html = _IMAGE.sub(_image, "\n".join(out))
    headings = list(_headings(html))
    named = iter(headings)
    html = _HEADING.sub(lambda found: _with_id(found, next(named)), html)
    return Rendered(html, list(_sections(html, headings)))


def _picture(attributes: dict[str, str], address: Callable[[str], str]) -> str:
    """A picture with a light and a dark version; the page's own switch chooses between them."""
    alt = attributes["alt"]
    return "".join(
        f'<img class="{theme}" alt="{alt}" src="{escape(address(attributes[name]))}">'
        for theme, name in (("light", "srcset"), ("dark", "src"))
    )


def _image(found: re.Match[str]) -> str:
    return f'<img alt="{escape(unescape(_TAG.sub("", found[2])))}" src="{found[1]}">'


def _headings(html: str) -> Iterator[Heading]:
    seen: dict[str, int] = {}
    for found in _HEADING.finditer(html):
        text = unescape(_TAG.sub("", found[2]))
        name = slug(text)
        number = seen[name] = seen.get(name, -1) + 1
        yield Heading(int(found[1]), f"{name}-{number}" if number else name, text)


def _with_id(found: re.Match[str], heading: Heading) -> str:
    tag = f"h{heading.level}"
    anchor = f'<a class="anchor" href="#{heading.id}" aria-label="Link to this section">#</a>'
    return f'<{tag} id="{heading.id}">{found[2]}{anchor if heading.level > 1 else ""}</{tag}>'


def _sections(html: str, headings: list[Heading]) -> Iterator[Section]:
    bodies = re.split(r"<h[1-6] id=.*?</h[1-6]>", html, flags=re.DOTALL)[1:]
    for heading, body in zip(headings, bodies, strict=True):
        spaced = re.sub(r"</(?:td|th|li)>|<(?:p|ul|ol|pre|div)\b", r" \g<0>", body)
        yield Section(heading, " ".join(unescape(_TAG.sub("", spaced)).split()))


def relative(target: str, source: str) -> str:
    """The address of one file of the site as seen from another."""
    return posixpath.relpath(target, posixpath.dirname(source) or ".")
