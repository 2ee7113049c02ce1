"""The certificate that reviews are served with."""
