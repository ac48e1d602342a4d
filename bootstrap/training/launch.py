"""What every run tells the launcher of its ranks (`trainer.launch`), here and on a deployment's nodes."""

STOP_SECONDS = 60
"""How long the launcher gives the ranks to end with a checkpoint, once they are asked to stop."""
RESTARTS = 3
"""How often ranks are started again when one is lost: each time costs the steps since the last checkpoint."""
LIMITS = (f"--max-restarts={RESTARTS}", f"--shutdown-timeout={STOP_SECONDS}")
"""Both as the launcher's options."""
