"""The controllers, the doctor, and the command line. Recorder and simulator are in `lab/`."""
