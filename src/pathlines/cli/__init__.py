"""The command line: one file per verb."""


def main() -> None:
    """Entry point: Ctrl-C is answered from here on, while the program itself is still being imported."""
    import sys

    from pathlines.cli.interrupt import end, interruptible

    with interruptible() as interrupts:
        try:
            from pathlines.foundation.spared import sparing

            with sparing():
                from pathlines.cli.program import outcome

                code = outcome()
        finally:
            if interrupts.received:
                end()
    sys.exit(code)
