"""`triton-race-detector script.py ...`: run an unchanged program, and look for races in its kernels."""

from triton_viz.clients.cli.issues_command import issues_main
from triton_viz.clients.race_detector.race_detector import RaceDetector

main = issues_main(
    lambda options: RaceDetector(),
    name="triton-race-detector",
    description="Run a program, and find elements that two programs of a kernel access without an order.",
)

if __name__ == "__main__":
    raise SystemExit(main())
