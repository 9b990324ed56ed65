"""What users call as `gt.NAME`, in the op table's groups. Most are a tensor's own methods."""
