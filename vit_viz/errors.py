"""The exceptions of vit_viz: one tree, one sentence each.

    VitVizError
    |-- CheckpointError         a model could not be loaded
    |   |-- UnknownFamily       the file is not a Vision Transformer that we know
    |   |-- KeyMismatch         parameters are missing, extra or misshapen
    |   `-- UnsafeFile          reading it would run code, or its content is out of bounds
    |-- ImageError              the picture could not be read
    |-- ParameterError          an option or a query is outside what is possible
    |-- CaptureError            the attention of a forward pass could not be recorded
    |-- ExportError             a result could not be written
    |-- BusyError               too many requests at once for this machine
    `-- Cancelled               the user, or a time limit, ended a long computation

A message says what failed, what was given, what is expected and what to do. The user interface shows it as it is, so it
never holds a path or a secret that the user did not type.
"""


class VitVizError(Exception):
    """Base class of every error that is meant for the user."""


class CheckpointError(VitVizError):
    """A model could not be loaded."""


class UnknownFamily(CheckpointError):  # noqa: N818 - named for what it says, as the public API lists it
    """The parameter names are those of no Vision Transformer family that we know."""


class KeyMismatch(CheckpointError):  # noqa: N818
    """Parameters are missing, extra or misshapen; the message lists them."""


class UnsafeFile(CheckpointError):  # noqa: N818
    """Reading the file would run code, or it asks for more than the limits allow."""


class ImageError(VitVizError):
    """The picture could not be read, or lies outside the limits."""


class ParameterError(VitVizError, ValueError):
    """An option or a query is outside what is possible; the message names the range."""


class CaptureError(VitVizError):
    """The attention of a forward pass could not be recorded; the message says what was seen."""


class ExportError(VitVizError):
    """A result could not be written."""


class BusyError(VitVizError):
    """Too many requests at once for this machine; trying again later helps."""


class Cancelled(VitVizError):  # noqa: N818
    """A long computation was ended by the user or by a time limit; nothing was kept."""
