"""Where the command ``streamsan`` is.

The wheel puts the command among the scripts of the environment that it is installed in. That
command is taken before one of the same name that comes first on ``PATH``: it is of this version.
"""

import os
import shutil
import sys
import sysconfig

NAME = "streamsan"


class NotFound(Exception):
    """The command is not installed."""


def find():
    """The path of the command.

    Raises ``NotFound`` where there is none.
    """
    for directory in _directories():
        path = os.path.join(directory, NAME)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which(NAME)
    if found is None:
        raise NotFound("the command streamsan is neither beside this Python nor on PATH")
    return found


def _directories():
    yield sysconfig.get_path("scripts")
    # An installation with `pip install --user`.
    user = "posix_user"
    if user in sysconfig.get_scheme_names():
        yield sysconfig.get_path("scripts", user)
    # An installation with `pip install --target` or `--prefix` has its scripts beside it.
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    yield os.path.join(package, "bin")
    yield os.path.join(os.path.dirname(sys.executable or ""), "")
