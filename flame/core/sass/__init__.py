"""Find the SASS code of kernels: read cubins, run nvdisasm, keep its answers.

May import: files, model.
"""
