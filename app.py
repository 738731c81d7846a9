"""Start vit_viz in the browser: python app.py [--model NAME_OR_PATH]."""

import argparse

from vit_viz.errors import VitVizError
from vit_viz.memory import share_one_heap
from vit_viz.session import Session
from vit_viz.space import GpuWorker
from vit_viz.ui.app import build_app, launch_options


def main() -> None:
    """Read the flags, build the app, launch it."""
    parser = argparse.ArgumentParser(description="See what a Vision Transformer looks at.")
    parser.add_argument("--model", help="name, Hub id, or path of a checkpoint; default: the bundled model")
    parser.add_argument("--host", help="address to listen on; default: 127.0.0.1, this machine only")
    parser.add_argument("--port", type=int, help="port; default: the first free one from 7860")
    parser.add_argument("--device", help="cpu, cuda or mps; default: the best that is there")
    parser.add_argument("--share", action="store_true", help="make a public link through Gradio's servers")
    flags = parser.parse_args()
    share_one_heap()
    try:
        session = Session(model=flags.model, device=flags.device, lender=GpuWorker.found())
    except VitVizError as error:
        parser.error(str(error))
    options = launch_options(session) | {"share": flags.share}
    if flags.host:
        options["server_name"] = flags.host
    build_app(session).launch(server_port=flags.port, **options)


if __name__ == "__main__":
    main()
