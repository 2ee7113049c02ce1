"""From valid values to manifests."""
