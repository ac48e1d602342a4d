"""AWS emulator on this machine. The demo and the tests deploy to it with the real commands.

The emulator has AWS's own interfaces and does not know the programs that use it. Do not make it more tolerant than AWS.
It refuses unknown resource types and the deletion of buckets that are not empty. Only the services' list calls show
which resources exist.
"""
