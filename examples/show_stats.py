"""Print the statistics of the workers.

    python -m examples.show_stats

Runs a few operations and prints each worker's statistics: how many instructions it executed, and how many
tensors and bytes it holds.
"""

import gt


def main() -> None:
    x = gt.randn(100, 100)
    for _ in range(10):
        x = (x @ x).tanh()
    print(f"the sum is {x.sum().item():.1f}")
    gt.debug.print_worker_stats()


if __name__ == "__main__":
    main()
