"""The sanitizer: proves that a kernel stays inside its tensors, or shows where it does not."""
