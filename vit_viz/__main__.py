"""`python -m vit_viz`: the command line."""

import sys

from vit_viz.cli import main

if __name__ == "__main__":
    sys.exit(main())
