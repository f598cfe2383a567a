"""The SDK's resources for the kernel's nouns. A feature's resource is in the feature."""
