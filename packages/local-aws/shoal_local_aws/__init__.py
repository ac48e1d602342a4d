"""AWS on this machine: the emulator that the demo and the tests deploy to, with the real commands.

It has AWS's own interfaces and knows nothing of what is deployed to it. Do not make it more tolerant than AWS: an
unknown resource type is refused, a filled bucket is not deleted, and only the services' list calls show what exists.
"""
