"""AWS on this machine: the emulator that the demo and the tests deploy to, with the real commands.

It plays AWS by AWS's own interfaces and knows nothing of what is deployed to it. The one thing that is easy to get
wrong is to be kinder than AWS: a resource type that nobody plays is refused, a filled bucket is not deleted, and
what exists is what the services' own list calls say.
"""
