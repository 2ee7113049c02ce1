"""Plans, and nothing else: pure functions of a snapshot. No I/O, clock or chance; the simulator runs them too."""
