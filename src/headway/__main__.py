"""The program: `headway`, and `python -m headway`, are the command line.

Most commands load their modules, ask the store once and end. Nothing of that is garbage in circles,
so it is not searched for while they load, nor when the interpreter frees everything at the end.
"""

import gc

# Twice the objects of a submit. A command that lives longer is collected, only less often.
OBJECTS_BEFORE_A_SEARCH = 50_000


def main() -> None:
    gc.set_threshold(OBJECTS_BEFORE_A_SEARCH)
    from headway.cli.main import main as command_line

    try:
        command_line()
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
