"""Version of Shoal. GPU nodes run Shoal's code without installing it, so they have no package metadata."""

VERSION = "0.2.0"
