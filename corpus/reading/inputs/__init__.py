"""What a set of inputs is: which files, of which kind, with which fields. `understanding.understand` is its front.

It looks at the beginnings of files; how they are read is no matter of this package, but of the one that it is in.
"""
