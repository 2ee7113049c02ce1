"""Make an image without a container engine: folders in, layers and manifests of the OCI's form out."""
