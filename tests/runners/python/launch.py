"""Starts ranks as torchrun and srun do, with the variables that these set: `launch.py HOW N COMMAND...`.

Ends with the largest code of a rank.
"""

import os
import subprocess
import sys


def variables(how, rank, ranks):
    if how == "torchrun":
        names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks}
    else:
        names = {"SLURM_PROCID": rank, "SLURM_LOCALID": rank, "SLURM_NTASKS": ranks}
    return {name: str(value) for name, value in names.items()}


def main(how, ranks, command):
    started = [
        subprocess.Popen(command, env={**os.environ, **variables(how, rank, ranks)})
        for rank in range(ranks)
    ]
    return max(process.wait() for process in started)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
