"""Children of one program, as Python starts them: `spawn.py HOW`; the last one forgets the wait."""

import multiprocessing
import subprocess
import sys

from driver import round_trip


def main(how):
    waits = (True, False)
    if how == "subprocess":
        code = "import sys, driver; driver.round_trip(sys.argv[1] == 'True')"
        for wait in waits:
            subprocess.run([sys.executable, "-c", code, str(wait)], check=True)
        return
    context = multiprocessing.get_context(how)
    children = [context.Process(target=round_trip, args=(wait,)) for wait in waits]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0, child.exitcode


if __name__ == "__main__":
    main(sys.argv[1])
