"""The archive: executions that are not kept any more, in files beside the artifacts."""
