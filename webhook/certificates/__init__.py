"""The certificate that reviews are served with.

`certificate_files.py` follows the files of the mounted Secret; `tls.py` serves new connections with
the newest ones.
"""
