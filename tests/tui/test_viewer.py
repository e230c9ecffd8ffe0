"""The viewer: documents that open and close alone, scrolling, jumping, searching."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mull.tui.conversation.sections import Look
from mull.tui.screen.viewer import Document, Viewer
from mull.tui.text.lines import Span, line_width, plain_text
from tui.screens import BARE

LOOK = Look(BARE, 60, "full")


def document(title, *rows):
    def lines(look):
        return [(Span(row, look.theme.text),) for row in rows]

    return Document(title, lines, len(rows), "\n".join(rows))


def three(opened=(2,)):
    texts = [[f"{name}{n}" for n in range(10)] for name in "abc"]
    documents = [document(f"Doc {name[0][0]}", *name) for name in texts]
    return Viewer("Thoughts", documents, opened)


def shown(viewer, rows=8):
    return plain_text(viewer.lines(LOOK, rows)).split("\n")


def test_the_last_document_is_open_and_in_sight():
    rows = shown(three())
    assert rows[0] == "▾ 3. Doc c"
    assert rows[1:7] == [f"c{n}" for n in range(6)]
    assert rows[-1].startswith("Thoughts 3 of 3 · ")


def test_the_key_that_closes_is_named_however_narrow_and_all_keys_where_there_is_room():
    keys = "q closes · Tab next · Enter folds · a all · / search · ↑↓ PgUp PgDn scroll"
    for width, said in ((100, keys), (80, keys[:40]), (60, keys[:20])):
        footer = plain_text(three().lines(Look(BARE, width, "full"), 8)).split("\n")[-1]
        assert said in footer


def test_one_is_opened_alone_and_closed_again_and_all_at_once():
    viewer = three(())
    assert shown(viewer)[:3] == ["▸ 1. Doc a", "▸ 2. Doc b", "▸ 3. Doc c"]
    viewer.jump(-1)
    viewer.toggle()
    assert shown(viewer)[:2] == ["▾ 2. Doc b", "b0"]
    viewer.toggle()
    assert shown(viewer)[:3] == ["▸ 1. Doc a", "▸ 2. Doc b", "▸ 3. Doc c"]
    viewer.toggle_all()
    viewer.go(to_end=False)
    assert shown(viewer, 40)[:2] == ["▾ 1. Doc a", "a0"]
    assert "c9" in shown(viewer, 40)


def test_scrolling_ends_at_the_ends_and_chooses_what_is_in_sight():
    viewer = three((0, 1, 2))
    shown(viewer)
    viewer.go(to_end=True)
    assert "c9" in shown(viewer)
    viewer.page(1)
    assert "c9" in shown(viewer)
    viewer.go(to_end=False)
    viewer.scroll(-5)
    assert shown(viewer)[0] == "▾ 1. Doc a"
    viewer.page(2)
    assert shown(viewer)[-1].startswith("Thoughts 2 of 3")


def test_a_search_opens_what_hides_it_goes_on_and_round():
    viewer = three(())
    shown(viewer)
    assert viewer.search("B7")
    found = [line for line in viewer.lines(LOOK, 8) if any(span.style.reverse for span in line)]
    assert plain_text(found) == "b7"
    assert not viewer.search("nowhere")
    viewer.toggle_all()
    viewer.go(to_end=False)
    met = []
    for _ in range(4):
        assert viewer.search("3")
        met.append(viewer.at)
    assert met == [0, 1, 2, 2]  # the last head has a 3 as well
    assert viewer.search("3", backwards=True)
    assert viewer.at == 2


def test_a_document_that_grows_is_drawn_anew_and_one_alone_has_no_head():
    viewer = Viewer("Full text", [document("x", "one")], [0])
    assert shown(viewer)[0] == "one"
    viewer.update([document("x", "one", "two")])
    assert shown(viewer)[:2] == ["one", "two"]


actions = st.lists(
    st.sampled_from(["scroll", "page", "jump", "toggle", "all", "end", "find"]), max_size=20
)


@given(actions, st.integers(2, 30), st.integers(20, 80))
def test_whatever_is_pressed_the_screen_is_full_and_nothing_is_too_wide(pressed, rows, width):
    viewer = three()
    look = LOOK._replace(width=width)
    viewer.lines(look, rows)
    does = {
        "scroll": lambda: viewer.scroll(3), "page": lambda: viewer.page(-1),
        "jump": lambda: viewer.jump(-1), "toggle": viewer.toggle, "all": viewer.toggle_all,
        "end": lambda: viewer.go(to_end=True), "find": lambda: viewer.search("5"),
    }  # fmt: skip
    for name in pressed:
        does[name]()
        lines = viewer.lines(look, rows)
        assert len(lines) == rows
        assert all(line_width(line) <= width for line in lines)
