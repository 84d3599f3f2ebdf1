"""The instructions of kernels: of cubins by nvdisasm, or as they were put beside them."""
