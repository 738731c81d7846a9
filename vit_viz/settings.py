"""Settings of whoever runs the process: environment variables, each kind of which is read in one way.

Blanks around a value do not count, and an empty value is as good as none. Any other value that is not possible is one sentence;
what starts an app asks for that before it loads anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from vit_viz.errors import ParameterError

SWITCHES = {
    "VIT_VIZ_API": False,
    "VIT_VIZ_BEHIND_PROXY": False,
    "VIT_VIZ_CUDA_GRAPHS": True,
    "VIT_VIZ_MCP": False,
    "VIT_VIZ_OWN_HUB_IDS": True,
}
"""Each setting that is on or off, and which of them it is where nobody says."""

_WORDS = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}
_DIGITS = 19


def setting(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The value of a variable without blanks around it; "" where it is not set."""
    return environment.get(name, "").strip()


def switch(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether one of SWITCHES is on: 1, true, yes or on in any case; 0, false, no or off."""
    text = setting(name, environment)
    if not text:
        return SWITCHES[name]
    if text.lower() not in _WORDS:
        raise ParameterError(f"{name} is 1, true, yes or on, or 0, false, no or off; not {text[:40]!r}.")
    return _WORDS[text.lower()]


def check_switches() -> None:
    """See that each switch can be read."""
    for name in SWITCHES:
        switch(name)


def whole_number(name: str, default: int, *, unit: str, environment: Mapping[str, str] = os.environ) -> int:
    """A number above 0; `unit` says what is counted, in the plural."""
    text = setting(name, environment) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text)):
        raise ParameterError(f"{name} is a number of {unit} such as {default}, not {text[:40]!r}.")
    return int(text)
