"""Programs for developing Roost; none of them is installed.

`demo.py` is `make demo`, with `demo_screen.py` and `stand_in_api.py` (a fake API server); its
record is `lab/benchmarks/recorded_story.py`. `quick.py`, `check.sh` and `test.sh` are the
loops of CONTRIBUTING.md. `write_*.py` write generated files. `image.py` builds the image,
`take_screenshots.py` takes the docs' pictures, `try_import.py` imports every values file of a
folder.
"""
