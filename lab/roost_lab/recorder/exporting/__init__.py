"""Write records for other programs: `roost records export`.

`exports.py` reads the records and writes launches for the simulator. `sniffer_log.py` writes
scheduler-sniffer's lines, and reads them.
"""
