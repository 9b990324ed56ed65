"""Parts of records: columns (one value per program), accessed elements, tensors, instructions of a chip."""
