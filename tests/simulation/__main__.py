"""`python -m simulation --jobs 1000000 --seed 1 --store sqlite`: exit code 1 on any violation."""

import sys

from simulation.running import main

if __name__ == "__main__":
    sys.exit(main())
