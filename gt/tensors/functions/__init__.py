"""Functions that are no methods of Tensor. The others, such as `gt.exp`, are in `gt.tensors.generated`."""
