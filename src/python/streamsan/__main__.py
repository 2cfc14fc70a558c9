"""``python -m streamsan``: the command, in the place of this process."""

import os
import sys

from ._command import NAME, NotFound, find


def main():
    """Becomes the command; returns an exit code only where that is impossible."""
    try:
        path = find()
    except NotFound as error:
        print(f"python -m streamsan: {error}", file=sys.stderr)
        return 127
    os.execv(path, [NAME, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
