"""A survey beside the session that shows it: its photos as pictures of the page, and its model where the page has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from vit_viz.errors import ParameterError, VitVizError
from vit_viz.images import Mode
from vit_viz.lazy import named
from vit_viz.session.edits import ModelEdits
from vit_viz.session.handles import Subject
from vit_viz.session.session import Session
from vit_viz.surveys.opened import OpenedSurvey, open_survey
from vit_viz.surveys.photo_files import PhotoFiles
from vit_viz.views import choices

EXAMPLE = "example"
OTHER_MODEL = "The app runs another model than this survey's, so photos are not lit by it; start the app with the survey's model."


class OpenedRoom:
    """An opened survey in a session, whose library its photos become."""

    def __init__(self, session: Session, survey: OpenedSurvey) -> None:
        self.session = session
        self.survey = survey
        self.files = PhotoFiles(
            survey, lambda content: session.decode(content)
        )  # the app sets another decode later
        session.library = self.files

    @property
    def model_name(self) -> str:
        """The survey's model as the page calls it; "" where the page does not offer it."""
        name = str(self.survey.manifest.get("model", ""))
        own = choices.default_name(self.session)
        if name == own or Path(self.session.default_model).name == name:
            return own
        try:
            choices.model_reference(self.session, name)
        except ParameterError:
            return ""
        return name

    @property
    def is_own_model(self) -> bool:
        """Whether the session's own model is the survey's: the same weights."""
        try:
            loaded = self.session.model()
        except VitVizError:
            return False
        return loaded.provenance.weights == self.survey.manifest.get("weights")

    @property
    def patch_size(self) -> tuple[int, int] | None:
        """(height, width) of the patches of the survey's model in pixels; None where the app runs another one."""
        return self.session.model().preprocess.patch_size if self.is_own_model else None

    def subject(self, row: int, visitor: str) -> Subject:
        """A photo as the survey's model received it.

        Raises:
            ParameterError: the app runs another model.
        """
        if not self.is_own_model:
            raise ParameterError(OTHER_MODEL)
        asked = self.options
        return Subject(
            self.session.default_model,
            self.files.name_of(row),
            asked["mode"],
            visitor,
            size=int(asked["size"]),
            edits=ModelEdits.parse(asked["edits"]),
        )

    @property
    def options(self) -> dict[str, Any]:
        """How the survey made photos the model's input, and its edits of the model, as options of a view."""
        described = self.survey.manifest
        asked = described.get("request", {})
        mode = asked.get("mode", "crop")
        return {
            "mode": mode if mode in get_args(Mode) else "crop",
            "size": int(asked.get("size", 0) or 0),
            "edits": str(described.get("edits") or ""),
        }


def open_room(session: Session, folder: str | Path) -> OpenedRoom:
    """Open the survey in a folder, or the bundled one: "example".

    Raises:
        ParameterError: there is none.
        VitVizError: what it takes is not installed.
    """
    return OpenedRoom(session, open_survey(_example() if str(folder) == EXAMPLE else folder))


def _example() -> Path:
    """The bundled survey.

    Raises:
        ParameterError: this installation has none.
    """
    try:
        folder = named("vit_viz.surveys.example", "folder")
    except ModuleNotFoundError as error:
        raise ParameterError(
            "This installation has no example survey; please name the folder of one."
        ) from error
    return Path(folder())
