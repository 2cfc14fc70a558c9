"""A rank of a job: ranks named on the command line forget the wait.

The rank is what the launcher says: torchrun, Open MPI or Slurm.
"""

import os
import sys

from driver import round_trip

VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")

rank = next(os.environ[name] for name in VARIABLES if name in os.environ)
round_trip(with_wait=rank not in sys.argv[1:])
