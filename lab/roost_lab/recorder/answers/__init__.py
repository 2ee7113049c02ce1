"""Answer what people ask of the records: one pod's story, the live picture, exports."""
