"""`/image PATH`: attaches a picture to the next message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mull.agent.attachments import ANY_IMAGE, read_picture
from mull.agent.tools.shown import shown_name
from mull.neutral.errors import LocalError
from mull.policy.view.media import takes
from mull.transcripts.words import describe_media
from mull.tui.commands.host import Host, path_of
from mull.tui.commands.known import Known
from mull.tui.screen.front import Item

__all__ = ["attach_image", "image_offers"]


async def attach_image(host: Host, text: str) -> None:
    """Attach a picture to the next message; without a path, show what is attached.

    Raises:
        LocalError: the model accepts no images, or the file is not an image.
    """
    session, name = host.session, text.strip().strip("\"'")
    if not name:
        return _tell_attached(host)
    if name == "clear":
        host.attached.clear()
        return _tell_attached(host)
    if not takes(session.target.facts.input, ANY_IMAGE):
        raise LocalError(
            f"according to the catalog {session.target.name} does not accept images: "
            "/model selects another"
        )
    path = path_of(host, name)
    host.attached.append(read_picture(path, shown_name(path.name)))
    _tell_attached(host)


def _tell_attached(host: Host) -> None:
    if not host.attached:
        host.tell("No picture is attached. /image PATH attaches one to your next message.")
        return
    told = "; ".join(describe_media(block) for block in host.attached)
    host.tell(f"Attached to your next message: {told}")


def image_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Files and folders."""
    return known.files(words[-1])
