"""The version of Shoal. GPU nodes have its code without having it installed, so no package metadata says it there."""

VERSION = "0.2.0"
