"""A client from another package: a folder, registered by the call below when the package is imported."""

import triton_viz

triton_viz.register_client(
    "toy",
    f"{__name__}.client:Toy",
    command=f"{__name__}.cli:main",
    records=[f"{__name__}.records:StoreCount"],
)
