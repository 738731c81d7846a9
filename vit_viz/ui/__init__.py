"""The app: a page in the browser, from Gradio components and the live explorer."""

from typing import Any

from gradio import component_meta

_write_interface = component_meta.create_or_modify_pyi


def _write_interface_of_others(component_class: type, *args: Any) -> None:
    """Gradio writes a .pyi file beside the source of every component when it is imported: of ours it took a tenth of the start."""
    if not component_class.__module__.startswith("vit_viz."):
        _write_interface(component_class, *args)


component_meta.create_or_modify_pyi = _write_interface_of_others  # type: ignore[assignment]
