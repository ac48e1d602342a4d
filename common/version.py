"""The version of Shoal. GPU nodes run its code uninstalled, without package metadata to read the version from."""

VERSION = "0.2.0"
