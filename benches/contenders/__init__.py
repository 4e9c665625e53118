"""Who is measured, a module each. The functions are the operations; those of one name do the same work, take the same arguments, time the same laps by
the `Watch` that they get first, and return answers that must be equal. A module imports what its own environment has, and nothing else."""
