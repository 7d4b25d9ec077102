"""Shells inside a command: which of its words one of them would read as a program. Pure.

A value that somebody else chose must never stand in such a word. No way of quoting helps, because
the place in the script decides which quotes are open; as an argument of the script it is only text.
"""

from collections.abc import Sequence

SHELLS = frozenset({"sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish"})
_TAKES_A_WORD = ("--rcfile", "--init-file")


def scripts(words: Sequence[str]) -> dict[int, str]:
    """The places of the words that a shell would run, each with the name of that shell. Every word
    may be a shell, because env, nice, timeout and many others start what follows them."""
    found = {}
    for place, word in enumerate(words):
        shell = word.rpartition("/")[2]
        script = _script(words, place + 1) if shell in SHELLS else None
        if script is not None:
            found[script] = shell
    return found


def as_code(name: str, shell: str) -> str:
    """Why a placeholder of this name is refused, and the right way."""
    return (
        f"{{{name}}} stands in the script of {shell} -c, which would run its value as code; give "
        f"it as an argument, as in -- {shell} -c 'work on \"$1\"' {shell} {{{name}}}"
    )


def _script(words: Sequence[str], place: int) -> int | None:
    """The first word after the options, if one of these is -c. It may stand among others, as in
    -ec, and each o takes the next word, as in -euo pipefail."""
    asked = False
    while place < len(words) and words[place][:1] in ("-", "+"):
        option = words[place]
        place += 1
        if option in ("-", "--"):
            break
        if option.startswith("--"):
            place += option in _TAKES_A_WORD
            continue
        asked = asked or "c" in option
        place += option.lower().count("o")
    return place if asked and place < len(words) else None
