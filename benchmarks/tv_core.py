"""triton_viz: what tracing costs."""

from benchmarks.harness import Job, benchmark, cost_at_most


# The reference is what runs a kernel here when nobody looks, which today is Triton's own interpreter.
@benchmark("a traced vector addition of 64 programs", "Triton's interpreter, untraced", cost_at_most(1.4))
def tv_trace() -> tuple[Job, Job]:
    import torch
    from triton.runtime.interpreter import InterpretedFunction

    import triton_viz
    from examples.vector_add import vector_add

    n, block = 64 * 256, 256
    x, y, out = torch.ones(n), torch.ones(n), torch.empty(n)
    untraced = InterpretedFunction(vector_add.fn)

    def subject() -> None:
        vector_add[(n // block,)](x, y, out, n, BLOCK=block)
        triton_viz.clear()

    return subject, lambda: untraced[(n // block,)](x, y, out, n, BLOCK=block)
