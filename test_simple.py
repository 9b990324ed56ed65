"""A first test of a running system: `python test_simple.py [host:port]`.

Start the system in another terminal: `python simple_launch.py --no-test`.
"""

import sys

import gt


def main(address: str = "localhost:12345") -> None:
    """Add, multiply, differentiate."""
    gt.connect(address, timeout=30)
    a, b = gt.tensor([1, 2, 3, 4]), gt.tensor([5, 6, 7, 8])
    total = (a + b).data.numpy().tolist()
    print(f"{a.tolist()} + {b.tolist()} = {total}")
    assert total == [6, 8, 10, 12]

    x = gt.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x @ x).relu().sum().backward()
    assert x.grad is not None
    print(f"the gradient of (x @ x).relu().sum() is {x.grad.tolist()}")
    assert x.grad.tolist() == [[7, 11], [9, 13]]

    for name, stats in gt.debug.get_worker_stats().items():
        print(f"{name} ({stats['engine']}) carried out {stats['total_instructions']} instructions")
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:2])
