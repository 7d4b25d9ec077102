"""Imported before the program: modules are compiled once and kept, also where bytecode is not
written in general. The program has a plugin of pytest's, which therefore rewrites its modules as
those of the tests, and that takes each process of a run more than a second."""

import sys

sys.dont_write_bytecode = False
