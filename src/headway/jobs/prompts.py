"""The file that has the prompt of an agent."""

import os

from headway.base.errors import InvalidInputError
from headway.base.units import show_size
from headway.integrations.agents.model import LARGEST_PROMPT


def read_prompt(path: str, folder: str = "") -> str:
    """The text of a file; its path counts from this folder, where the job is submitted."""
    try:
        with open(os.path.join(folder, path), "rb") as file:
            content = file.read(LARGEST_PROMPT + 1)
        if len(content) > LARGEST_PROMPT:
            raise InvalidInputError(f"{path} is larger than {show_size(LARGEST_PROMPT)}")
        return content.decode("utf-8")
    except OSError as error:
        raise InvalidInputError(f"the prompt {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidInputError(f"the prompt {path} is not UTF-8") from None
