"""Start vit_viz in the browser: python app.py [--model NAME_OR_PATH]. The same as `vit-viz serve`."""

import sys

from vit_viz.cli import main as command_line


def main() -> None:
    """Pass the flags on."""
    sys.exit(command_line(["serve", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
