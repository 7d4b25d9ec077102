"""Where this very Headway lies: a process that is started with `-I` puts it on its path."""

import os

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
