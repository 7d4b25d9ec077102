"""The fixtures' name in the metadata of an installation that was made before."""

from headway.testing.fixtures import *  # noqa: F403
