"""Methods, in-place forms and functions that are made when gt is imported; the sources are elsewhere.

`gt.tensors.api` makes them from the op table and from methods that are marked with `@api`. Type checkers and
editors read the `.pyi` files, which `python -m tools.op_list` writes; a test compares them with what is made.
"""
