"""AWS emulator on this machine. The demo and the tests deploy to it with the real commands.

It has AWS's own interfaces and no knowledge of what is deployed to it. Do not make it more tolerant than AWS: it
refuses unknown resource types and the deletion of buckets that are not empty, and only the services' lists show what
exists.
"""
