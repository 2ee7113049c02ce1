"""The command line: wires the other packages together, holds nothing else."""
