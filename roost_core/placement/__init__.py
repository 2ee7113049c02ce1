"""Where should a pod go: classes, rendezvous ring, image sets, affinity terms. Pure: no I/O, no clock, no chance."""
